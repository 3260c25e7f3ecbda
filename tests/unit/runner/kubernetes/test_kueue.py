"""runner.kubernetes.kueue: what a Workload's conditions mean for its Job."""

from typing import Any

import pytest

from runner.kubernetes.kueue import read_inactivity, read_wait

# Messages as Kueue 0.13.1 and 0.19.2 write them (pkg/scheduler/flavorassigner/flavorassigner.go).
START = "couldn't assign flavors to pod set main: "
TOO_MUCH = (
    "insufficient quota for memory in flavor small, previously considered podsets requests (0) + current podset "
    "request (3Gi) > maximum capacity (2Gi)"
)
IN_USE = "insufficient unused quota for cpu in flavor large, 4 more needed"


def make_workload(*conditions: tuple[str, str, str, str], **status: Any) -> dict[str, Any]:
    found = [
        {"type": kind, "status": held, "reason": reason, "message": text} for kind, held, reason, text in conditions
    ]
    return {"metadata": {"name": "job-a"}, "spec": {"active": True}, "status": {"conditions": found} | status}


@pytest.mark.parametrize(
    ("reason", "message", "is_lasting"),
    [
        ("Pending", START + TOO_MUCH, True),
        ("Pending", START + IN_USE, False),
        ("Pending", f"{START}{TOO_MUCH}, {IN_USE}", False),  # the other flavour may come free
        ("Pending", f"{START}resource nvidia.com/gpu unavailable in ClusterQueue", True),
        ("Pending", f"{START}flavor t4 doesn't match node affinity", True),
        ("Pending", f"{START}{IN_USE}. Pending the preemption of 1 workload(s)", False),
        ("Inadmissible", "ClusterQueue team-a is inactive", True),
        ("Inadmissible", "LocalQueue nightly doesn't exist", True),
        ("ExceedsMaxQuota", START + TOO_MUCH, True),  # with the feature gate UnadmittedWorkloadsObservability
        ("WaitingForQuota", START + IN_USE, False),
    ],
)
def test_what_waiting_cannot_change_is_told_from_a_turn_that_will_come(
    reason: str, message: str, is_lasting: bool
) -> None:
    wait = read_wait(make_workload(("QuotaReserved", "False", reason, message)))

    assert wait is not None
    assert (wait.message, wait.is_lasting) == (message, is_lasting)


def test_a_workload_that_is_admitted_or_finished_does_not_wait() -> None:
    reserved = ("QuotaReserved", "True", "QuotaReserved", "")
    assert read_wait(make_workload(reserved, ("Admitted", "True", "Admitted", ""))) is None
    assert read_wait(make_workload(("Finished", "True", "JobFinished", ""))) is None


def test_a_workload_with_a_quota_waits_for_its_admission_checks() -> None:
    checks = [{"name": "budget", "state": "Pending", "message": "asked"}, {"name": "nodes", "state": "Ready"}]

    wait = read_wait(make_workload(("QuotaReserved", "True", "QuotaReserved", ""), admissionChecks=checks))

    assert wait is not None
    assert wait.message == "it has its quota and waits for admission checks: budget is Pending asked"


def test_a_workload_without_conditions_has_no_reason_yet_and_a_deactivated_one_has() -> None:
    workload = make_workload()
    wait = read_wait(workload)
    assert wait is not None
    assert (wait.message, wait.is_lasting) == ("Kueue has not said why", False)

    wait = read_wait(workload | {"spec": {"active": False}})
    assert wait is not None
    assert (wait.message, wait.is_lasting) == ("its Workload job-a was deactivated", True)


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
