"""Checks of the API server: that it answers, its version, its clock, and what the user may do there."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from http import HTTPStatus

from bench.cluster_contexts import IN_CLUSTER
from runner.kubernetes.access_reviews import may, review_self
from runner.kubernetes.answers import ApiObject
from runner.kubernetes.api_errors import ApiError
from runner.kubernetes.doctor.context import DoctorContext
from runner.kubernetes.doctor.findings import Finding, FindingState
from runner.kubernetes.permissions import (
    CLEANUP_PERMISSIONS,
    NODE_PERMISSION,
    QUEUE_PERMISSIONS,
    RUN_PERMISSIONS,
    Permission,
)

API_SERVER, CLOCK = "API server", "clock"
MIN_VERSION = (1, 29)
"""The first with `podReplacementPolicy` of Jobs enabled by default: in earlier ones two attempts may run at once.
https://kubernetes.io/docs/reference/command-line-tools-reference/feature-gates/ (JobPodReplacementPolicy)"""
SKEW_SECONDS = 5.0
"""More than the time of a request and the server's rounding to whole seconds explain."""
MAX_SKEW_SECONDS = 900.0
"""S3 refuses signatures that are off by more: RequestTimeTooSkewed,
https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html"""


def check_version(context: DoctorContext) -> Finding:
    """Find the version of the API server, and the name that it knows the user by; ApiError if it does not answer."""
    version = context.connection.get_object("/version")
    user = review_self(context.connection)[0]
    number = _read_version(version)
    message = f"{version['gitVersion']}, where you are {user}"
    if number < MIN_VERSION:
        needed = ".".join(map(str, MIN_VERSION))
        hint = f"Jobs need {needed} or newer: before it, two attempts at a cell may run at once"
        return Finding(check=API_SERVER, state="failed", message=message, hint=hint)
    return Finding(check=API_SERVER, state="ok", message=message)


def _read_version(version: ApiObject) -> tuple[int, int]:
    major, minor = (re.match("[0-9]{1,4}", version[name]) for name in ("major", "minor"))
    return (int(major[0]), int(minor[0])) if major and minor else (0, 0)


def explain_unreachable(error: ApiError) -> Finding:
    """Return the finding about an API server that does not answer, or refuses the user."""
    hint = (
        "log in to the cluster again"
        if error.status == HTTPStatus.UNAUTHORIZED
        else "check that it runs, and the server in the kubeconfig"
    )
    return Finding(check=API_SERVER, state="failed", message=error.message, hint=hint)


def check_clock(context: DoctorContext) -> Finding:
    """Find how far this machine's clock is from the API server's."""
    before = datetime.now(UTC)
    created = review_self(context.connection)[1]
    if created is None:
        message = "not checked: the server does not give its time"
        return Finding(check=CLOCK, state="warning", message=message, hint="compare the clocks yourself")
    return describe_clock_finding(created, before=before, after=datetime.now(UTC))


def describe_clock_finding(server_time: datetime, *, before: datetime, after: datetime) -> Finding:
    """Return the finding about a clock. `server_time`, in whole seconds, was taken between `before` and `after`."""
    skew = max(0.0, (server_time - after).total_seconds(), (before - server_time).total_seconds() - 1)
    message = f"{skew:.0f} s from the server's" if skew else "agrees with the server's"
    if skew <= SKEW_SECONDS:
        return Finding(check=CLOCK, state="ok", message=message)
    state: FindingState = "failed" if skew > MAX_SKEW_SECONDS else "warning"
    return Finding(check=CLOCK, state=state, message=message, hint="set this machine's clock, for example by NTP")


def check_permissions(context: DoctorContext) -> Iterator[Finding]:
    """Find whether the user may do what the runner does. What it can do without is a warning at most."""
    for permission in RUN_PERMISSIONS:
        yield _check_permission(context, permission, f"permission: {permission.resource}", if_refused="failed")
    housekeeping = () if context.target.context == IN_CLUSTER else CLEANUP_PERMISSIONS  # a runner needs none of them
    for permission in housekeeping:
        check = f"permission: {permission.resource}, to cancel and clean"
        yield _check_permission(context, permission, check, if_refused="warning")
    for permission in QUEUE_PERMISSIONS if context.target.queue is not None else ():
        check = f"permission: {permission.resource}, to explain what waits"
        yield _check_permission(context, permission, check, if_refused="warning")
    yield _check_node_permission(context)


def _check_node_permission(context: DoctorContext) -> Finding:
    """Find whether results can say which machines they are from. Without, a run measures all the same."""
    check = f"permission: {NODE_PERMISSION.resource}, to say which machines"
    if all(may(context.connection, NODE_PERMISSION, verb, "") for verb in NODE_PERMISSION.verbs):
        return Finding(check=check, state="ok", message=", ".join(NODE_PERMISSION.verbs))
    hint = (
        f"needed to {NODE_PERMISSION.purpose}, which is unknown otherwise; an administrator grants it: `kubectl "
        "create clusterrole benchmatrix-nodes --verb get,list --resource nodes`, then `kubectl create "
        "clusterrolebinding benchmatrix-nodes --clusterrole benchmatrix-nodes --user NAME`, with the name above"
    )
    return Finding(check=check, state="warning", message="you may not get and list nodes", hint=hint)


def _check_permission(context: DoctorContext, permission: Permission, check: str, if_refused: FindingState) -> Finding:
    refused = [verb for verb in permission.verbs if not may(context.connection, permission, verb, context.namespace)]
    if not refused:
        return Finding(check=check, state="ok", message=", ".join(permission.verbs))
    message = f"you may not {', '.join(refused)} {permission.resource} in namespace {context.namespace}"
    words = f"setup --queue {context.target.queue}" if permission in QUEUE_PERMISSIONS else "setup"
    hint = f"needed to {permission.purpose}; `benchmatrix {words} --user NAME` by an administrator grants it"
    return Finding(check=check, state=if_refused, message=message, hint=hint)
