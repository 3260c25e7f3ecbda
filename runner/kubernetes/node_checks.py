"""The checks of doctor of what cells run on: nodes, images, GPUs, claims and quota. And what a finding is."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from http import HTTPStatus
from typing import Any, Literal

from bench.schema import Cell, Framework
from runner.images import locate_requirements
from runner.kubernetes.connection import ApiError, BusyError, Connection, JsonObject
from runner.kubernetes.fit import (
    NodeStatus,
    count_daemon_requests,
    fit_pod,
    format_amount,
    list_label_misfits,
    read_node_status,
    sum_requests,
)
from runner.kubernetes.kueue import find_api_version, read_inactivity
from runner.kubernetes.objects import read_quantity
from runner.kubernetes.run import ClusterTarget
from runner.profiles.model import Profile, is_shared
from runner.sources import find_source

SETUP = "`benchmatrix setup` creates it"
FindingState = Literal["ok", "warning", "failed"]


@dataclass(frozen=True)
class Finding:
    """What was found of one precondition."""

    check: str
    """Which precondition, in a few words."""
    state: FindingState
    """`warning`: it could not be checked, or a run may go well without it."""
    message: str
    hint: str = ""
    """How to fix it; empty if the check passed."""
    details: tuple[str, ...] = ()
    """Lines printed below it, such as groups of nodes."""


@dataclass(frozen=True, kw_only=True)
class CellKind:
    """Cells that differ in nothing that the cluster sees, and the Job of one of them."""

    cell: Cell
    job: JsonObject

    @property
    def place(self) -> str:
        """What decides on which nodes they can run: `the CPU`, `2 GPUs`, `1 GPU shared by 4 (mps)`."""
        cell = self.cell
        place = "the CPU" if cell.device == "cpu" else f"{cell.num_gpus} GPU{'s' if cell.num_gpus > 1 else ''}"
        if is_shared(cell):
            return f"{place} shared by {cell.tenants} ({cell.sharing})"
        return f"{place} with {cell.tenants} tenants" if cell.tenants > 1 else place

    @property
    def pod_spec(self) -> Mapping[str, Any]:
        spec: Mapping[str, Any] = self.job["spec"]["template"]["spec"]
        return spec


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A cluster, and the kinds of cells that are to run there."""

    connection: Connection
    target: ClusterTarget
    kinds: Sequence[CellKind]
    store_url: str | None
    """Where the results will go. None: it was not said."""

    @property
    def profile(self) -> Profile:
        return self.target.profile

    @property
    def namespace(self) -> str:
        return self.profile.namespace

    def find(self, path: str) -> JsonObject | None:
        """Return an object, or None if there is none; ApiError if the server refuses."""
        try:
            return self.connection.get_object(path)
        except ApiError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise


def check_object(subject: Subject, check: str, path: str, name: str, hint: str) -> Finding:
    """Return whether the object is there; `hint`: how to make it."""
    try:
        found = subject.find(f"{path}/{name}")
    except ApiError as error:
        return explain_unchecked(check, error)
    if found is None:
        return Finding(check, "failed", f"there is no {name}", hint)
    return Finding(check, "ok", f"{name} is there")


def explain_unchecked(check: str, error: ApiError) -> Finding:
    if error.status == HTTPStatus.FORBIDDEN:
        hint = "ask somebody with that permission to run `benchmatrix doctor`, or go on without"
        return Finding(check, "warning", f"not checked: you lack the permission: {error.message}", hint)
    hint = "try again when it is back" if isinstance(error, BusyError) else "ask the cluster's administrator"
    return Finding(check, "failed", f"not checked: {error.message}", hint)


# The nodes: which can hold the cells, and GPUs with drivers new enough.

AUTOSCALERS = {
    "Karpenter": "/apis/karpenter.sh",
    "the cluster autoscaler": "/api/v1/namespaces/kube-system/configmaps/cluster-autoscaler-status",
}
"""What adds nodes to a cluster, by what is known to leave a sign."""
# Labels of GPU feature discovery, newer name first:
# https://github.com/NVIDIA/k8s-device-plugin/tree/main/docs/gpu-feature-discovery#generated-labels
DRIVER_LABELS = ("nvidia.com/cuda.driver-version.major", "nvidia.com/cuda.driver.major")
# By major version of CUDA: https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html
MIN_DRIVERS = {11: 450, 12: 525, 13: 580}
DRA = "/apis/resource.k8s.io/v1"


