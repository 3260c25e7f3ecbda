"""The columns on where in a cluster an attempt ran; nothing is known of an attempt without a placement."""

from collections.abc import Iterable, Mapping
from typing import Literal

CpuManagerPolicy = Literal["static", "none"]

PLACEMENT_COLUMNS: Mapping[str, str] = {
    "instance_type": "str",
    "region": "str",
    "zone": "str",
    "is_spot": "boolean",
    "image_id": "str",
    "kubelet_version": "str",
    "cpu_manager_policy": "str",
    "other_containers": "str",
}


def find_cpu_manager_policies(
    requests: Iterable[float | None],
    num_cpus: Iterable[int | None],
    qos_classes: Iterable[str | None],
    num_visible_cores: Iterable[int | None],
) -> list[CpuManagerPolicy | None]:
    """Return what `find_cpu_manager_policy` finds of each attempt."""
    attempts = zip(requests, num_cpus, qos_classes, num_visible_cores, strict=True)
    return [find_cpu_manager_policy(*attempt) for attempt in attempts]


def find_cpu_manager_policy(
    request: float | None, num_cpus: int | None, qos_class: str | None, num_visible_cores: int | None
) -> CpuManagerPolicy | None:
    """Return the kubelet's CPU manager policy, as far as the cores that the attempt saw give it away; None: unknown.

    `request`: the cores that its container requested; `num_cpus`: those of its node.

    The policy `static` gives a container of a Guaranteed pod that requests whole cores exactly these cores as its
    affinity, and `none` gives it all cores of the node:
    https://kubernetes.io/docs/tasks/administer-cluster/cpu-management-policies/
    """
    if num_visible_cores is None or num_cpus is None or request is None or qos_class != "Guaranteed":
        return None
    if request != int(request) or request >= num_cpus:
        return None
    if num_visible_cores == request:
        return "static"
    return "none" if num_visible_cores == num_cpus else None
