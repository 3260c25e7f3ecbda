"""Find the nodes of a cluster that can hold a pod, and why others cannot.

The conditions are those of the scheduler's plugins NodeUnschedulable, TaintToleration, NodeAffinity and
NodeResourcesFit, on empty nodes: what runs there now will end, but pods of DaemonSets stay.
https://kubernetes.io/docs/reference/scheduling/config/#scheduling-plugins
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from runner.kubernetes.objects import INSTANCE_TYPE, list_required_terms, read_quantity

# https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/: effects that keep a pod away
KEEPING_AWAY = ("NoSchedule", "NoExecute")
GIB = 2**30
BYTES = ("memory", "ephemeral-storage")
"""Resources that are counted in bytes."""
Resources = Mapping[str, Decimal]


@dataclass(frozen=True, kw_only=True)
class NodeStatus:
    """The parts of a node that decide which pods it can hold."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Mapping[str, str], ...]
    is_cordoned: bool
    is_ready: bool
    free: Resources
    """Allocatable less what pods of DaemonSets request; bytes, cores, GPUs."""

    @property
    def kind(self) -> str:
        """Instance type and what it has for cells."""
        parts = [f"{float(self.free.get('cpu', 0)):.3g} CPUs"]
        parts.append(f"{float(self.free.get('memory', 0)) / GIB:.3g} GiB")
        parts += [f"{amount} {name}" for name, amount in sorted(self.free.items()) if "/" in name and amount]
        return f"{self.labels.get(INSTANCE_TYPE, 'no instance type')}, {', '.join(parts)}"


@dataclass(frozen=True, kw_only=True)
class Fit:
    """Which nodes can hold a pod."""

    fitting: tuple[NodeStatus, ...]
    unfit: Mapping[str, Sequence[NodeStatus]]
    """The others, by why they cannot."""

    def describe(self) -> tuple[str, ...]:
        """Return a line for each group of nodes."""
        lines = [f"{number} can: {kind}" for kind, number in Counter(node.kind for node in self.fitting).items()]
        for reasons, nodes in self.unfit.items():
            kinds = "; ".join(dict.fromkeys(node.kind for node in nodes))
            more = ", ..." if len(nodes) > 1 else ""
            lines.append(f"{len(nodes)} cannot ({nodes[0].name}{more}: {kinds}): {reasons}")
        return tuple(lines)


def read_node_status(node: Mapping[str, Any], taken: Resources) -> NodeStatus:
    """Return what matters of a node. `taken`: what pods of DaemonSets request there."""
    spec, status = node.get("spec", {}), node.get("status", {})
    allocatable = {name: read_quantity(amount) for name, amount in status.get("allocatable", {}).items()}
    ready = next((item["status"] for item in status.get("conditions", ()) if item["type"] == "Ready"), "Unknown")
    return NodeStatus(
        name=node["metadata"]["name"],
        labels=node["metadata"].get("labels", {}),
        taints=tuple(spec.get("taints", ())),
        is_cordoned=bool(spec.get("unschedulable")),
        is_ready=ready == "True",
        free={name: amount - taken.get(name, Decimal(0)) for name, amount in allocatable.items()},
    )


def count_daemon_requests(pods: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Decimal]]:
    """Add up what the pods of DaemonSets request; return it by the name of the node, and of the resource."""
    taken: defaultdict[str, defaultdict[str, Decimal]] = defaultdict(lambda: defaultdict(Decimal))
    for pod in pods:
        owners = pod["metadata"].get("ownerReferences", ())
        node = pod["spec"].get("nodeName")
        if node and any(owner["kind"] == "DaemonSet" for owner in owners):
            for name, amount in sum_requests(pod["spec"]).items():
                taken[node][name] += amount
    return {node: dict(amounts) for node, amounts in taken.items()}


def fit_pod(spec: Mapping[str, Any], nodes: Sequence[NodeStatus]) -> Fit:
    """Return which of the nodes could hold a pod if nothing but DaemonSets ran there."""
    groups: defaultdict[str, list[NodeStatus]] = defaultdict(list)
    for node in nodes:
        groups[", ".join(list_misfits(spec, node))].append(node)
    return Fit(fitting=tuple(groups.pop("", ())), unfit=groups)


def list_misfits(spec: Mapping[str, Any], node: NodeStatus) -> Iterator[str]:
    if node.is_cordoned:
        yield "cordoned"
    elif not node.is_ready:
        yield "not ready"
    yield from list_untolerated(spec.get("tolerations", ()), node)
    yield from list_label_misfits(spec, node)
    for name, amount in sum_requests(spec).items():
        free = node.free.get(name, Decimal(0))
        if free < amount:
            there = format_amount(name, free) if free > 0 else "none"
            yield f"{name}: {format_amount(name, amount)} wanted, {there} there"


def list_label_misfits(spec: Mapping[str, Any], node: NodeStatus) -> Iterator[str]:
    """Yield which of the labels that the pod asks for the node lacks, or has and should not."""
    for key, value in spec.get("nodeSelector", {}).items():
        if key not in node.labels:
            yield f"no label {key}={value}"
        elif node.labels[key] != value:
            yield f"{key} is {node.labels[key]}, not {value}"
    terms = list_required_terms(spec)
    failures = [[rule for rule in term["matchExpressions"] if not _holds(rule, node.labels)] for term in terms]
    if failures and all(failures):
        yield " nor ".join(_describe_rule(rules[0], node.labels) for rules in failures)


def list_untolerated(tolerations: Sequence[Mapping[str, str]], node: NodeStatus) -> Iterator[str]:
    for taint in node.taints:
        is_known = taint["key"].startswith("node.kubernetes.io/") and (node.is_cordoned or not node.is_ready)
        keeps_away = taint["effect"] in KEEPING_AWAY and not any(_tolerates(item, taint) for item in tolerations)
        if keeps_away and not is_known:
            value = f"={taint['value']}" if taint.get("value") else ""
            yield f"taint {taint['key']}{value}:{taint['effect']} is not tolerated"


def _tolerates(toleration: Mapping[str, str], taint: Mapping[str, str]) -> bool:
    # Those of Kueue's flavours may leave out the key (any taint) and the operator (Equal).
    if toleration.get("effect") not in (None, taint["effect"]) or toleration.get("key") not in (None, taint["key"]):
        return False
    return toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get("value", "")


def _holds(rule: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    match rule["operator"]:
        case "In":
            return labels.get(rule["key"]) in rule["values"]
        case "NotIn":  # holds without the label too
            return labels.get(rule["key"]) not in rule["values"]
        case "Exists":
            return rule["key"] in labels
        case "DoesNotExist":
            return rule["key"] not in labels
    raise ValueError(f"no operator of a profile: {rule['operator']}")


def _describe_rule(rule: Mapping[str, Any], labels: Mapping[str, str]) -> str:
    key = rule["key"]
    if rule["operator"] in ("NotIn", "DoesNotExist"):
        return f"has the label {key}={labels[key]}"
    if rule["operator"] == "Exists":
        return f"no label {key}"
    first, *others = rule["values"]
    return f"no label {key}={first}{f' (or {len(others)} others)' if others else ''}"


def format_amount(name: str, amount: Decimal) -> str:
    return f"{float(amount) / GIB:.4g} GiB" if name in BYTES else f"{float(amount):.4g}"


def sum_requests(spec: Mapping[str, Any]) -> dict[str, Decimal]:
    total: defaultdict[str, Decimal] = defaultdict(Decimal)
    for container in spec["containers"]:
        for name, amount in container.get("resources", {}).get("requests", {}).items():
            total[name] += read_quantity(amount)
    return dict(total)