def check_nodes(subject: Subject) -> Iterator[Finding]:
    listed = subject.connection.list_items("/api/v1/nodes")
    ended = "status.phase!=Succeeded,status.phase!=Failed"
    pods = _if_allowed(lambda: subject.connection.list_items("/api/v1/pods", fieldSelector=ended)) or []
    taken = count_daemon_requests(pods)
    nodes = [read_node_status(node, taken.get(node["metadata"]["name"], {})) for node in listed]
    autoscaler = next((name for name, path in AUTOSCALERS.items() if _if_allowed(lambda: subject.find(path))), "")  # noqa: B023
    for kind in {kind.place: kind for kind in subject.kinds}.values():
        fit = fit_pod(kind.pod_spec, nodes)
        check, message = (
            f"nodes for cells on {kind.place}",
            f"{len(fit.fitting) or 'none'} of {len(nodes)} nodes can hold one",
        )
        if fit.fitting:
            yield Finding(check, "ok", message, details=fit.describe())
        elif autoscaler:
            hint = f"{autoscaler} may add one that can; see that one of its pools has what is missing"
            yield Finding(check, "warning", message, hint, fit.describe())
        else:
            hint = "add such a node, or change the pool of the profile: its labels, tolerations, cpus or memory"
            if kind.cell.device == "gpu":
                hint += "; where nodes offer no GPU: https://github.com/NVIDIA/k8s-device-plugin"
            yield Finding(check, "failed", message, hint, fit.describe())
    yield from _check_drivers(subject, nodes)


def _if_allowed(ask: Callable[[], Any]) -> Any:
    """Return what the API server answers; None where the user may not ask."""
    try:
        return ask()
    except ApiError as error:
        if error.status != HTTPStatus.FORBIDDEN:
            raise
        return None


def _check_drivers(subject: Subject, nodes: Sequence[NodeStatus]) -> Iterator[Finding]:
    kinds = [kind for kind in subject.kinds if kind.cell.device == "gpu"]
    labelled = [node for node in nodes if any(not any(list_label_misfits(kind.pod_spec, node)) for kind in kinds)]
    for framework in sorted({kind.cell.framework for kind in kinds}) if labelled else ():
        yield _check_driver(framework, labelled)


def _check_driver(framework: Framework, nodes: Sequence[NodeStatus]) -> Finding:
    check, cuda = f"driver: {framework}", read_image_cuda(framework)
    least = MIN_DRIVERS.get(cuda[0]) if cuda else None
    if cuda is None or least is None:
        message = "unknown: no lock in images/ names the version of CUDA that the image needs"
        return Finding(check, "warning", message, "compare them yourself")
    needs = f"CUDA {cuda[0]}.{cuda[1]} of images/{framework} needs a driver from {least} on"
    texts = {node.name: next((node.labels[key] for key in DRIVER_LABELS if key in node.labels), "") for node in nodes}
    known = {name: int(text) for name, text in texts.items() if text.isdigit()}
    too_old = [name for name, driver in known.items() if driver < least]
    if too_old:
        older = f"{len(too_old)} of {len(nodes)} nodes have an older one: {known[too_old[0]]} on {too_old[0]}"
        state: FindingState = "failed" if len(too_old) == len(nodes) else "warning"
        return Finding(check, state, f"{needs}; {older}", "update the driver, or use an image with an older CUDA")
    if len(known) < len(nodes):
        message = f"{needs}; unknown on {len(nodes) - len(known)} of {len(nodes)} nodes: no label names it"
        return Finding(check, "warning", message, "GPU feature discovery sets it; or see `nvidia-smi` on a node")
    return Finding(check, "ok", f"{needs}; the oldest is {min(known.values())}")


def read_image_cuda(framework: Framework) -> tuple[int, int] | None:
    """Return the version of CUDA that this repository's image of a framework is locked to; None where none is."""
    try:
        text = find_source(locate_requirements(framework, "cuda")).read_text()
    except OSError:
        return None
    found = re.search(r"^nvidia-cuda-runtime(?:-cu\d+)?==(\d+)\.(\d+)", text, re.MULTILINE)
    return (int(found[1]), int(found[2])) if found else None


