"""Record where attempts ran, one document for each pod whose container has run.

The informer of pods reports when a container runs; a node is asked for once. So it costs no request per pod.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus

from bench.schema import Node, Placement
from bench.store import parse_placement_key, parse_result_key, placement_key, placements_prefix, results_prefix
from runner.kubernetes.connection import SHORT_PATIENCE_SECONDS, ApiError, read_item
from runner.kubernetes.names import select_run
from runner.kubernetes.objects import PodStatus, describe_node, read_pod_status, read_quantity
from runner.kubernetes.tracked_jobs import OngoingRun

REFUSALS = (HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND)


@dataclass(kw_only=True)
class Placements:
    """Writes where the attempts of a run ran. `note` is for the main thread; the other methods block."""

    run: OngoingRun
    placed: set[str] = field(default_factory=set)
    """Attempts whose placement is written, or being written."""
    num_pending: int = 0
    """Placements that are being written."""
    _nodes: dict[str, Node | None] = field(default_factory=dict, repr=False)
    """By name. None: it may not be read, or was gone."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def note(self, pod: PodStatus) -> None:
        """Have the placement of a pod written if it runs, or did."""
        if pod.has_run and pod.node and pod.uid not in self.placed:
            self.placed.add(pod.uid)
            self.num_pending += 1
            self.run.dispatcher.record(partial(self.write, pod), self._finish)
            if pod.other_containers or pod.qos_class not in ("Guaranteed", ""):
                self._tell_of_policy(pod)

    def _tell_of_policy(self, pod: PodStatus) -> None:
        """Warn, once for each way, that the cluster changed a pod: the report says so of each attempt."""
        change = f"its QoS class is {pod.qos_class}: other pods may use its cores and memory"
        if pod.other_containers:
            names = ", ".join(pod.other_containers)
            change = f"the container {names} was added, which takes CPU and memory beside the measurement"
        words = f"an admission webhook or policy of the cluster changed pod {pod.name}: {change}"
        self.run.dispatcher.warn(words, f"changed pods {change}")

    def _finish(self, problem: str) -> None:
        self.num_pending -= 1
        if problem:
            self.run.dispatcher.warn(problem)

    def list_placed(self) -> set[str]:
        keys = map(parse_placement_key, self.run.store.list_keys(placements_prefix(self.run.run_id)))
        return {key.attempt for key in keys if key is not None}

    def write(self, pod: PodStatus) -> str:
        """Write where a pod runs or ran; return in words why that cannot be recorded, else an empty text."""
        try:
            placement = self._make_placement(pod)
        except ValueError as error:
            return f"where pod {pod.name} runs is not recorded: {error}"
        key = placement_key(self.run.run_id, placement.cell_id, placement.repeat, placement.attempt)
        self.run.store.put(key, placement.to_json())
        return ""

    def _make_placement(self, pod: PodStatus) -> Placement:
        cores = float(read_quantity(pod.cpu_request)) if pod.cpu_request else 0.0
        return Placement(
            run_id=self.run.run_id,
            cell_id=pod.cell_id,
            repeat=pod.number,
            attempt=pod.uid,
            pod=pod.name,
            node_name=pod.node,
            image_id=pod.image_id or None,
            qos_class=pod.qos_class or None,
            cpu_request_cores=cores if cores > 0 else None,  # a policy may have set it to 0: none is requested
            other_containers=pod.other_containers,
            node=self._find_node(pod.node),
        )

    def find_instance_type(self, node: str) -> str | None:
        """Return the machine type of a node that was asked for already; None: unknown. Sends no request."""
        known = self._nodes.get(node)
        return None if known is None else known.instance_type

    def complete(self) -> None:
        """Write the placements that results lack and whose pods still exist: an earlier runner may have been killed.

        ApiError if the pods cannot be listed.
        """
        keys = map(parse_result_key, self.run.store.list_keys(results_prefix(self.run.run_id)))
        lacking = {key.attempt for key in keys if key is not None} - self.list_placed()
        if lacking:
            self.write_wanted(select_run(self.run.run_id), lambda attempt: attempt in lacking)

    def write_wanted(self, labels: str, is_wanted: Callable[[str], bool]) -> None:
        """Write the placements of the pods with these labels that still exist; `is_wanted` is asked with their uids.

        ApiError if the pods cannot be listed.
        """
        query, patience = {"labelSelector": labels}, SHORT_PATIENCE_SECONDS
        path = self.run.path("pods")
        for pod in self.run.connection.read_items(path, read_pod_status, query, patience_seconds=patience):
            if pod.has_run and is_wanted(pod.uid):
                self.write(pod)

    def _find_node(self, name: str) -> Node | None:
        with self._lock:  # many pods of one node are placed at once: one asks for it
            if name not in self._nodes:
                path = f"/api/v1/nodes/{name}"
                try:
                    found = self.run.connection.get_object(path, patience_seconds=SHORT_PATIENCE_SECONDS)
                    self._nodes[name] = read_item(found, describe_node, "nodes")
                except ApiError as error:
                    if error.status not in REFUSALS:  # the server is away: asked again for the next pod
                        return None
                    self._nodes[name] = None
            return self._nodes[name]
