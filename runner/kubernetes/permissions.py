"""List what the runner asks the API server for: the list that its Roles are rendered from and `doctor` asks about."""

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from http import HTTPStatus

from bench.errors import UserError
from runner.kubernetes.connection import ApiError, Connection, JsonObject, decode_answer, to_user_error
from runner.profiles import IN_CLUSTER


@dataclass(frozen=True, kw_only=True)
class Permission:
    """Verbs on one resource, in the namespace of the run unless it has none."""

    group: str
    """API group; empty: the core's."""
    resource: str
    verbs: tuple[str, ...]
    purpose: str
    """What the runner does with them."""


RUN_PERMISSIONS = (
    Permission(
        group="batch",
        resource="jobs",
        verbs=("create", "list", "watch", "delete", "deletecollection"),
        purpose="submit the cells, follow them, delete those that cannot start or are recorded",
    ),
    Permission(group="", resource="pods", verbs=("list", "watch"), purpose="explain why a cell waits or how it died"),
    Permission(
        group="",
        resource="pods/log",
        verbs=("get",),
        purpose="take the record of a cell that could not reach the store",
    ),
    Permission(group="", resource="events", verbs=("list",), purpose="explain why a Job has no pod"),
)
"""What a run needs, and nothing else."""
CLEANUP_PERMISSIONS = (
    Permission(group="", resource="pods", verbs=("delete",), purpose="delete pods whose Job is gone"),
)
"""What `benchmatrix clean` needs on top of the permissions of a run."""
CANCEL_PERMISSIONS = (Permission(group="batch", resource="jobs", verbs=("list", "delete"), purpose="delete the Jobs"),)
"""All that `cancel` needs."""
NODE_PERMISSION = Permission(
    group="",
    resource="nodes",
    verbs=("get", "list"),
    purpose="record the machine type, zone and kubelet of every result, and count the cells that fit on the nodes",
)
"""What a run can do without: it asks for each node once, and lists the nodes every two minutes.

Nodes are in no namespace, so that no Role can allow it."""
QUEUE_PERMISSIONS = (
    Permission(
        group="kueue.x-k8s.io",
        resource="workloads",
        verbs=("list",),
        purpose="say why Kueue has not started a Job",
    ),
    Permission(
        group="kueue.x-k8s.io",
        resource="localqueues",
        verbs=("get",),
        purpose="say in `status` and `doctor` whether a queue is there and active",
    ),
)
"""What a run with a queue asks for and can do without. `doctor` reads ClusterQueues and ResourceFlavors besides, which
are in no namespace, so that no Role can allow it."""


# Asks the API server what the user may do, so that a command is refused before it has changed anything.

UNKNOWN_USER = "a user that it does not name"
_NO_REVIEW = (HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND)
"""What a cluster answers that lets this user ask nothing about its rights."""


def list_refused(
    connection: Connection, permission: Permission, namespace: str, *, spared: Collection[str] = ()
) -> list[str]:
    """Return which verbs the user may not use. `namespace`: empty: in all of the cluster. ApiError if none may ask."""
    resource, _, subresource = permission.resource.partition("/")
    attributes = {"namespace": namespace, "group": permission.group, "resource": resource, "subresource": subresource}

    def may(verb: str) -> bool:
        spec = {"resourceAttributes": attributes | {"verb": verb}}
        review = _review(connection, "authorization.k8s.io/v1", "SelfSubjectAccessReview", spec)
        return bool(review["status"].get("allowed"))

    return [verb for verb in permission.verbs if verb not in spared and not may(verb)]


def name_self(connection: Connection) -> str:
    """Return the user's name on the server."""
    try:
        review = _review(connection, "authentication.k8s.io/v1", "SelfSubjectReview", {})
    except ApiError as error:
        if error.status not in _NO_REVIEW:
            raise
        return UNKNOWN_USER
    return str(review["status"]["userInfo"]["username"])


def _review(connection: Connection, version: str, kind: str, spec: JsonObject) -> JsonObject:
    body = json.dumps({"apiVersion": version, "kind": kind} | ({"spec": spec} if spec else {})).encode()
    return decode_answer(connection.request("create", f"/apis/{version}/{kind.lower()}s", body=body))


def check_permissions(
    connection: Connection,
    namespace: str,
    permissions: Iterable[Permission],
    what: str,
    *,
    spared: Collection[str] = (),
) -> None:
    """Raise UserError, with all that is missing, if the user may not do what `what` needs in a namespace.

    `spared`: verbs that it can do without. Where a cluster does not say what a user may do, nothing is raised.
    """
    try:
        refused = {one: list_refused(connection, one, namespace, spared=spared) for one in permissions}
        if missing := {one: verbs for one, verbs in refused.items() if verbs}:
            raise UserError(_explain(connection, namespace, missing, what, name_self(connection)))
    except ApiError as error:
        if error.status not in _NO_REVIEW:
            raise to_user_error(error, connection.context) from error


def _explain(connection: Connection, namespace: str, missing: dict[Permission, list[str]], what: str, user: str) -> str:
    rights = "; ".join(
        f"{', '.join(verbs)} {'.'.join(filter(None, (one.resource, one.group)))} (to {one.purpose})"
        for one, verbs in missing.items()
    )
    named = "NAME" if user == UNKNOWN_USER else user
    by_chart = "upgrade the release of the chart, or " if connection.context == IN_CLUSTER else ""
    context = "CONTEXT" if connection.context == IN_CLUSTER else connection.context
    return (
        f"--on {connection.context}: {user} lacks rights in namespace {namespace} that {what} needs: {rights}. "
        f"Nothing was changed; {by_chart}have an administrator of the cluster run `benchmatrix setup --on {context} "
        f"--namespace {namespace} --user {named}`, which grants them"
    )
