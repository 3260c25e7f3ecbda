"""One tenant of a repeat: its part in the meeting, its record and, of tenant 0, the Result of all."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager

from bench.measure.harness import StepRecorder, Workload, start_up_workload
from bench.probes.gpu_processes import DeviceMemory
from bench.probes.machine import read_place
from bench.schema import Cell, CommonWindow, CpuUse, Phases, Reason, Result, Samples, Tenancy, TenantPlace, TenantRecord
from bench.store import Store
from bench.tenants.common_window import measure_common_window
from bench.tenants.coordination import judge_group
from bench.tenants.meeting import END_SECONDS, Meeting
from bench.worker.request import Order

# What is not measured of a tenant: its window is the only time in which all run. The window has its length from the
# cell of the repeat; how many steps a tenant takes in it is what is measured.
WINDOW_ALONE = {"num_steps": 1, "sampling_seconds": 0.0, "num_profiled_steps": 0, "pipelined_seconds": 0.0}


class Tenant:
    """The tenant of one order."""

    def __init__(self, order: Order, store: Store) -> None:
        self._order = order
        self.meeting = Meeting(store=store, order=order)
        self.cell: Cell = order.cell.as_tenant(order.tenant).model_copy(update=WINDOW_ALONE)
        """What this process runs."""
        self._place: TenantPlace | None = None
        self._window: CommonWindow | None = None
        self._lateness_seconds: float | None = None
        self._others: list[TenantRecord] | None = None

    @property
    def is_first(self) -> bool:
        """Whether this is tenant 0, which calls the others, sets the window and makes the Result."""
        return self._order.tenant == 0

    def measure(
        self,
        workload: Workload,
        phases: Phases,
        recorder: StepRecorder,
        watch: Callable[[], AbstractContextManager[None]],
    ) -> tuple[Phases, Samples, CpuUse | None]:
        """Warm up, meet the other tenants, and measure the common window; as `measure.harness.measure` otherwise."""
        start_up = start_up_workload(workload, self.cell, recorder)
        self._place = read_place(self.cell.device)
        self.meeting.report_ready(self._place)
        self.meeting.await_ready()
        found = measure_common_window(workload, start_up, recorder, self.meeting, watch)
        self._window, self._lateness_seconds = found.window, found.lateness_seconds
        done = {**start_up.durations, "steady_seconds": found.steady_seconds}
        return phases.model_copy(update=done), found.samples, found.cpu_use

    def read_pids(self) -> frozenset[int]:
        return frozenset(pid for place in self.meeting.read_places().values() for pid in place.pids)

    def hold(self) -> None:
        """Wait while tenant 0 looks who uses the device: until then everybody keeps its memory."""
        if self._window is not None and self._window.hold_until_seconds is not None:
            time.sleep(max(0.0, self._window.hold_until_seconds - self.meeting.clock()))

    def gather_others(self) -> Sequence[TenantRecord]:
        """Return, as tenant 0, the records of the other tenants: at once if they were gathered before."""
        if self._others is None:
            over = self.meeting.clock() if self._window is None else self._window.hold_until_seconds
            self._others = self.meeting.gather((over or self.meeting.clock()) + END_SECONDS)
        return self._others

    def make_record(self, result: Result) -> TenantRecord:
        return TenantRecord(
            tenant=self._order.tenant,
            status=result.status,
            error=result.error,
            place=self._place,
            phases=result.phases,
            samples=result.samples,
            lateness_seconds=self._lateness_seconds,
            memory=result.memory,
            own_cores=result.cpu_use.own_cores if result.cpu_use else None,
            reasons=result.validity.reasons if result.validity else (),
            probe_failures=() if self.is_first else result.probe_failures,
        )

    def conclude(self, result: Result, own_reasons: Sequence[Reason], memory: DeviceMemory) -> Result:
        """Return the Result of the repeat, as tenant 0, from what its own process measured: with every tenant's record.

        If this process came to no window, the others are measured all the same. `own_reasons`: those of this tenant's
        own series. `memory`: what was in use on the GPU after the window.
        """
        own = self.make_record(result).model_copy(update={"reasons": tuple(own_reasons)})
        window = self._window
        if window is None:
            self.meeting.leave(own)
            window = self.meeting.await_window()
            self._window = window if window.called_off is None else None
        records = [_add_memory(record, memory.by_process) for record in (own, *self.gather_others())]
        has_window = window.start_seconds is not None and window.end_seconds is not None
        status, failure = judge_group(records, window.called_off)
        tenancy = Tenancy(
            group=self._order.tenant_group or "",
            window_seconds=(window.end_seconds or 0.0) - (window.start_seconds or 0.0) if has_window else None,
            device_memory_used_bytes=memory.used_bytes,
            tenants=tuple(records),
        )
        return self._name(result, status=status, error=failure, tenancy=tenancy)

    def name_result(self, result: Result) -> Result:
        """Return a Result that did not end well under the cell of the repeat, where it has that of the process."""
        return self._name(result)

    def _name(self, result: Result, **changes: object) -> Result:
        fields = {name: getattr(result, name) for name in Result.model_fields}
        cell = {"cell": self._order.cell, "cell_id": self._order.cell.cell_id}
        return Result(**(fields | cell | changes))


def _add_memory(record: TenantRecord, memory: Mapping[int, int]) -> TenantRecord:
    known = [memory[pid] for pid in (record.place.pids if record.place else ()) if pid in memory]
    return record.model_copy(update={"device_memory_bytes": sum(known) if known else None})
