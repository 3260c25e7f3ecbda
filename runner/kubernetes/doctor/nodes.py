"""Checks of the nodes: which can hold the cells, whether they have the images, and GPUs with drivers new enough."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from http import HTTPStatus

from bench.schema import Framework
from runner.images.names import LOCAL_REGISTRY, locate_requirements
from runner.kubernetes.connection import ApiError, Connection
from runner.kubernetes.doctor import CellKind, DoctorContext, Finding, FindingState, find_object
from runner.kubernetes.fit import NodeStatus, count_daemon_requests, fit_pod, list_label_misfits, read_node_status
from runner.kubernetes.tracked_jobs import name_node_kind
from runner.profiles.pools import Gpus
from runner.sources import find_source


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


def check_nodes(context: DoctorContext, inventory: ClusterInventory) -> Iterator[Finding]:
    for kind in {kind.place: kind for kind in context.kinds}.values():
        fit = fit_pod(kind.pod_spec, inventory.nodes)
        check, total = f"nodes for cells on {kind.place}", len(inventory.nodes)
        message = f"{len(fit.fitting) or 'none'} of {total} nodes can hold one"
        if fit.fitting:
            yield Finding(check=check, state="ok", message=message, details=fit.describe())
        elif inventory.autoscaler:
            hint = f"{inventory.autoscaler} may add one that can; see that one of its pools has what is missing"
            yield Finding(check=check, state="warning", message=message, hint=hint, details=fit.describe())
        else:
            hint = "add such a node, or change the pool of the profile: its labels, tolerations, cpus or memory"
            yield Finding(check=check, state="failed", message=message, hint=hint, details=fit.describe())


def check_images(context: DoctorContext, inventory: ClusterInventory) -> Iterator[Finding]:
    """Find which image each kind of cell is run from, and whether nodes have it already. No registry is asked."""
    named = [kind for kind in context.kinds if kind.has_image]
    for kind in {(kind.cell.framework, kind.cell.device): kind for kind in named}.values():
        nodes = fit_pod(kind.pod_spec, inventory.nodes).fitting
        is_named = kind.cell.device in context.profile.images.get(kind.cell.framework, {})
        yield describe_image_finding(kind, context.profile.find_image(kind.cell), nodes, is_named=is_named)


def describe_image_finding(kind: CellKind, image: str, nodes: Sequence[NodeStatus], *, is_named: bool) -> Finding:
    """Return the finding about the image of this kind of cells. `nodes`: those that could run them.

    `is_named`: the profile's `images` gives its full name; otherwise its tag comes from the checkout, and it may not
    have been built.
    """
    check = f"image: {kind.cell.framework} for {kind.cell.device}"
    having = [node for node in nodes if image in node.images or f"docker.io/{image}" in node.images]
    if having:
        return Finding(check=check, state="ok", message=f"{image} is on {len(having)} of {len(nodes)} nodes")
    message = f"{image} is on none of the nodes that could run it, as far as they report"
    if is_named:
        return Finding(check=check, state="ok", message=f"{message}: they pull it")
    state: FindingState = "warning"
    if image.startswith(f"{LOCAL_REGISTRY}/"):  # of no registry: nothing pulls it
        hint = "bring it to them (`kind load docker-image`)"
        if nodes and all(node.names_all_images for node in nodes):
            state, message = "failed", f"{image} is on none of the nodes that could run it: cells would wait for it"
    else:
        hint = f"see that the registry has it: docker manifest inspect {image}"
    hint += "; if it was built with --base or --cpu-index, write image_base or image_cpu_index in the profile"
    return Finding(check=check, state=state, message=message, hint=hint)


# Labels of GPU feature discovery, newer name first:
# https://github.com/NVIDIA/k8s-device-plugin/tree/main/docs/gpu-feature-discovery#generated-labels
DRIVER_LABELS = ("nvidia.com/cuda.driver-version.major", "nvidia.com/cuda.driver.major")
# By major version of CUDA: https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html
MIN_DRIVERS = {11: 450, 12: 525, 13: 580}
DRA = "/apis/resource.k8s.io/v1"


def check_gpus(context: DoctorContext, inventory: ClusterInventory) -> Iterator[Finding]:
    gpus = context.profile.gpu
    kinds = [kind for kind in context.kinds if kind.cell.device == "gpu"]
    if gpus is None or not kinds:
        return
    seen: dict[str, NodeStatus] = {}
    for place, kind in {name_node_kind(kind.cell): kind for kind in reversed(kinds)}.items():
        nodes = [node for node in inventory.nodes if not any(list_label_misfits(kind.pod_spec, node))]
        seen |= {node.name: node for node in nodes}
        if gpus.request == "limit":
            yield _check_device_plugin(place, _read_resource(kind, gpus), nodes)
    if seen:
        yield from _check_drivers(kinds, list(seen.values()))


def check_claims(context: DoctorContext) -> Iterator[Finding]:
    gpus = context.profile.gpu
    if gpus is None or gpus.request != "claim":
        return
    if find_object(context.connection, DRA) is None:
        message = "the cluster has no resource.k8s.io/v1"
        hint = "it comes with Kubernetes 1.34; or write `gpu.request: limit` in the profile"
        yield Finding(check="device class", state="failed", message=message, hint=hint)
        return
    device_class = find_object(context.connection, f"{DRA}/deviceclasses/{gpus.device_class}")
    if device_class is None:
        message, hint = f"there is no DeviceClass {gpus.device_class}", "install the GPU's DRA driver"
        yield Finding(check="device class", state="failed", message=message, hint=hint)
    else:
        yield Finding(check="device class", state="ok", message=f"{gpus.device_class} is there")
    yield _check_slices(context)
    for num_gpus in sorted({kind.cell.num_gpus for kind in context.kinds if kind.cell.device == "gpu"}):
        name = gpus.name_claim_template(num_gpus)
        path = f"{DRA}/namespaces/{context.namespace}/resourceclaimtemplates/{name}"
        if find_object(context.connection, path) is None:
            hint = "`benchmatrix setup` creates it"
            yield Finding(check="claim template", state="failed", message=f"there is no {name}", hint=hint)
        else:
            yield Finding(check="claim template", state="ok", message=f"{name} is there")


def read_image_cuda(framework: Framework) -> tuple[int, int] | None:
    """Return the version of CUDA that this repository's image of a framework is locked to; None where none is."""
    try:
        text = find_source(locate_requirements(framework, "cuda")).read_text()
    except OSError:
        return None
    found = re.search(r"^nvidia-cuda-runtime(?:-cu\d+)?==(\d+)\.(\d+)", text, re.MULTILINE)
    return (int(found[1]), int(found[2])) if found else None


