"""bench.tenants.meeting: tenants find each other and one window in a store, on a clock that the tests move."""

from pathlib import Path
from typing import Any

import pytest

from bench.schema import Failure, Sharing
from bench.store import Store
from bench.tenants.meeting import (
    ARRIVAL_SECONDS,
    GroupOverError,
    Meeting,
    NoCommonWindowError,
    explain_apart,
    judge_group,
)
from bench.worker.request import Order
from factories import make_cell, present
from tenancies import make_failed_record, make_place, make_record


class Table:
    """Where the tenants of one repeat meet. Seconds pass while they sleep."""

    def __init__(self, folder: Path, **fields: Any) -> None:
        self.store = Store.open(f"file://{folder}/store")
        self.cell = make_cell(**({"tenants": 3, "num_steps": 10} | fields))
        self.now = 1000.0

    def seat(self, tenant: int) -> Meeting:
        """Return the meeting as a tenant sees it."""
        order = Order(
            cell=self.cell,
            run_id="test-1",
            repeat=1,
            attempt=f"a{tenant}",
            store_url=self.store.url,
            tenant=tenant,
            tenant_group="g1",
        )
        return Meeting(store=self.store, order=order, clock=lambda: self.now, sleep=self.sleep)

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """A meeting of three tenants."""
    return Table(tmp_path)


def test_a_tenant_that_nobody_calls_gives_up(table: Table) -> None:
    with pytest.raises(GroupOverError, match="tenant 0 of group g1 has not come"):
        table.seat(1).await_call()
    assert table.now > 1000.0 + ARRIVAL_SECONDS


def test_a_group_meets_once(table: Table) -> None:
    table.seat(0).call()
    table.seat(1).report_ready(make_place(1))
    with pytest.raises(GroupOverError, match="group g1 has met already"):
        table.seat(0).call()
    with pytest.raises(GroupOverError, match="has met without this process, its tenant 1"):
        table.seat(1).await_call()
    table.seat(2).await_call()
    table.seat(0).call_off("enough")
    with pytest.raises(GroupOverError, match="has met without this process, its tenant 2"):
        table.seat(2).await_call()


def test_all_wait_for_each_other_and_then_for_one_window(table: Table) -> None:
    seats = [table.seat(tenant) for tenant in range(3)]
    for tenant, seat in enumerate(seats):
        seat.report_ready(make_place(tenant))
    for seat in seats:
        seat.await_ready()
    seats[0].report_pace(0.1)
    seats[2].report_pace(0.3)
    assert [seat.find_window() for seat in seats] == [None, None, None]
    seats[1].report_pace(0.2)
    assert seats[1].find_window() is None  # tenant 0 sets it
    window = present(seats[0].find_window())
    assert window.start_seconds == pytest.approx(1000.0 + 0.5 + 2 * 0.3)
    assert window.end_seconds == pytest.approx(1000.0 + 0.5 + 2 * 0.3 + 1.2 * 10 * 0.3)
    assert [seat.find_window() for seat in seats] == [window] * 3


def test_a_tenant_that_never_comes_ends_the_measurement_of_all(table: Table) -> None:
    for tenant in (0, 1):
        table.seat(tenant).report_ready(make_place(tenant))
    with pytest.raises(NoCommonWindowError, match="tenant 2 not ready within 300 s"):
        table.seat(0).await_ready()
    with pytest.raises(NoCommonWindowError, match="tenant 2 not ready within 300 s"):
        table.seat(1).await_ready()


def test_tenants_on_two_gpus_are_not_measured(table: Table) -> None:
    for tenant in range(3):
        table.seat(tenant).report_ready(make_place(tenant, device=f"GPU-{tenant % 2}"))
    with pytest.raises(NoCommonWindowError, match="the tenants are not on one GPU: GPU-0, GPU-1"):
        table.seat(0).await_ready()
    window = present(table.seat(1).find_window())
    assert window.called_off == "the tenants are not on one GPU: GPU-0, GPU-1"


def test_without_a_tenant_left_there_is_no_window(table: Table) -> None:
    for tenant in range(3):
        table.seat(tenant).leave(make_failed_record(tenant))
    assert table.seat(0).await_window().called_off == "no tenant came to its first step"


def test_a_tenant_that_leaves_no_record_is_told_of(table: Table) -> None:
    table.seat(1).leave(make_record(1))
    one, other = table.seat(0).gather(60.0)
    assert one == make_record(1)
    assert other.error == Failure(kind="exit", message="tenant 2 left no record")
    assert table.now == pytest.approx(1060.0, abs=0.3)


GPU = "GPU-5c1e2f6a-0000-0000-0000-000000000001"
NO_WINDOW = Failure(kind="no-common-window", message="the tenants are not on one GPU")


@pytest.mark.parametrize(
    ("sharing", "fields", "reason"),
    [
        ("time-slicing", [{}, {}], None),
        ("time-slicing", [{"is_under_mps": False}, {"is_under_mps": None}], None),
        ("mps", [{"is_under_mps": True}, {"is_under_mps": True}], None),
        ("mig", [{"device": "MIG-1"}, {"device": "MIG-2"}], None),
        ("time-slicing", [{"boot_id": None, "time_namespace": None}, {}], None),
        ("time-slicing", [{"boot_id": "b"}, {"boot_id": "a"}], "not on one machine (boot id), so they have no common"),
        ("mps", [{"time_namespace": "time:[1]"}, {}], "not on one time namespace"),
        ("time-slicing", [{}, {"device": "GPU-2"}], f"the tenants are not on one GPU: GPU-2, {GPU}"),
        ("mig", [{"device": "MIG-1"}, {"device": "MIG-1"}], "same MIG slice, where each needs one of its own: MIG-1"),
        ("mps", [{"is_under_mps": True}, {"is_under_mps": False}], "MPS is not in force for tenant 1"),
        ("time-slicing", [{"is_under_mps": True}] * 2, "MPS is in force, where the cell asks for time-slicing for"),
    ],
)
def test_tenants_that_do_not_share_a_device_as_asked_are_told_apart(
    sharing: Sharing, fields: list[dict[str, Any]], reason: str | None
) -> None:
    places = {tenant: make_place(tenant, **({"device": GPU} | own)) for tenant, own in enumerate(fields)}
    found = explain_apart(places, sharing)
    assert found is None if reason is None else reason in (found or "")


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
