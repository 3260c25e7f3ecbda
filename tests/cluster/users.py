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


def grant_run(connection: Connection, namespace: str, subject: dict[str, str], without: Right | None = None) -> None:
    """Let a user or an account do in the namespace what a run needs, but for one right."""
    rules = [
        {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
        for group, resource, verb in list_rights()
        if (group, resource, verb) != without
    ]
    group = "rbac.authorization.k8s.io"
    path, metadata = f"/apis/{group}/v1/namespaces/{namespace}", {"name": subject["name"]}
    create(connection, f"{path}/roles", {"metadata": metadata, "rules": rules})
    role = {"apiGroup": group, "kind": "Role", "name": subject["name"]}
    create(connection, f"{path}/rolebindings", {"metadata": metadata, "roleRef": role, "subjects": [subject]})


def connect_as_runner(
    connection: Connection, plane: ControlPlane, namespace: str, without: Right | None = None
) -> Connection:
    """Return the connection of a user who may do in the namespace what a run needs, and nothing in the cluster."""
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}
    grant_run(connection, namespace, subject, without)
    return Connection(context=f"{plane.context}-user", patience_seconds=DEADLINE_SECONDS)
