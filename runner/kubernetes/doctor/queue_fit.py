"""Decide whether a ClusterQueue of Kueue can ever admit a pod: resources, flavours and quotas, as Kueue compares them.

The rules are those of Kueue's flavour assigner (pkg/scheduler/flavorassigner/flavorassigner.go), on an empty queue:
https://kueue.sigs.k8s.io/docs/concepts/cluster_queue/ and https://kueue.sigs.k8s.io/docs/concepts/resource_flavor/.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from runner.kubernetes.doctor.node_fit import NodeStatus, format_amount, list_label_misfits, list_untolerated
from runner.kubernetes.node_affinity import REQUIRED, list_required_terms
from runner.kubernetes.node_labels import read_quantity
from runner.kubernetes.pod_requests import sum_requests


@dataclass(frozen=True, kw_only=True)
class QueueFit:
    """How a ClusterQueue suits a pod."""

    misfits: tuple[str, ...]
    """Why Kueue never admits it; empty: it does, when its turn comes."""
    borrowed: tuple[str, ...] = ()
    """What the queue itself lacks and the cohort has to lend."""


def fit_queue(
    spec: Mapping[str, Any], cluster_queue: Mapping[str, Any], flavors: Mapping[str, Mapping[str, Any]]
) -> QueueFit:
    """Return why a ClusterQueue can never admit a pod of this specification, or else what it has to borrow for it.

    `flavors`: ResourceFlavors by name; one that is not among them counts as one without labels and taints.
    """
    requests = {name: amount for name, amount in sum_requests(spec).items() if amount}
    queue_spec = cluster_queue["spec"]
    groups = queue_spec.get("resourceGroups") or ()
    covered = {name for group in groups for name in group["coveredResources"]}
    misfits = [f"it covers no {name}" for name in requests if name not in covered]
    borrowed: list[str] = []
    in_cohort = bool(queue_spec.get("cohortName") or queue_spec.get("cohort"))  # v1beta2, v1beta1
    for group in groups:
        wanted = {name: amount for name, amount in requests.items() if name in group["coveredResources"]}
        if wanted:
            fits = [_fit_flavor(spec, wanted, quotas, flavors, in_cohort=in_cohort) for quotas in group["flavors"]]
            best = min(fits, key=lambda fit: (bool(fit.misfits), bool(fit.borrowed)))
            borrowed += best.borrowed if not best.misfits else ()
            misfits += [reason for fit in fits for reason in fit.misfits] if best.misfits else ()
    return QueueFit(misfits=tuple(misfits), borrowed=tuple(borrowed))


def _fit_flavor(
    spec: Mapping[str, Any],
    wanted: Mapping[str, Decimal],
    quotas: Mapping[str, Any],
    flavors: Mapping[str, Mapping[str, Any]],
    *,
    in_cohort: bool,
) -> QueueFit:
    name = quotas["name"]
    reasons = list(_list_flavor_misfits(spec, flavors.get(name, {}).get("spec") or {}))
    if reasons:
        return QueueFit(misfits=tuple(f"flavour {name}: {reason}" for reason in reasons))
    misfits, borrowed = [], []
    resources = {item["name"]: item for item in quotas["resources"]}
    for resource, amount in wanted.items():
        if resource not in resources:  # its API refuses such a queue
            misfits.append(f"flavour {name}: {resource}: it has no quota")
            continue
        nominal = read_quantity(str(resources[resource]["nominalQuota"]))
        limit = resources[resource].get("borrowingLimit")
        if amount <= nominal:
            continue
        text = f"flavour {name}: {resource}: {format_amount(resource, amount)} wanted, "
        text += f"{format_amount(resource, nominal)} is its quota"
        if not in_cohort:
            misfits.append(text)
        elif limit is not None and amount > nominal + read_quantity(str(limit)):
            misfits.append(f"{text}, {format_amount(resource, read_quantity(str(limit)))} may be borrowed")
        else:
            borrowed.append(text)
    return QueueFit(misfits=tuple(misfits), borrowed=tuple(borrowed))


def _list_flavor_misfits(spec: Mapping[str, Any], flavor: Mapping[str, Any]) -> Iterator[str]:
    """Yield why the pod cannot use nodes of a flavour, as far as its labels and taints say."""
    labels: Mapping[str, str] = flavor.get("nodeLabels") or {}
    node = NodeStatus(
        name="", labels=labels, taints=tuple(flavor.get("nodeTaints") or ()), is_cordoned=False, is_ready=True, free={}
    )
    yield from list_untolerated([*spec.get("tolerations", ()), *(flavor.get("tolerations") or ())], node)
    yield from list_label_misfits(_keep_keys(spec, labels), node)


def _keep_keys(spec: Mapping[str, Any], labels: Mapping[str, str]) -> dict[str, Any]:
    """Return what the pod asks of labels that the flavour names; the others it says nothing about."""
    kept = [[rule for rule in term["matchExpressions"] if rule["key"] in labels] for term in list_required_terms(spec)]
    selected = {key: value for key, value in spec.get("nodeSelector", {}).items() if key in labels}
    if not all(kept):  # one of the alternatives asks for nothing else
        kept = []
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": rules} for rules in kept]}}}
    return {"nodeSelector": selected, "affinity": affinity}
