"""bench.tenants.meeting: whether tenants share one device, their window, and how their repeat ended."""

from typing import Any

import pytest

from bench.schema import Failure, Sharing
from bench.tenants.meeting import explain_apart, judge_group
from tenancies import make_failed_record, make_place, make_record

GPU = "GPU-5c1e2f6a-0000-0000-0000-000000000001"
NO_WINDOW = Failure(kind="no-common-window", message="the tenants are not on one GPU")


def explain(sharing: Sharing, *fields: dict[str, Any]) -> str | None:
    """Return why tenants in places with these fields are apart."""
    places = {tenant: make_place(tenant, **({"device": GPU} | own)) for tenant, own in enumerate(fields)}
    return explain_apart(places, sharing)


@pytest.mark.parametrize(
    ("sharing", "fields"),
    [
        ("time-slicing", [{}, {}]),
        ("time-slicing", [{"is_under_mps": False}, {"is_under_mps": None}]),
        ("mps", [{"is_under_mps": True}, {"is_under_mps": True}]),
        ("mig", [{"device": "MIG-1"}, {"device": "MIG-2"}]),
        ("time-slicing", [{"boot_id": None, "time_namespace": None}, {}]),
    ],
)
def test_tenants_that_share_a_device_as_asked_are_together(sharing: Sharing, fields: list[dict[str, Any]]) -> None:
    assert explain(sharing, *fields) is None


@pytest.mark.parametrize(
    ("sharing", "fields", "reason"),
    [
        ("time-slicing", [{"boot_id": "b"}, {"boot_id": "a"}], "not on one machine (boot id), so they have no common"),
        ("mps", [{"time_namespace": "time:[1]"}, {}], "not on one time namespace"),
        ("time-slicing", [{}, {"device": "GPU-2"}], f"the tenants are not on one GPU: GPU-2, {GPU}"),
        ("mig", [{"device": "MIG-1"}, {"device": "MIG-1"}], "same MIG slice, where each needs one of its own: MIG-1"),
        ("mps", [{"is_under_mps": True}, {"is_under_mps": False}], "MPS is not in force for tenant 1"),
        ("time-slicing", [{"is_under_mps": True}] * 2, "MPS is in force, where the cell asks for time-slicing for"),
    ],
)
def test_tenants_that_do_not_share_are_told_apart(sharing: Sharing, fields: list[dict[str, Any]], reason: str) -> None:
    assert reason in (explain(sharing, *fields) or "")


def test_a_repeat_says_how_many_fell_out_of_memory_whatever_else_happened() -> None:
    failed = make_failed_record(1, status="failed", error=Failure(kind="killed", message="ended by SIGKILL"))
    status, failure = judge_group([make_record(0), failed, make_failed_record(2), make_failed_record(3)], None)
    assert failure is not None
    assert (status, failure.kind) == ("oom", "out-of-memory")
    assert failure.message == ("2 of 4 tenants fell out of memory; tenant 2: OutOfMemoryError: CUDA out of memory")


def test_who_waited_in_vain_is_not_the_reason() -> None:
    waiting = make_failed_record(0, status="failed", error=NO_WINDOW)
    dead = make_failed_record(1, status="failed", error=Failure(kind="killed", message="ended by SIGKILL"))
    status, failure = judge_group([waiting, dead], "the tenants came to no common window in time")
    assert failure is not None
    assert (status, failure.kind) == ("failed", "killed")
    assert failure.message == "1 of 2 tenants ended 'failed'; tenant 1: ended by SIGKILL"


def test_a_window_that_was_called_off_says_why() -> None:
    waiting = [make_failed_record(tenant, status="failed", error=NO_WINDOW) for tenant in range(2)]
    assert judge_group(waiting, NO_WINDOW.message) == ("failed", NO_WINDOW)
    late = NO_WINDOW.model_copy(update={"message": "this tenant did not step during the whole window"})
    records = [make_record(0), make_failed_record(1, status="failed", error=late)]
    assert judge_group(records, None) == ("failed", late)
