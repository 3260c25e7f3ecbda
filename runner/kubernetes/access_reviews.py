"""Asks the API server what the user may do, so that a command is refused before it has changed anything."""

import json
from collections.abc import Collection, Iterable
from datetime import datetime
from http import HTTPStatus

from bench.errors import UserError
from runner.cluster_contexts import IN_CLUSTER
from runner.kubernetes.api_errors import ApiError, to_user_error
from runner.kubernetes.connection import Connection, decode_answer
from runner.kubernetes.permissions import Permission

UNKNOWN_USER = "a user that it does not name"
_NO_REVIEW = (HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND)
"""What a cluster answers that lets this user ask nothing about its rights."""


def may(connection: Connection, permission: Permission, verb: str, namespace: str) -> bool:
    """Ask whether the user may. `namespace`: empty: in all of the cluster. ApiError if that may not be asked."""
    attributes = {
        "namespace": namespace,
        "verb": verb,
        "group": permission.group,
        "resource": permission.resource.partition("/")[0],
        "subresource": permission.resource.partition("/")[2],
    }
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    review = decode_answer(connection.request("create", path, body=json.dumps(body).encode()))
    return bool(review["status"].get("allowed"))


def review_self(connection: Connection) -> tuple[str, datetime | None]:
    """Return the user's name on the server, and the server's time or None if it does not say."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    try:
        review = decode_answer(connection.request("create", path, body=json.dumps(body).encode()))
    except ApiError as error:
        if error.status not in _NO_REVIEW:
            raise
        return UNKNOWN_USER, None
    created = review["metadata"].get("creationTimestamp")
    return str(review["status"]["userInfo"]["username"]), datetime.fromisoformat(created) if created else None


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
        missing = {
            permission: refused
            for permission in permissions
            if (
                refused := [
                    verb
                    for verb in permission.verbs
                    if verb not in spared and not may(connection, permission, verb, namespace)
                ]
            )
        }
        if missing:
            raise UserError(_explain(connection, namespace, missing, what, review_self(connection)[0]))
    except ApiError as error:
        if error.status not in _NO_REVIEW:
            raise to_user_error(error, connection.context) from error


def _explain(connection: Connection, namespace: str, missing: dict[Permission, list[str]], what: str, user: str) -> str:
    rights = "; ".join(
        f"{', '.join(verbs)} {_name(permission)} (to {permission.purpose})" for permission, verbs in missing.items()
    )
    named = "NAME" if user == UNKNOWN_USER else user
    by_chart = "upgrade the release of the chart, or " if connection.context == IN_CLUSTER else ""
    context = "CONTEXT" if connection.context == IN_CLUSTER else connection.context
    return (
        f"--on {connection.context}: {user} lacks rights in namespace {namespace} that {what} needs: {rights}. "
        f"Nothing was changed; {by_chart}have an administrator of the cluster run `benchmatrix setup --on {context} "
        f"--namespace {namespace} --user {named}`, which grants them"
    )


def _name(permission: Permission) -> str:
    return f"{permission.resource}.{permission.group}" if permission.group else permission.resource
