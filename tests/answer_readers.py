"""What the runner reads of each kind of object of an API server, all of it at once."""

from collections.abc import Callable

from runner.kubernetes.doctor.queue_fit import fit_queue

from runner.kubernetes.answers import AnswerError, ApiObject, decode_answer, read_item
from runner.kubernetes.autoscaler_limits import count_cells_within_limits, explain_unready, list_node_pool_misfits
from runner.kubernetes.fit import count_daemon_requests, fit_pod, read_node_status
from runner.kubernetes.kueue import read_inactivity, read_wait
from runner.kubernetes.node_labels import describe_node
from runner.kubernetes.object_status import read_pod_status, read_remaining_job

POD = {
    "containers": [{"name": "bench", "resources": {"requests": {"cpu": "2", "memory": "1Gi"}}}],
    "nodeSelector": {"a": "b"},
    "tolerations": [{"key": "x", "operator": "Exists"}],
}


def _read_pod(pod: ApiObject) -> object:
    return read_pod_status(pod), count_daemon_requests([pod])


def _read_node(node: ApiObject) -> object:
    status = read_node_status(node, {})
    return describe_node(node), status.kind, fit_pod(POD, [status]).describe()


def _read_node_pool(pool: ApiObject) -> object:
    return count_cells_within_limits(POD, [pool]), explain_unready(pool), list(list_node_pool_misfits(POD, pool))


READERS: dict[str, Callable[[ApiObject], object]] = {
    "jobs": read_remaining_job,
    "pods": _read_pod,
    "nodes": _read_node,
    "nodepools": _read_node_pool,
    "clusterqueues": lambda queue: (read_inactivity(queue), fit_queue(POD, queue, {})),
    "localqueues": lambda queue: (read_inactivity(queue), queue["spec"]["clusterQueue"]),
    "workloads": read_wait,
}


def refuse(text: str, kind: str) -> AnswerError | None:
    """Return why the readers of a kind do not take an object; None if they do."""
    try:
        read_item(decode_answer(text.encode()), READERS[kind], kind)
    except AnswerError as error:
        return error
    return None
