"""Flatten where in a cluster an attempt ran into columns; nothing is known of an attempt without a placement."""

from collections.abc import Mapping
from typing import Any, Literal

from bench.schema import Environment, Placement, Run, read_placement
from bench.store import Store, parse_placement_key, placements_prefix
from collector.results.attempt_documents import read_attempt_documents
from collector.results.collection import SkippedDocument

Row = dict[str, Any]
AttemptKey = tuple[str, int, str]
"""cell_id, repeat, attempt."""
CpuManagerPolicy = Literal["static", "none"]

PLACEMENT_COLUMNS: Mapping[str, str] = {
    "instance_type": "str",
    "region": "str",
    "zone": "str",
    "is_spot": "boolean",
    "image_id": "str",
    "kubelet_version": "str",
    "cpu_manager_policy": "str",
}


def read_placements(store: Store, run: Run) -> tuple[dict[AttemptKey, Placement], list[SkippedDocument]]:
    """Return the placements of a run by their attempts, and those that cannot be read. A local run has none."""
    if run.executor != "kubernetes":
        return {}, []
    found, skipped = read_attempt_documents(
        store, placements_prefix(run.run_id), parse_placement_key, read_placement, "placement"
    )
    return {(placement.cell_id, placement.repeat, placement.attempt): placement for placement in found}, skipped


def describe_placement(placement: Placement | None, environment: Environment | None) -> Row:
    """Return the columns PLACEMENT_COLUMNS of one attempt; what is unknown is left out."""
    if placement is None:
        return {}
    row: Row = {"image_id": placement.image_id, "cpu_manager_policy": find_cpu_manager_policy(placement, environment)}
    if placement.node is not None:
        row |= placement.node.model_dump(include=set(PLACEMENT_COLUMNS))
    return row


def find_cpu_manager_policy(placement: Placement, environment: Environment | None) -> CpuManagerPolicy | None:
    """Return the kubelet's CPU manager policy, as far as the cores that the attempt saw give it away; None: unknown.

    The policy `static` gives a container of a Guaranteed pod that requests whole cores exactly these cores as its
    affinity, and `none` gives it all cores of the node:
    https://kubernetes.io/docs/tasks/administer-cluster/cpu-management-policies/
    """
    num_cpus = None if placement.node is None else placement.node.num_cpus
    request = placement.cpu_request_cores
    if environment is None or num_cpus is None or request is None or placement.qos_class != "Guaranteed":
        return None
    if request != int(request) or request >= num_cpus:
        return None
    if environment.num_visible_cores == request:
        return "static"
    return "none" if environment.num_visible_cores == num_cpus else None