def _read_resource(kind: CellKind, gpus: Gpus) -> str:
    sharing = gpus.find_sharing(kind.cell)
    return (sharing.resource if sharing else None) or gpus.resource


def _check_device_plugin(place: str, resource: str, nodes: Sequence[NodeStatus]) -> Finding:
    """Return whether the nodes of a kind, such as `gpu` or `gpu (shared by mps)`, offer GPUs or shares of them."""
    check = "device plugin" if place == "gpu" else f"device plugin, {place}"
    offering = [node for node in nodes if node.free.get(resource, Decimal(0)) > 0]
    message = f"{len(offering)} of {len(nodes)} nodes with the labels of the GPU pool offer {resource}"
    if not nodes:
        return Finding(
            check=check,
            state="warning",
            message="not checked: no node has the labels of the GPU pool",
            hint="check again when there is one",
        )
    if not offering:
        hint = "install the device plugin and the driver: https://github.com/NVIDIA/k8s-device-plugin"
        return Finding(check=check, state="failed", message=message, hint=hint)
    if len(offering) < len(nodes):
        silent = next(node.name for node in nodes if node not in offering)
        hint = f"check why {silent} does not, for example: is the device plugin's pod running there?"
        return Finding(check=check, state="warning", message=message, hint=hint)
    return Finding(check=check, state="ok", message=message)


def _check_drivers(kinds: Sequence[CellKind], nodes: Sequence[NodeStatus]) -> Iterator[Finding]:
    drivers = {node.name: _read_driver(node) for node in nodes}
    known = {name: driver for name, driver in drivers.items() if driver is not None}
    for framework in sorted({kind.cell.framework for kind in kinds}):
        check, cuda = f"driver: {framework}", read_image_cuda(framework)
        least = MIN_DRIVERS.get(cuda[0]) if cuda else None
        if cuda is None or least is None:
            message = "unknown: no lock in images/ names the version of CUDA that the image needs"
            yield Finding(check=check, state="warning", message=message, hint="compare them yourself")
            continue
        needs = f"CUDA {cuda[0]}.{cuda[1]} of images/{framework} needs a driver from {least} on"
        too_old = [name for name, driver in known.items() if driver < least]
        if too_old:
            message = (
                f"{needs}; {len(too_old)} of {len(nodes)} nodes have an older one: {known[too_old[0]]} on {too_old[0]}"
            )
            state: FindingState = "failed" if len(too_old) == len(nodes) else "warning"
            hint = "update the driver, or use an image with an older CUDA"
            yield Finding(check=check, state=state, message=message, hint=hint)
        elif len(known) < len(nodes):
            message = f"{needs}; unknown on {len(nodes) - len(known)} of {len(nodes)} nodes: no label names it"
            hint = "GPU feature discovery sets it; or see `nvidia-smi` on a node"
            yield Finding(check=check, state="warning", message=message, hint=hint)
        else:
            yield Finding(check=check, state="ok", message=f"{needs}; the oldest is {min(known.values())}")


def _check_slices(context: DoctorContext) -> Finding:
    slices = context.connection.list_items(f"{DRA}/resourceslices")
    num_devices = sum(len(item["spec"].get("devices") or ()) for item in slices)
    if num_devices == 0:
        hint = "see that the GPU's DRA driver runs on the GPU nodes"
        return Finding(check="devices to claim", state="failed", message="no ResourceSlice offers any", hint=hint)
    return Finding(check="devices to claim", state="ok", message=f"{num_devices} in {len(slices)} ResourceSlices")


def _read_driver(node: NodeStatus) -> int | None:
    text = next((node.labels[label] for label in DRIVER_LABELS if label in node.labels), "")
    return int(text) if text.isdigit() else None
