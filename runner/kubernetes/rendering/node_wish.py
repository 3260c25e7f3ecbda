"""The node that a Job's pod should run on, as affinity that is added to what its pool asks for.

By the node's name (kubernetes/kubernetes#62002), which the label `kubernetes.io/hostname` need not be:
iovisor/kubectl-trace#173, rancher/local-path-provisioner#186.
"""

from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any

from runner.kubernetes.node_affinity import MAX_WEIGHT, PREFERRED, REQUIRED
from runner.kubernetes.rendering.avoided_nodes import NONE_AVOIDED, AvoidedNodes, keep_off

INSTANCE_TYPE = "node.kubernetes.io/instance-type"


@dataclass(frozen=True, kw_only=True)
class NodeWish:
    """Where a Job's pod should run."""

    node: str = ""
    """Its name: the pod waits for it. Empty: any."""
    instance_type: str = ""
    """The machine type to prefer; empty: none."""
    avoided: AvoidedNodes = NONE_AVOIDED
    """The nodes to keep off."""

    @property
    def shape(self) -> tuple[object, ...]:
        """What the Jobs of one shape have in common; the name of the node differs between them."""
        return bool(self.node), self.instance_type, self.avoided


ANY_NODE = NodeWish()


def add_wish(manifest: MutableMapping[str, Any], wish: NodeWish) -> None:
    """Add the wish to the node affinity of a Job's pod, to every term of it: terms are alternatives."""
    keep_off(manifest, wish.avoided)
    if not wish.node and not wish.instance_type:
        return
    pod = manifest["spec"]["template"]["spec"]
    affinity = pod.setdefault("affinity", {}).setdefault("nodeAffinity", {})
    if wish.node:
        by_name = {"key": "metadata.name", "operator": "In", "values": [wish.node]}
        for term in affinity.setdefault(REQUIRED, {}).setdefault("nodeSelectorTerms", [{}]):
            term.setdefault("matchFields", []).append(by_name)
    if wish.instance_type:
        by_type = {"key": INSTANCE_TYPE, "operator": "In", "values": [wish.instance_type]}
        affinity.setdefault(PREFERRED, []).append({"weight": MAX_WEIGHT, "preference": {"matchExpressions": [by_type]}})
