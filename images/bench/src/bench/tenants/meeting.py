"""Lets the tenants of one repeat meet through the store: they wait for each other, and tenant 0 sets their window.

What it decides for them: whether they share one device, which window they are measured in, how their repeat ended.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from bench.errors import UserError
from bench.schema import (
    Cell,
    CommonWindow,
    Document,
    Failure,
    Sharing,
    Status,
    TenantPlace,
    TenantRecord,
    read_document,
)
from bench.store import KeyMissing, Store, meeting_key, meeting_prefix
from bench.worker.request import Order

DocumentT = TypeVar("DocumentT", bound=Document)
T = TypeVar("T")

POLL_SECONDS = 0.2
"""Between two looks at the store. A look takes a millisecond in a directory and some tens of one in a bucket."""
ARRIVAL_SECONDS = 300.0
"""How long the tenants wait for the last one: as long as a node may take to pull an image and to start a container
that imports a framework."""
END_SECONDS = 60.0
"""How long tenant 0 waits for the records, from the end of the hold on: writing one retries for 10 s."""


class GroupOverError(UserError):
    """The group has met already, or its tenant 0 never came: it takes a new group."""


class NoCommonWindowError(Exception):
    """Tenant 0 called the measurement off; the message says why."""


@dataclass(frozen=True, kw_only=True)
class Meeting:
    """The meeting of one repeat's tenants, as the tenant of `order` sees it."""

    store: Store
    order: Order
    clock: Callable[[], float] = time.perf_counter
    """CLOCK_MONOTONIC of the kernel, which all tenants read."""
    sleep: Callable[[float], None] = time.sleep

    def call(self) -> None:
        """Tell the others, as tenant 0, that they may begin. Raise GroupOverError where the group has met before."""
        if self._list():
            raise GroupOverError(f"group {self.order.tenant_group} has met already; measure the repeat in a new one")
        self._put("call", b"{}")

    def await_call(self) -> None:
        """Return when tenant 0 says that the others may begin. Raise GroupOverError where this one is too late."""
        group, tenant = self.order.tenant_group, self.order.tenant

        def is_called() -> bool:
            present = self._list()
            if present & {"window", f"ready-{tenant}", f"pace-{tenant}", f"end-{tenant}"}:
                raise GroupOverError(f"group {group} has met without this process, its tenant {tenant}")
            return "call" in present

        if not self._await(is_called, ARRIVAL_SECONDS):
            raise GroupOverError(f"tenant 0 of group {group} has not come")

    def report_ready(self, place: TenantPlace) -> None:
        """Say that this tenant has warmed up in its place, and steps as soon as all others are ready or have ended."""
        self._put("ready", place.to_json(), self.order.tenant)

    def await_ready(self) -> None:
        """Return when every tenant is ready or has ended. Raise NoCommonWindowError where they cannot be measured."""
        missing: list[int] = []

        def are_ready() -> bool:
            present = self._list()
            if "window" in present:
                raise NoCommonWindowError(self._get(CommonWindow, "window").called_off or "the others began before")
            missing[:] = self._list_missing(present, "ready")
            return not missing

        reason = None
        if not self._await(are_ready, ARRIVAL_SECONDS):
            reason = f"{name_tenants(missing)} not ready within {ARRIVAL_SECONDS:.0f} s"
        elif self.order.tenant == 0:
            reason = explain_apart(self.read_places(), self.order.cell.sharing)
        if reason is None:
            return
        if self.order.tenant == 0:
            self.call_off(reason)
        raise NoCommonWindowError(reason)

    def report_pace(self, step_seconds: float) -> None:
        self._put("pace", str(step_seconds).encode(), self.order.tenant)

    def find_window(self) -> CommonWindow | None:
        """Return the common window; None as long as it is not set. Tenant 0 sets it when it knows every pace."""
        if self.order.tenant > 0:
            with suppress(KeyMissing):
                return self._get(CommonWindow, "window")
            return None
        present = self._list()
        if "window" in present:
            return self._get(CommonWindow, "window")
        if self._list_missing(present, "pace"):
            return None
        tenants = [tenant for tenant in range(self.order.cell.tenants) if f"pace-{tenant}" in present]
        if not tenants:
            return self.call_off("no tenant came to its first step")
        paces = [float(self.store.get(self.find_key("pace", tenant))) for tenant in tenants]
        window = choose_window(paces, self.order.cell, self.clock())
        self._put("window", window.to_json())
        return window

    def await_window(self) -> CommonWindow:
        """Return the window without taking part in it; called off where it is not set in time."""
        window = self._await(self.find_window, 2 * ARRIVAL_SECONDS)
        return window or self.call_off("the tenants came to no common window in time")

    def call_off(self, reason: str) -> CommonWindow:
        """Tell every tenant, as tenant 0, that there is no window, and why; return what they are told."""
        window = CommonWindow(called_off=reason)
        self._put("window", window.to_json())
        return window

    def leave(self, record: TenantRecord) -> None:
        self._put("end", record.to_json(), self.order.tenant)

    def gather(self, seconds: float) -> list[TenantRecord]:
        """Return the records of the other tenants; after so many seconds one is made for each that has left none."""
        others = range(1, self.order.cell.tenants)
        self._await(lambda: not self._list_missing(self._list(), "end", others), seconds)
        return [self._find_record(tenant) for tenant in others]

    def read_places(self) -> dict[int, TenantPlace]:
        present = self._list()
        tenants = [tenant for tenant in range(self.order.cell.tenants) if f"ready-{tenant}" in present]
        return {tenant: self._get(TenantPlace, "ready", tenant) for tenant in tenants}

    def clear(self) -> None:
        """Delete what the tenants of the repeat have left here, those of attempts that were interrupted too."""
        attempts = meeting_prefix(*self._place).removesuffix(f"{self._place[-1]}/")
        keys = self.store.list_keys(attempts.rpartition("/")[0] + "/")
        self.store.delete_many([key for key in keys if key.startswith(attempts)])

    def find_key(self, document: str, tenant: int | None = None) -> str:
        return meeting_key(*self._place, document, tenant)

    @property
    def _place(self) -> tuple[str, str, int, str]:
        order = self.order
        assert order.tenant_group is not None  # of a cell with several tenants: checked by Order
        return order.run_id, order.cell.cell_id, order.repeat, order.tenant_group

    def _list(self) -> set[str]:
        return {
            key.rpartition("/")[2].removesuffix(".json") for key in self.store.list_keys(meeting_prefix(*self._place))
        }

    def _list_missing(self, present: set[str], kind: str, tenants: range | None = None) -> list[int]:
        tenants = range(self.order.cell.tenants) if tenants is None else tenants
        return [tenant for tenant in tenants if not {f"{kind}-{tenant}", f"end-{tenant}"} & present]

    def _await(self, look: Callable[[], T], seconds: float) -> T:
        """Look until something is found or so many seconds have passed, and return what the last look found."""
        deadline = self.clock() + seconds
        while not (found := look()) and self.clock() < deadline:
            self.sleep(POLL_SECONDS)
        return found

    def _find_record(self, tenant: int) -> TenantRecord:
        try:
            return self._get(TenantRecord, "end", tenant)
        except KeyMissing:
            message = f"tenant {tenant} left no record"
            return TenantRecord(tenant=tenant, status="failed", error=Failure(kind="exit", message=message))

    def _put(self, document: str, data: bytes, tenant: int | None = None) -> None:
        self.store.put(self.find_key(document, tenant), data, retry_seconds=0)

    def _get(self, kind: type[DocumentT], document: str, tenant: int | None = None) -> DocumentT:
        return read_document(kind, self.store.get(self.find_key(document, tenant)))


