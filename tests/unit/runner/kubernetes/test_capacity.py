"""How many Jobs at once, what they cost, and what a Workload of Kueue says of its Job."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from factories import make_cell, make_result, make_run
from job_manifests import load
from ongoing_runs import finish, make_ongoing, submit, track
from runner.kubernetes.capacity import (
    MIN_PARALLEL,
    NodeStatus,
    Spending,
    count_cells,
    find_limit,
    read_node_status,
    read_wait,
)
from runner.kubernetes.tracked_jobs import TrackedJob
from runner.profiles.model import Profile


def make_pod(cpu: int, *, is_alone: bool = False, **labels: str) -> dict[str, Any]:
    pod: dict[str, Any] = {"containers": [{"resources": {"requests": {"cpu": str(cpu)}}}], "nodeSelector": labels}
    return pod | ({"affinity": {"podAntiAffinity": {}}} if is_alone else {})


def make_node(name: str, cpu: int, *taints: str, **labels: str) -> NodeStatus:
    keeping_away = [{"key": key, "effect": "NoSchedule"} for key in taints]
    metadata = {"name": name, "labels": labels}
    status = {"allocatable": {"cpu": str(cpu)}}
    return read_node_status({"metadata": metadata, "spec": {"taints": keeping_away}, "status": status})


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


NODES = [make_node("a", 16), make_node("b", 5), make_node("c", 3, kind="fast"), make_node("d", 16, "taken")]


@pytest.mark.parametrize(
    ("pods", "number"),
    [
        ([make_pod(4, is_alone=True)], 2),
        ([make_pod(4)], 4 + 1),
        ([make_pod(2, kind="fast")], 1),
        ([make_pod(2, kind="slow")], 0),
        ([make_pod(2, kind="fast", is_alone=True), make_pod(8, is_alone=True)], 2),  # each node once
        ([make_pod(2), make_pod(4)], 8 + 2 + 1),  # as many as there can be of the smaller
    ],
)
def test_nodes_hold_one_cell_that_is_alone_and_otherwise_as_many_as_they_have_room_for(
    pods: list[dict[str, Any]], number: int
) -> None:
    assert count_cells(pods, NODES) == number


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


def test_a_cap_below_one_timeout_allows_one_cell_at_a_time_until_it_is_reached(tmp_path: Path) -> None:
    first, second = track("gpu", 1), track("gpu", 2)
    spending = make_spending(tmp_path, first, second, max_cost=0.01)
    assert spending.has_room(first)
    submit(spending.run.jobs, first)
    assert not spending.has_room(second)
    finish(spending.run.jobs, first)
    record(spending, first, 60)
    assert not spending.has_room(second)


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
