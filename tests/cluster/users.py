"""Users of the control plane with no more permissions than a test gives them."""

from commands import create
from runs import DEADLINE_SECONDS

from control_plane import USER, ControlPlane
from runner.kubernetes.connection import Connection
from runner.kubernetes.setup import RUN_PERMISSIONS

Right = tuple[str, str, str]
"""API group, resource and verb."""


def list_rights() -> list[Right]:
    """Return every right that a run needs."""
    return [
        (permission.group, permission.resource, verb) for permission in RUN_PERMISSIONS for verb in permission.verbs
    ]


def connect_as_runner(
    connection: Connection, plane: ControlPlane, namespace: str, without: Right | None = None
) -> Connection:
    """Return the connection of a user who may do in the namespace what a run needs, and nothing in the cluster.

    `without`: a right of these that the user lacks.
    """
    rules = [
        {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
        for group, resource, verb in list_rights()
        if (group, resource, verb) != without
    ]
    group = "rbac.authorization.k8s.io"
    role = {"metadata": {"name": "runner"}, "rules": rules}
    binding = {
        "metadata": {"name": "runner"},
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "runner"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": USER}],
    }
    for kind, body in (("roles", role), ("rolebindings", binding)):
        create(connection, f"/apis/{group}/v1/namespaces/{namespace}/{kind}", body)
    return Connection(context=f"{plane.context}-user", patience_seconds=DEADLINE_SECONDS)