# The window is longer than the slowest tenant needs at the pace of the rehearsal: of steps that alternate, a second of
# it tells the pace to some tenths.
LENGTH_FACTOR = 1.2
# From the decision to the start of the window: everybody looks for it several times a second (bench.tenants.meeting),
# and a store answers within tenths of a second. Who steps looks between two steps only. A tenant that learns of it
# later has stepped all the same, and looked at the store once more.
LEAD_SECONDS, LEAD_STEPS = 0.5, 2.0
# How long everybody keeps its memory after the window: until tenant 0 has ended its last step and looked at the GPU.
HOLD_SECONDS, HOLD_STEPS = 0.5, 2.0
GRAVITY: tuple[Status, ...] = ("oom", "timeout", "failed", "preempted")
"""Which status a repeat has of those that its tenants ended with."""


def explain_apart(places: Mapping[int, TenantPlace], sharing: Sharing) -> str | None:
    """Return why these tenants, as far as that can be read, do not share one device as asked for; None: they do."""
    for name, found in (
        ("machine (boot id)", {place.boot_id for place in places.values()}),
        ("time namespace", {place.time_namespace for place in places.values()}),
    ):
        if len(found - {None}) > 1:
            return f"the tenants are not on one {name}, so they have no common clock: {_list(found)}"
    devices = [place.device for place in places.values() if place.device is not None]
    if sharing == "mig" and len(set(devices)) < len(devices):
        return f"tenants have the same MIG slice, where each needs one of its own: {_list(set(devices))}"
    if sharing != "mig" and len(set(devices)) > 1:
        return f"the tenants are not on one GPU: {_list(set(devices))}"
    without = [tenant for tenant, place in places.items() if place.is_under_mps not in (None, sharing == "mps")]
    if without:
        state = "is not in force" if sharing == "mps" else f"is in force, where the cell asks for {sharing}"
        return f"MPS {state} for {name_tenants(without)}"
    return None


def choose_window(paces: Sequence[float], cell: Cell, now: float) -> CommonWindow:
    """Return the common window of tenants that need so many seconds per step while all step; `now` by their clock."""
    slowest = max(paces)
    start = now + LEAD_SECONDS + LEAD_STEPS * slowest
    end = start + max(cell.min_seconds, LENGTH_FACTOR * cell.num_steps * slowest)
    return CommonWindow(
        start_seconds=start, end_seconds=end, hold_until_seconds=end + HOLD_SECONDS + HOLD_STEPS * slowest
    )


def judge_group(records: Sequence[TenantRecord], called_off: str | None) -> tuple[Status, Failure | None]:
    ended = [record for record in records if record.error is not None]
    # Who only waited in vain for a window does not say why there was none.
    culprits = [record for record in ended if record.error and record.error.kind != "no-common-window"]
    if not ended and called_off is None:
        return "ok", None
    if not culprits:
        reasons = [called_off, *(record.error.message for record in ended if record.error)]
        return "failed", Failure(kind="no-common-window", message=next(filter(None, reasons)))
    status = min((record.status for record in culprits), key=GRAVITY.index)
    chosen = [record for record in culprits if record.status == status]
    first = chosen[0].error
    assert first is not None
    verb = "fell out of memory" if status == "oom" else f"ended '{status}'"
    message = f"{len(chosen)} of {len(records)} tenants {verb}; tenant {chosen[0].tenant}: {first.message}"
    return status, first.model_copy(update={"message": message})


def name_tenants(numbers: Sequence[int]) -> str:
    return f"tenant{'s' if len(numbers) > 1 else ''} {', '.join(map(str, sorted(numbers)))}"


def _list(found: set[str | None] | set[str]) -> str:
    return ", ".join(sorted(str(item) for item in found if item is not None))
