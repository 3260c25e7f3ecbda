"""Checks of the queue that Jobs are handed to: that it is there, active, and can admit each kind of cell."""

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

from runner.kubernetes.api_errors import ApiError
from runner.kubernetes.doctor.context import CellKind, DoctorContext
from runner.kubernetes.doctor.findings import Finding, explain_unchecked, find_object
from runner.kubernetes.doctor.queue_fit import fit_queue
from runner.kubernetes.kueue import find_api_version, read_inactivity

QUEUE, CLUSTER_QUEUE = "queue", "cluster queue"
INSTALLATION = "https://kueue.sigs.k8s.io/docs/installation/"


def check_queue(context: DoctorContext) -> Iterator[Finding]:
    """Find whether Kueue is there, and the LocalQueue that Jobs are handed to takes them."""
    queue = context.target.queue
    version = find_api_version(context.connection)
    if version is None:
        message = "the cluster has no Kueue: it does not know kueue.x-k8s.io"
        hint = f"install it ({INSTALLATION}), or leave --queue out"
        yield Finding(check=QUEUE, state="failed", message=message, hint=hint)
        return
    found = find_object(context.connection, f"/apis/{version}/namespaces/{context.namespace}/localqueues/{queue}")
    if found is None:
        message = f"namespace {context.namespace} has no LocalQueue {queue}"
        hint = "`benchmatrix setup --queue` creates one; or name another with --queue"
        yield Finding(check=QUEUE, state="failed", message=message, hint=hint)
        return
    name = found["spec"]["clusterQueue"]
    if inactive := read_inactivity(found):
        message = f"LocalQueue {queue} of ClusterQueue {name}: {inactive}"
        hint = "no Job of it starts until its owner has put that right"
        yield Finding(check=QUEUE, state="failed", message=message, hint=hint)
    else:
        yield Finding(check=QUEUE, state="ok", message=f"LocalQueue {queue} of ClusterQueue {name} ({version})")
    yield from _check_cluster_queue(context, version, name)


def _check_cluster_queue(context: DoctorContext, version: str, name: str) -> Iterator[Finding]:
    try:
        found = find_object(context.connection, f"/apis/{version}/clusterqueues/{name}")
    except ApiError as error:
        yield explain_unchecked(CLUSTER_QUEUE, error)
        return
    if found is None:
        message, hint = f"there is no ClusterQueue {name}", "create it, or have the LocalQueue name another"
        yield Finding(check=CLUSTER_QUEUE, state="failed", message=message, hint=hint)
        return
    if inactive := read_inactivity(found):
        hint = "no Job of it starts until its owner has put that right"
        yield Finding(check=CLUSTER_QUEUE, state="failed", message=f"{name}: {inactive}", hint=hint)
    else:
        yield Finding(check=CLUSTER_QUEUE, state="ok", message=f"{name} is active")
    flavors, unread = _read_flavors(context, version, found)
    for kind in {kind.place: kind for kind in context.kinds}.values():
        yield _check_kind(kind, found, flavors, unread)


def _check_kind(
    kind: CellKind, cluster_queue: Mapping[str, Any], flavors: Mapping[str, Mapping[str, Any]], unread: tuple[str, ...]
) -> Finding:
    """Find whether the queue admits cells of this kind when nothing else is in it."""
    check, name = f"queue for cells on {kind.place}", cluster_queue["metadata"]["name"]
    fit = fit_queue(kind.pod_spec, cluster_queue, flavors)
    if fit.misfits:
        return Finding(
            check=check,
            state="failed",
            message=f"ClusterQueue {name} never admits one",
            hint="add what is missing to its resourceGroups: a flavour for these nodes, a resource, or quota",
            details=(*fit.misfits, *unread),
        )
    if fit.borrowed:
        message = f"ClusterQueue {name} admits one only with quota that its cohort lends"
        hint = "see that the cohort has so much; raise the nominalQuota where such cells must not depend on it"
        return Finding(check=check, state="warning", message=message, hint=hint, details=(*fit.borrowed, *unread))
    if unread:
        message = f"ClusterQueue {name} has the quota for one; labels and taints of its flavours were not compared"
        hint = "ask somebody who may read ResourceFlavors to run `benchmatrix doctor`, or go on without"
        return Finding(check=check, state="warning", message=message, hint=hint, details=unread)
    return Finding(check=check, state="ok", message=f"ClusterQueue {name} can admit one")


def _read_flavors(
    context: DoctorContext, version: str, cluster_queue: Mapping[str, Any]
) -> tuple[dict[str, Mapping[str, Any]], tuple[str, ...]]:
    """Return the ResourceFlavors of a ClusterQueue by name, and a line for each that may not be read or is missing."""
    groups = cluster_queue["spec"].get("resourceGroups") or ()
    flavors: dict[str, Mapping[str, Any]] = {}
    unread = []
    for name in dict.fromkeys(flavor["name"] for group in groups for flavor in group["flavors"]):
        try:
            found = find_object(context.connection, f"/apis/{version}/resourceflavors/{name}")
        except ApiError as error:
            if error.status != HTTPStatus.FORBIDDEN:
                raise
            unread.append(f"flavour {name}: not read: {error.message}")
            continue
        if found is None:
            unread.append(f"flavour {name}: there is no such ResourceFlavor")
        else:
            flavors[name] = found
    return flavors, tuple(unread)
