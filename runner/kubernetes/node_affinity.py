"""The node affinity of a pod: where Kubernetes keeps it, and what it requires."""

from collections.abc import Mapping, Sequence
from typing import Any

# https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#node-affinity
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
MAX_WEIGHT = 100
"""The most that the API takes for a preference: it goes before what else the scheduler weighs."""


def list_required_terms(pod: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the alternatives of what a pod's spec requires of a node; a node must meet all of one. Empty: nothing."""
    terms: Sequence[Mapping[str, Any]] = (
        pod.get("affinity", {}).get("nodeAffinity", {}).get(REQUIRED, {}).get("nodeSelectorTerms", ())
    )
    return terms
