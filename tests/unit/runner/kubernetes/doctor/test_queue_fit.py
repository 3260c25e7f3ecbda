"""runner.kubernetes.doctor.queue_fit: which ClusterQueues can ever admit a pod, and what is in the way."""

from typing import Any

import pytest

from runner.kubernetes.doctor.queue_fit import fit_queue

GPU_LABEL = "cloud.google.com/gke-accelerator"
T4 = {"spec": {"nodeLabels": {GPU_LABEL: "nvidia-tesla-t4"}}}
TAINTED = {"spec": {"nodeTaints": [{"key": "nvidia.com/gpu", "value": "", "effect": "NoSchedule"}]}}
CPU = {"cpu": "4", "memory": "14Gi"}
GPU = {"cpu": "3", "memory": "10Gi", "nvidia.com/gpu": "1"}
NO_GPUS = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
    {"matchExpressions": [{"key": GPU_LABEL, "operator": "DoesNotExist"}]}]}}}  # fmt: skip


def make_pod(requests: dict[str, str], **spec: Any) -> dict[str, Any]:
    return {"containers": [{"resources": {"requests": requests}}]} | spec


CPU_POD = make_pod(CPU, affinity=NO_GPUS)
GPU_POD = make_pod(
    GPU, nodeSelector={GPU_LABEL: "nvidia-tesla-t4"}, tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists"}]
)


def make_queue(quotas: dict[str, dict[str, Any]], **spec: Any) -> dict[str, Any]:
    """Return a ClusterQueue with one resource group; a quota is a text or a mapping with limits."""
    flavors = [
        {
            "name": name,
            "resources": [
                {"name": key} | (amount if isinstance(amount, dict) else {"nominalQuota": amount})
                for key, amount in amounts.items()
            ],
        }
        for name, amounts in quotas.items()
    ]
    group = {"coveredResources": list(next(iter(quotas.values()))), "flavors": flavors}
    return {"metadata": {"name": "team-a"}, "spec": {"resourceGroups": [group]} | spec}


BOTH = {
    "cpu": {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "0"},
    "t4": {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "2"},
}


def test_a_queue_with_a_flavour_for_each_pool_admits_both() -> None:
    for pod in (CPU_POD, GPU_POD):
        assert fit_queue(pod, make_queue(BOTH), {"t4": T4}).misfits == ()


def test_a_queue_without_a_flavour_for_cpu_nodes_never_admits_a_cpu_cell() -> None:
    queue = make_queue({"t4": BOTH["t4"]})

    fit = fit_queue(CPU_POD, queue, {"t4": T4})

    assert fit.misfits == (f"flavour t4: has the label {GPU_LABEL}=nvidia-tesla-t4",)
    assert fit_queue(GPU_POD, queue, {"t4": T4}).misfits == ()


def test_a_taint_of_a_flavour_keeps_cells_away_that_do_not_tolerate_it() -> None:
    queue = make_queue({"t4": BOTH["t4"]})

    assert fit_queue(CPU_POD, queue, {"t4": TAINTED}).misfits == (
        "flavour t4: taint nvidia.com/gpu:NoSchedule is not tolerated",
    )
    lenient = {"spec": TAINTED["spec"] | {"tolerations": [{"operator": "Exists"}]}}
    assert fit_queue(CPU_POD, queue, {"t4": lenient}).misfits == ()
    assert fit_queue(GPU_POD, queue, {"t4": TAINTED}).misfits == ()


def test_a_resource_that_no_group_covers_is_named() -> None:
    pod = make_pod(CPU | {"ephemeral-storage": "8Gi"})

    assert fit_queue(pod, make_queue(BOTH), {}).misfits == ("it covers no ephemeral-storage",)


@pytest.mark.parametrize(
    ("quota", "spec", "misfits", "borrowed"),
    [
        ("0", {}, ("flavour any: cpu: 4 wanted, 0 is its quota",), ()),
        ("4", {}, (), ()),
        ("2", {"cohortName": "all"}, (), ("flavour any: cpu: 4 wanted, 2 is its quota",)),
        ("2", {"cohort": "all"}, (), ("flavour any: cpu: 4 wanted, 2 is its quota",)),  # v1beta1
        (
            {"nominalQuota": "2", "borrowingLimit": "1"},
            {"cohortName": "all"},
            ("flavour any: cpu: 4 wanted, 2 is its quota, 1 may be borrowed",),
            (),
        ),
    ],
)
def test_a_quota_must_hold_the_largest_cell_or_be_lent(
    quota: Any, spec: dict[str, str], misfits: tuple[str, ...], borrowed: tuple[str, ...]
) -> None:
    fit = fit_queue(make_pod(CPU), make_queue({"any": {"cpu": quota, "memory": "64Gi"}}, **spec), {})

    assert (fit.misfits, fit.borrowed) == (misfits, borrowed)
