"""One tenant of a repeat: its part in the meeting, its record and, of tenant 0, the Result of all."""

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from time import perf_counter
from typing import Any

from bench.errors import UserError
from bench.frameworks.interface import Framework
from bench.measure.harness import StepRecorder, WatchWindow, Workload, start_up_workload
from bench.probes.cpu import watch_cpus
from bench.probes.gpu import DeviceMemory
from bench.probes.machine import read_place
from bench.schema import (
    CommonWindow,
    CpuUse,
    Phases,
    Reason,
    Result,
    Samples,
    Tenancy,
    TenantPlace,
    TenantRecord,
    Validity,
)
from bench.store import Store, StoreError
from bench.tenants.meeting import ARRIVAL_SECONDS, END_SECONDS, POLL_SECONDS, Meeting, NoCommonWindowError, judge_group
from bench.verdicts import ValidityInputs, judge_tenant, judge_tenants
from bench.worker.attempt import Alone
from bench.worker.observe import Observer
from bench.worker.request import Order

# The tenants begin within a look at the store of each other (POLL_SECONDS): the pace is taken from the second half of a
# second, and of three steps at the least. Clocks of a GPU that fell idle are up again by then (bench.measure.passes).
REHEARSAL_SECONDS = 1.0
REHEARSAL_NUM_STEPS = 3
# The counters of GPU and CPUs are read so long before the window: reading them keeps nobody from stepping inside it.
WATCH_SECONDS = 0.1


