"""How many Jobs at once, what they cost, and what a Workload of Kueue says of its Job."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bench.errors import UserError
from bench.schema import Device
from factories import make_cell, make_result, make_run
from fake_nodes import KUBELET_LABELS
from job_manifests import load, render
from ongoing_runs import finish, make_ongoing, submit, track
from runner.kubernetes.capacity import (
    MIN_PARALLEL,
    NodeStatus,
    Spending,
    check_prices,
    count_cells,
    find_limit,
    read_inactivity,
    read_node_status,
    read_wait,
)
from runner.kubernetes.tracked_jobs import TrackedJob
from runner.profiles.model import Profile

N2 = {"cloud.google.com/machine-family": "n2"}
T4 = {"cloud.google.com/gke-accelerator": "nvidia-tesla-t4"}
TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}


def make_pod(profile: Profile, device: str = "cpu", **cell: Any) -> dict[str, Any]:
    job = render(profile, make_cell(device=device, **cell))
    pod: dict[str, Any] = job["spec"]["template"]["spec"]
    return pod


def make_node(labels: dict[str, str] | None = None, name: str = "node", **allocatable: str) -> NodeStatus:
    whole = {"cpu": "16", "memory": "64Gi", "ephemeral-storage": "100Gi"} | allocatable
    return read_node_status(
        {
            "metadata": {"name": name, "labels": KUBELET_LABELS | (labels or N2)},
            "spec": {"taints": [TAINT] if labels else []},
            "status": {"allocatable": whole, "conditions": [{"type": "Ready", "status": "True"}]},
        },
        taken={},
    )


@pytest.mark.parametrize(
    ("num_fitting", "num_at_start", "limit"),
    [
        (1, 1, 2),  # one T4: one cell that runs, one that takes its place
        (10, 10, 20),
        (0, 0, MIN_PARALLEL),  # scaled to zero: somebody has to ask for the first node
        (4, 1, 4),  # an autoscaler added three: none of them is left without a cell,
        (3, 1, 3),  # and none asks for two more
        (0, 5, 10),
    ],
)
def test_in_flight_follows_the_nodes(num_fitting: int, num_at_start: int, limit: int) -> None:
    assert find_limit(num_fitting, num_at_start) == limit


def test_pods_that_wait_never_add_nodes_without_end() -> None:
    """An autoscaler adds a node for every pod that waits: the limit must not follow it up."""
    num_nodes = num_at_start = 3
    for _ in range(10):
        num_nodes = find_limit(num_nodes, num_at_start)
    assert num_nodes == 2 * num_at_start


def test_a_node_holds_one_cell_that_is_alone_and_otherwise_as_many_as_it_has_room_for() -> None:
    alone = load("gke")
    gpu = {"nvidia.com/gpu": "4"}
    nodes = [make_node(name="a"), make_node(name="b"), make_node(name="c", cpu="3"), make_node(T4, "d", **gpu)]
    assert count_cells([make_pod(alone)], nodes) == 2
    assert count_cells([make_pod(alone, "gpu")], nodes) == 1

    pools = {name: pool.model_copy(update={"is_alone_on_node": False}) for name, pool in alone.pools.items()}
    shared = load("gke", pools=pools)
    assert count_cells([make_pod(shared)], nodes) == 2 * (16 // alone.pools["cpu"].cpus)
    assert count_cells([make_pod(shared, "gpu")], nodes) == 4


def test_a_node_holds_a_group_if_it_has_room_for_all_its_tenants() -> None:
    profile = load("kind")
    cpus = profile.pools["cpu"].cpus
    pods = [make_pod(profile, tenants=number) for number in (1, 2, 4)]
    rooms = [make_node(name=f"{number}", cpu=str(number * cpus)) for number in (1, 2, 3, 4)]
    assert [count_cells([pod], rooms) for pod in pods] == [4, 3, 1]


def test_nodes_that_hold_any_of_several_cells_are_counted_once() -> None:
    base = load("gke")
    assert base.gpu is not None
    label = base.gpu.sharing["mps"].clients_label
    assert label is not None
    offered = base.gpu.sharing["mps"].model_copy(update={"clients": (2, 4)})
    gpu = base.gpu.model_copy(update={"sharing": {"mps": offered}})
    profile = base.model_copy(update={"gpu": gpu})
    pods = [make_pod(profile, "gpu", tenants=number, sharing="mps") for number in (2, 4)]
    strategy = {"cloud.google.com/gke-gpu-sharing-strategy": "mps"}
    nodes = [
        make_node(T4 | strategy | {label: clients}, name, **{"nvidia.com/gpu": clients})
        for name, clients in (("a", "2"), ("b", "4"), ("c", "4"))
    ]
    whole = make_node(T4, "d", **{"nvidia.com/gpu": "1"})
    assert [count_cells([pod], [*nodes, whole]) for pod in pods] == [1, 2]
    assert count_cells(pods, [*nodes, whole]) == 3
    assert count_cells(pods[1:], [*nodes, whole]) == 2
    roomy = [make_pod(load("kind"), tenants=number) for number in (1, 2)]
    for pod in roomy:
        del pod["affinity"]["podAntiAffinity"]
    sixteen = make_node(None, "e", cpu="16", **{"ephemeral-storage": "500Gi"})
    assert count_cells(roomy, [sixteen]) == 16 // load("kind").pools["cpu"].cpus


def make_profile(**prices: float) -> Profile:
    base = load("gke")
    pools = {name: pool.model_copy(update={"price_per_hour": prices.get(name)}) for name, pool in base.pools.items()}
    return base.model_copy(update={"pools": pools, "currency": "EUR"})


def make_spending(folder: Path, *jobs: TrackedJob, **given: Any) -> Spending:
    return Spending(run=make_ongoing(folder, *jobs, profile=make_profile(cpu=0.4, gpu=0.6), **given))


def record(spending: Spending, tracked: TrackedJob, seconds: float) -> None:
    result = make_result(tracked.repeat.planned.cell)
    spending.add(tracked, result.model_copy(update={"finished_at": result.started_at + timedelta(seconds=seconds)}))


def test_the_estimate_is_price_times_hours_of_the_records_by_pool(tmp_path: Path) -> None:
    spending = make_spending(tmp_path)
    record(spending, track("cpu", 1), 1800)
    record(spending, track("gpu", 2), 600)
    assert spending.cost.amount == pytest.approx(0.4 * 0.5 + 0.6 / 6)
    assert str(spending.cost) == "0.30 EUR"


def test_records_that_were_there_at_the_start_count(tmp_path: Path) -> None:
    cells = [make_cell(seed=1), make_cell(seed=2, device="gpu")]
    spending = make_spending(tmp_path, plan=make_run(cells))
    spending.add_records({(cells[0].cell_id, 1): 3600.0, (cells[1].cell_id, 3): 3600.0})
    assert spending.cost.amount == pytest.approx(1.0)


def test_nodes_are_capped_over_all_pools(tmp_path: Path) -> None:
    first, second, third = track("cpu", 1), track("gpu", 2), track("cpu", 3)
    spending = make_spending(tmp_path, first, second, third, max_nodes=2)
    submit(spending.run.jobs, first)
    assert spending.has_room(third)
    submit(spending.run.jobs, second)
    assert not spending.has_room(third)


def test_money_is_capped_with_what_is_unfinished_at_its_timeout_until_one_has_ended(tmp_path: Path) -> None:
    first, second, third, *others = (track("gpu", seed, timeout_seconds=600.0) for seed in range(9))
    spending = make_spending(tmp_path, first, second, third, *others, max_cost=0.35)
    jobs = spending.run.jobs
    submit(jobs, first, second)  # 0.10 each at their timeouts
    assert spending.has_room(third)
    submit(jobs, third)
    assert not spending.has_room(others[0])

    finish(jobs, first)
    record(spending, first, 300)  # 0.05 on average: 0.05 spent, 0.10 to come from two, room for four more
    for tracked in others[:4]:
        assert spending.has_room(tracked)
        submit(jobs, tracked)
    assert not spending.has_room(others[4])


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_a_cap_below_one_timeout_allows_one_cell_at_a_time_until_it_is_reached(device: Device, tmp_path: Path) -> None:
    first, second = track(device, 1), track(device, 2)
    spending = make_spending(tmp_path, first, second, max_cost=0.01)
    assert spending.has_room(first)
    submit(spending.run.jobs, first)
    assert not spending.has_room(second)
    finish(spending.run.jobs, first)
    record(spending, first, 60)
    assert not spending.has_room(second)


def test_a_cap_on_money_needs_the_prices_of_the_pools_that_the_run_needs() -> None:
    profile = make_profile(gpu=0.6)
    check_prices(profile, ["gpu"], 1.0)
    check_prices(profile, ["cpu", "gpu"], None)
    with pytest.raises(UserError, match=r"--max-cost: profile gke: pools\.cpu\.price_per_hour: is missing"):
        check_prices(profile, ["cpu", "gpu"], 1.0)


def make_workload(*conditions: tuple[str, str, str, str], **status: Any) -> dict[str, Any]:
    found = [
        {"type": kind, "status": held, "reason": reason, "message": text} for kind, held, reason, text in conditions
    ]
    return {"metadata": {"name": "job-a"}, "spec": {"active": True}, "status": {"conditions": found} | status}


RESERVED = ("QuotaReserved", "True", "QuotaReserved", "")
CHECKS = [{"name": "budget", "state": "Pending", "message": "asked"}, {"name": "nodes", "state": "Ready"}]


@pytest.mark.parametrize(
    ("workload", "wait"),
    [
        (
            make_workload(("QuotaReserved", "False", "Pending", "insufficient unused quota")),
            "insufficient unused quota",
        ),
        (make_workload(RESERVED, ("Admitted", "True", "Admitted", "")), None),
        (make_workload(("Finished", "True", "JobFinished", "")), None),
        (
            make_workload(RESERVED, admissionChecks=CHECKS),
            "it has its quota and waits for admission checks: budget is Pending asked",
        ),
        (make_workload(), "Kueue has not said why"),
        (make_workload() | {"spec": {"active": False}}, "its Workload job-a was deactivated"),
    ],
)
def test_a_workload_says_why_its_job_waits(workload: dict[str, Any], wait: str | None) -> None:
    assert read_wait(workload) == wait


@pytest.mark.parametrize(
    ("spec", "active", "expected"),
    [
        ({"stopPolicy": "Hold"}, "True", "it is stopped (stopPolicy Hold)"),
        ({"stopPolicy": "None"}, "False", "it is not active: FlavorNotFound"),
        ({}, "True", ""),
        ({}, None, ""),  # Kueue has not looked at it yet
    ],
)
def test_a_queue_that_admits_nothing_says_why(spec: dict[str, str], active: str | None, expected: str) -> None:
    conditions = [{"type": "Active", "status": active, "reason": "FlavorNotFound"}] if active else []

    assert read_inactivity({"spec": spec, "status": {"conditions": conditions}}) == expected
