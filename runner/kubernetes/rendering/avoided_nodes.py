"""Adds to a Job the nodes that its pods keep off."""

from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any

from runner.kubernetes.node_affinity import MAX_WEIGHT, PREFERRED, REQUIRED

HOSTNAME_LABEL = "kubernetes.io/hostname"


@dataclass(frozen=True, kw_only=True)
class AvoidedNodes:
    """Nodes by their label `kubernetes.io/hostname`."""

    excluded: tuple[str, ...] = ()
    """A pod waits rather than run there."""
    disliked: tuple[str, ...] = ()
    """A pod runs there only where no other node has room."""
    names: frozenset[str] = frozenset()
    """The names of all nodes whose last attempt was a fault, which their labels need not be: no pod is to be bound to
    one of them. Known even where the cluster takes no affinity to labels of nodes."""


NONE_AVOIDED = AvoidedNodes()


def keep_off(manifest: MutableMapping[str, Any], avoided: AvoidedNodes) -> None:
    """Change a Job such that its pods avoid these nodes: a requirement in each of its terms, and a preference."""
    if not avoided.excluded and not avoided.disliked:
        return
    affinity = manifest["spec"]["template"]["spec"].setdefault("affinity", {}).setdefault("nodeAffinity", {})
    if avoided.excluded:
        required = affinity.setdefault(REQUIRED, {})
        for term in required.setdefault("nodeSelectorTerms", [{}]):  # a node must meet all of one term
            term.setdefault("matchExpressions", []).append(_exclude(avoided.excluded))
    if avoided.disliked:
        preferred = affinity.setdefault(PREFERRED, [])
        preferred.append({"weight": MAX_WEIGHT, "preference": {"matchExpressions": [_exclude(avoided.disliked)]}})


def _exclude(hostnames: tuple[str, ...]) -> dict[str, Any]:
    return {"key": HOSTNAME_LABEL, "operator": "NotIn", "values": list(hostnames)}