class TenantStepper:
    """Runs one step after another, and notes when each began and ended."""

    def __init__(self, workload: Workload, recorder: StepRecorder, clock: Callable[[], float] = perf_counter) -> None:
        self._workload = workload
        self._recorder = recorder
        self._clock = clock
        self._steps: list[tuple[float, float, float]] = []
        """When each began and ended, and for how long it waited for data."""

    def rehearse(self) -> float:
        """Step for REHEARSAL_SECONDS, and return the seconds per step of the second half."""
        begin = self._clock()
        while len(self._steps) < REHEARSAL_NUM_STEPS or self._clock() < begin + REHEARSAL_SECONDS:
            self._step()
        later = self._steps[len(self._steps) // 2 :]
        return (later[-1][1] - later[0][0]) / len(later)

    def await_window(self, find_window: Callable[[], CommonWindow | None]) -> CommonWindow:
        """Step until the window is set, and return it. Raise NoCommonWindowError where there is none."""
        deadline = self._clock() + ARRIVAL_SECONDS
        next_look = self._clock()
        while True:
            if self._clock() >= next_look:
                window = find_window()
                if window is not None:
                    break
                if self._clock() > deadline:
                    raise NoCommonWindowError(f"no window was set within {ARRIVAL_SECONDS:.0f} s")
                next_look = self._clock() + POLL_SECONDS
            self._step()
        if window.called_off is not None:
            raise NoCommonWindowError(window.called_off)
        return window

    def run(self, window: CommonWindow, watch: WatchWindow) -> CpuUse | None:
        start, end = _get_times(window)
        while self._clock() < start - WATCH_SECONDS:
            self._step()
        with watch():
            end_cpu_watch = watch_cpus(self._recorder.failures)
            while self._clock() < end:
                self._step()
            return end_cpu_watch()

    def select(self, window: CommonWindow, *, reached_steady: bool) -> tuple[Samples, float, float]:
        """Return the steps within the window, the seconds that they took, and how late the first one began.

        The recorder gets these steps. Raise NoCommonWindowError where the window does not hold a whole step, or this
        tenant was not there all the time.
        """
        start, end = _get_times(window)
        inside = [step for step in self._steps if step[0] >= start and step[1] <= end]
        if not inside:
            raise NoCommonWindowError(
                f"no step of this tenant lies within the window of {end - start:.1f} s as a whole"
            )
        if self._steps[0][0] > start or self._steps[-1][1] < end:
            raise NoCommonWindowError("this tenant did not step during the whole window")
        begun, ended, waits = zip(*inside, strict=True)
        self._recorder.steps += [later - earlier for earlier, later in zip(begun, ended, strict=True)]
        samples = Samples(  # without device_step_seconds: events of a GPU include what other tenants had it for
            warmup_step_seconds=tuple(self._recorder.warmup_steps),
            step_seconds=tuple(self._recorder.steps),
            reached_steady=reached_steady,
            data_wait_seconds=waits if self._workload.feed else None,
            max_queued_batches=self._workload.feed.max_queued_batches if self._workload.feed else None,
            summarized_by="mean",  # turns of time-slicing make some steps long: their median is no rate
        )
        return samples, ended[-1] - begun[0], begun[0] - start

    def _step(self) -> None:
        begun = self._clock()
        self._workload.run_step()
        self._workload.synchronize()
        ended = self._clock()
        feed = self._workload.feed
        self._steps.append((begun, ended, 0.0 if feed is None else feed.wait_seconds))


def _get_times(window: CommonWindow) -> tuple[float, float]:
    assert window.start_seconds is not None  # it was not called off
    assert window.end_seconds is not None
    return window.start_seconds, window.end_seconds


# What is not measured of a tenant: its window is the only time in which all run. The window has its length from the
# cell of the repeat; how many steps a tenant takes in it is what is measured.
WINDOW_ALONE = {"num_steps": 1, "sampling_seconds": 0.0, "num_profiled_steps": 0, "pipelined_seconds": 0.0}


class Tenant(Alone):
    """What the process of one order does for its repeat, as one of several tenants."""

    def __init__(self, order: Order, store: Store) -> None:
        super().__init__(order)
        self.meeting = Meeting(store=store, order=order)
        self.cell = order.cell.as_tenant(order.tenant).model_copy(update=WINDOW_ALONE)
        self._place: TenantPlace | None = None
        self._window: CommonWindow | None = None
        self._memory: DeviceMemory = (None, {})
        self._lateness_seconds: float | None = None
        self._others: list[TenantRecord] | None = None
        self._own_reasons: tuple[Reason, ...] = ()
        """Why the series of this process is not simply valid."""

    @property
    def is_first(self) -> bool:
        """Whether this is tenant 0, which calls the others, sets the window and makes the Result."""
        return self._order.tenant == 0

    def begin(self, *, is_container: bool) -> None:
        if not self.is_first:
            self.meeting.await_call()  # tenant 0 looks at the idle device before
        try:
            super().begin(is_container=is_container)
        except UserError as error:
            if self.is_first:  # the others would wait for it, and their pod with them
                with suppress(StoreError):
                    self.meeting.call_off(str(error))
            raise

    def read_baseline(self, probes: Observer) -> None:
        """Read the idle device and call the other tenants then, as tenant 0, to whom these leave the device."""
        if self.is_first:
            probes.read_baseline(watches_idle=False)  # the others start while this process imports
            self.meeting.call()

    def measure(
        self, workload: Workload, phases: Phases, recorder: StepRecorder, watch: WatchWindow
    ) -> tuple[Phases, Samples, CpuUse | None]:
        """Warm up, meet the other tenants, and measure the common window; as `measure.harness.measure` otherwise."""
        durations, reached_steady = start_up_workload(workload, self.cell, recorder)
        self._place = read_place(self.cell.device)
        self.meeting.report_ready(self._place)
        self.meeting.await_ready()
        stepper = TenantStepper(workload, recorder)
        gc.collect()  # before the reset, as `measure` does it
        workload.reset_peak_memory()
        self.meeting.report_pace(stepper.rehearse())
        window = stepper.await_window(self.meeting.find_window)
        cpu_use = stepper.run(window, watch)
        samples, seconds, self._lateness_seconds = stepper.select(window, reached_steady=reached_steady)
        self._window = window
        done = {**durations, "steady_seconds": seconds}
        return phases.model_copy(update=done), samples, cpu_use

    def run_passes(
        self, probes: Observer, workload: Workload, framework: Framework, samples: Samples
    ) -> dict[str, Any]:
        """Look, as tenant 0, who uses the device; until then everybody keeps its memory."""
        if self.is_first:
            self._memory = probes.read_device_memory()
            # The processes of all tenants that came to the meeting, by the numbers that each sees itself.
            places = self.meeting.read_places
            probes.look_for_neighbours(lambda: frozenset(pid for place in places().values() for pid in place.pids))
        time.sleep(self._find_hold_seconds())
        return {}

    def judge(self, inputs: ValidityInputs) -> Validity:
        """Return the verdict; of tenant 0 that of all tenants, whose records are there when their window is over."""
        own = judge_tenant(inputs)
        self._own_reasons = own.reasons
        if not self.is_first:
            return own
        records = self._gather_others()
        return judge_tenants(
            inputs,
            {0: own.reasons} | {record.tenant: record.reasons for record in records},
            tenant_cores=sum(record.own_cores or 0.0 for record in records),
        )

    def _find_hold_seconds(self) -> float:
        until = self._window.hold_until_seconds if self._window else None
        return 0.0 if until is None else max(0.0, until - self.meeting.clock())

    def _gather_others(self) -> Sequence[TenantRecord]:
        """Return, as tenant 0, the records of the other tenants: at once if they were gathered before."""
        if self._others is None:
            self._others = self.meeting.gather(self._find_hold_seconds() + END_SECONDS)
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

    def encode(self, result: Result, *, is_interrupted: bool) -> tuple[str, bytes]:
        """Return the Result as tenant 0, who makes the one of the repeat; the record of any other."""
        if self.is_first:
            return super().encode(result, is_interrupted=is_interrupted)
        return self.meeting.find_key("end", self._order.tenant), self.make_record(result).to_json()

    def end(self) -> None:
        if self.is_first:
            with suppress(StoreError):  # `clean` deletes what is left with the run
                self.meeting.clear()

    def conclude(self, result: Result, probes: Observer, framework: Framework | None) -> Result:
        """Add every tenant's record to what tenant 0 measured, and return that as the Result of the repeat.

        If this process came to no window, the others are measured all the same. The other tenants' own Results are what
        they leave at the meeting.
        """
        if not self.is_first:
            return result
        if result.error is not None and framework is not None:  # the device is the other tenants' now
            gc.collect()  # the frames of the error are gone, and with them the model
            probes.run("release of memory", None, framework.release_memory)
        memory = self._memory
        own = self.make_record(result).model_copy(update={"reasons": self._own_reasons})
        window = self._window
        if window is None:
            self.meeting.leave(own)
            window = self.meeting.await_window()
            self._window = window if window.called_off is None else None
        records = [_add_memory(record, memory[1]) for record in (own, *self._gather_others())]
        has_window = window.start_seconds is not None and window.end_seconds is not None
        status, failure = judge_group(records, window.called_off)
        tenancy = Tenancy(
            group=self._order.tenant_group or "",
            window_seconds=(window.end_seconds or 0.0) - (window.start_seconds or 0.0) if has_window else None,
            device_memory_used_bytes=memory[0],
            tenants=tuple(records),
        )
        fields = {name: getattr(result, name) for name in Result.model_fields}
        cell = {"cell": self._order.cell, "cell_id": self._order.cell.cell_id}
        return Result(**(fields | cell | {"status": status, "error": failure, "tenancy": tenancy}))


def _add_memory(record: TenantRecord, memory: Mapping[int, int]) -> TenantRecord:
    known = [memory[pid] for pid in (record.place.pids if record.place else ()) if pid in memory]
    return record.model_copy(update={"device_memory_bytes": sum(known) if known else None})