def check_claims(subject: Subject) -> Iterator[Finding]:
    gpus = subject.profile.gpu
    if gpus is None or gpus.request != "claim":
        return
    if subject.find(DRA) is None:
        hint = "it comes with Kubernetes 1.34; or write `gpu.request: limit` in the profile"
        yield Finding("device class", "failed", "the cluster has no resource.k8s.io/v1", hint)
        return
    yield check_object(
        subject, "device class", f"{DRA}/deviceclasses", gpus.device_class, "install the GPU's DRA driver"
    )
    slices = subject.connection.list_items(f"{DRA}/resourceslices")
    if num_devices := sum(len(item["spec"].get("devices") or ()) for item in slices):
        yield Finding("devices to claim", "ok", f"{num_devices} in {len(slices)} ResourceSlices")
    else:
        hint = "see that the GPU's DRA driver runs on the GPU nodes"
        yield Finding("devices to claim", "failed", "no ResourceSlice offers any", hint)
    for num_gpus in sorted({kind.cell.num_gpus for kind in subject.kinds if kind.cell.device == "gpu"}):
        path = f"{DRA}/namespaces/{subject.namespace}/resourceclaimtemplates"
        yield check_object(subject, "claim template", path, gpus.name_claim_template(num_gpus), SETUP)


# The queue.


def check_queue(subject: Subject) -> Iterator[Finding]:
    queue = subject.target.queue
    if queue is None:
        return
    version = find_api_version(subject.connection)
    if version is None:
        hint = "install it (https://kueue.sigs.k8s.io/docs/installation/), or leave --queue out"
        yield Finding("queue", "failed", "the cluster has no Kueue: it does not know kueue.x-k8s.io", hint)
        return
    found = subject.find(f"/apis/{version}/namespaces/{subject.namespace}/localqueues/{queue}")
    if found is None:
        hint = "have an administrator make one (docs/kubernetes.md has an example), or name another with --queue"
        yield Finding("queue", "failed", f"namespace {subject.namespace} has no LocalQueue {queue}", hint)
        return
    name = found["spec"]["clusterQueue"]
    yield _judge_activity("queue", f"LocalQueue {queue} of ClusterQueue {name}", found, f" ({version})")
    try:
        found = subject.find(f"/apis/{version}/clusterqueues/{name}")
    except ApiError as error:
        yield explain_unchecked("cluster queue", error)
        return
    if found is None:
        hint = "create it, or have the LocalQueue name another"
        yield Finding("cluster queue", "failed", f"there is no ClusterQueue {name}", hint)
        return
    yield _judge_activity("cluster queue", name, found, " is active")
    for kind in {kind.place: kind for kind in subject.kinds}.values():
        yield _check_quota(kind, found)


def _judge_activity(check: str, name: str, queue: JsonObject, words: str) -> Finding:
    if inactive := read_inactivity(queue):
        return Finding(check, "failed", f"{name}: {inactive}", "no Job of it starts until its owner has put that right")
    return Finding(check, "ok", f"{name}{words}")


def _check_quota(kind: CellKind, cluster_queue: Mapping[str, Any]) -> Finding:
    """Compare what one cell requests with the quota that the queue has in all its flavours together."""
    spec, name = cluster_queue["spec"], cluster_queue["metadata"]["name"]
    quotas: defaultdict[str, Decimal] = defaultdict(Decimal)
    for group in spec.get("resourceGroups") or ():
        for resource in (resource for flavor in group["flavors"] for resource in flavor["resources"]):
            quotas[resource["name"]] += read_quantity(resource["nominalQuota"])
    requests = {resource: amount for resource, amount in sum_requests(kind.pod_spec).items() if amount}
    uncovered = tuple(f"it covers no {resource}" for resource in requests if resource not in quotas)
    small = tuple(
        f"{key}: {format_amount(key, amount)} wanted, {format_amount(key, quotas[key])} is its quota"
        for key, amount in requests.items()
        if key in quotas and quotas[key] < amount
    )
    check = f"queue for cells on {kind.place}"
    if not uncovered and not small:
        message = f"ClusterQueue {name} has the quota for one; labels and taints of its flavours are not compared"
        return Finding(check, "ok", message)
    if (spec.get("cohortName") or spec.get("cohort")) and not uncovered:  # v1beta2, v1beta1
        message = f"ClusterQueue {name} admits one only with quota that its cohort lends"
        hint = "see that the cohort has so much; raise the nominalQuota where such cells must not depend on it"
        return Finding(check, "warning", message, hint, small)
    hint = "add what is missing to its resourceGroups: a resource, or quota"
    return Finding(check, "failed", f"ClusterQueue {name} never admits one", hint, (*uncovered, *small))
