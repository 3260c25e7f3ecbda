"""The nodes of a cluster, and what may add more of them."""

from dataclasses import dataclass
from http import HTTPStatus

from runner.kubernetes.api_errors import ApiError
from runner.kubernetes.connection import Connection
from runner.kubernetes.doctor.findings import find_object
from runner.kubernetes.doctor.node_fit import NodeStatus, count_daemon_requests, read_node_status


@dataclass(frozen=True, kw_only=True)
class ClusterInventory:
    """The nodes of the cluster, and what is known about them only in part."""

    nodes: tuple[NodeStatus, ...]
    autoscaler: str
    """What may add nodes; empty: nothing that is known."""

    @classmethod
    def take(cls, connection: Connection) -> "ClusterInventory":
        """List the nodes; ApiError where we may not."""
        listed = connection.list_items("/api/v1/nodes")
        taken = count_daemon_requests(_list_pods(connection))
        nodes = tuple(read_node_status(node, taken.get(node["metadata"]["name"], {})) for node in listed)
        return cls(nodes=nodes, autoscaler=_find_autoscaler(connection))


def _list_pods(connection: Connection) -> list[dict[str, object]]:
    """Return the running pods of all namespaces; none if the user may not list them."""
    try:
        return connection.list_items("/api/v1/pods", fieldSelector="status.phase!=Succeeded,status.phase!=Failed")
    except ApiError as error:
        if error.status == HTTPStatus.FORBIDDEN:
            return []
        raise


def _find_autoscaler(connection: Connection) -> str:
    """Return what adds nodes to the cluster, by what is known to leave a sign; empty where nothing does."""
    signs = {
        "Karpenter": "/apis/karpenter.sh",
        "the cluster autoscaler": "/api/v1/namespaces/kube-system/configmaps/cluster-autoscaler-status",
    }
    for name, path in signs.items():
        try:
            if find_object(connection, path) is not None:
                return name
        except ApiError as error:
            if error.status != HTTPStatus.FORBIDDEN:
                raise
    return ""
