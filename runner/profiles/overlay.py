"""Decide which fields of Kubernetes a profile's overlay may add to a pod, and say why others are refused."""

import re
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Annotated, Any

from pydantic import AfterValidator, JsonValue

from runner.kubernetes.names import explain_secret_variable, find_mistake

CONTAINER = "bench"
"""The one container of a cell's pod."""
CONTAINER_KEYS = (
    *("name", "env", "envFrom", "imagePullPolicy", "resources", "securityContext", "volumeDevices", "volumeMounts"),
)
"""Keys of the container that an overlay may have."""
REFUSALS: Mapping[str, str] = {
    "spec.shareProcessNamespace": "the cell must be process 1 of its container, which gets SIGTERM",
    "spec.nodeName": "it goes around the scheduler, which keeps two cells off one node; use `pools.*.node_selector`",
    "spec.resources": "the requests of the container decide what is measured: `pools.*.cpus`, `memory`",
    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution": "its terms are alternatives, so that "
    "a further one would let cells onto other machines; use `pools.*.node_affinity` or `pools.*.node_requirements`",
    "spec.initContainers": "what runs in the pod beside or before the cell is in none of its figures; put it into the "
    "image, or fill a volume beforehand",
    "spec.ephemeralContainers": "another container would use the cell's CPUs",
    "spec.containers[].resources.claims": "is a key of the profile: write `gpu.request: claim` there",
}
"""Why a field that would falsify a measurement is refused, by its place in a pod; `[]` stands for every item of a list.
What would weaken a cell's isolation is refused by Pod Security, in the namespace that `setup` makes; another value for
what the tool sets, when a Job is rendered."""


def check_overlay(overlay: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Return an overlay; ValueError with the place of the first field that is refused or that no pod has."""
    # The second relies on what the first lets through.
    found = next(chain(_find_unknown_parts(overlay), _find_refused(overlay)), None)
    if found is not None:
        raise ValueError(found)
    return overlay


Overlay = Annotated[dict[str, JsonValue], AfterValidator(check_overlay)]


def _find_unknown_parts(overlay: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is no field of a pod's template, or of the wrong kind."""
    for key in overlay:
        if key not in ("metadata", "spec"):
            yield f"{key}: unknown key; an overlay has `metadata` and `spec`, as the template of a pod"
    metadata, spec = overlay.get("metadata", {}), overlay.get("spec", {})
    for key in metadata if isinstance(metadata, dict) else ():
        if key not in ("labels", "annotations"):
            yield f"metadata.{key}: unknown key; an overlay adds `labels` and `annotations`"
    # A pod needs a container. Others that a pod needs, such as its image, the tool adds.
    whole = {"containers": [{"name": CONTAINER}]} | spec if isinstance(spec, dict) else spec
    if mistake := find_mistake({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": whole}):
        yield ": ".join(mistake)


def _find_refused(overlay: Mapping[str, Any]) -> Iterator[str]:
    for path, value in _walk(overlay, ""):
        place = ".".join(path)
        reason = REFUSALS.get(re.sub(r"\[\d+\]", "[]", place))
        if reason is not None and value not in (None, False):
            yield f"{place}: is refused: {reason}"
    for number, container in enumerate((overlay.get("spec") or {}).get("containers") or []):
        yield from _find_refused_container_parts(container, f"spec.containers[{number}]")


def _find_refused_container_parts(container: Mapping[str, Any], place: str) -> Iterator[str]:
    if container.get("name") != CONTAINER:
        yield (
            f"{place}: is refused: another container would use the cell's CPUs and outlive it; the one that may be "
            f"changed is called `{CONTAINER}`"
        )
    for key in container:
        if key not in CONTAINER_KEYS:
            yield f"{place}.{key}: is refused: the image's entry point is what is measured, alone and as it is"
    for kind in ("requests", "limits"):
        for name in (container.get("resources") or {}).get(kind) or {}:
            if name in ("cpu", "memory") or name.startswith(("nvidia.com/", "hugepages-")):
                yield (
                    f"{place}.resources.{kind}.{name}: is refused: it would change what is measured; "
                    "set `pools.*.cpus`, `pools.*.memory` or `gpu`"
                )
    for index, variable in enumerate(container.get("env") or ()):
        value = variable.get("value")  # without one it may come from a Secret
        if value and (reason := explain_secret_variable(variable["name"], str(value))):
            yield f"{place}.env[{index}].value: {reason}"


def _walk(value: Any, key: str, parents: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every value below the top with its path; items of a list follow their key as `[0]`."""
    path = (*parents, key) if key else parents
    if path:
        yield path, value
    if isinstance(value, dict):
        for name, child in value.items():
            yield from _walk(child, name, path)
    elif isinstance(value, list):
        for number, child in enumerate(value):
            yield from _walk(child, f"{key}[{number}]", parents)
