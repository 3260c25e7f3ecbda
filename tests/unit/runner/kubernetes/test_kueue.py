"""runner.kubernetes.capacity: what a Workload's conditions mean for its Job."""

from typing import Any

import pytest

from runner.kubernetes.capacity import read_inactivity, read_wait


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
