"""What users asked of the API server, from its audit log."""

import json
from collections.abc import Iterator
from typing import Any

from commands import create

from control_plane import ControlPlane
from runner.kubernetes.connection import Connection

Request = tuple[str, str, str]
"""API group, resource and verb."""
REVIEWS = {("authorization.k8s.io", "selfsubjectaccessreviews", "create")}
"""What every user may ask: whether it may do something (ClusterRole system:basic-user)."""


def read_requests(plane: ControlPlane, user: str) -> set[Request]:
    return {name_request(event) for event in _read_events(plane, user) if "objectRef" in event}


def read_refused(plane: ControlPlane, user: str) -> set[Request]:
    reason = "authorization.k8s.io/decision"
    refused = [event for event in _read_events(plane, user) if event["annotations"].get(reason) == "forbid"]
    return {name_request(event) for event in refused if "objectRef" in event}


def name_request(event: dict[str, Any]) -> Request:
    about = event["objectRef"]
    resource = "/".join(filter(None, (about["resource"], about.get("subresource"))))
    return about.get("apiGroup", ""), resource, event["verb"]


def list_allowed(connection: Connection, namespace: str, role: str) -> set[Request]:
    found = connection.get_object(f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles/{role}")
    return {(rule["apiGroups"][0], rule["resources"][0], verb) for rule in found["rules"] for verb in rule["verbs"]}


def request_token(connection: Connection, namespace: str, account: str, **spec: Any) -> str:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
    return str(create(connection, path, {"spec": {"expirationSeconds": 3600} | spec})["status"]["token"])


def _read_events(plane: ControlPlane, user: str) -> Iterator[dict[str, Any]]:
    for line in plane.audit_log.read_text().splitlines():
        event: dict[str, Any] = json.loads(line)
        if event["user"]["username"] == user:
            yield event
