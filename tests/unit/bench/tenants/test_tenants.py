"""Tenants from their call to the Result of all: in threads of this process, with stubs for their framework."""

import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from bench.measure.harness import StepRecorder
from bench.probes.cpu import THREAD_VARIABLES
from bench.schema import Cell, CommonWindow, Failure, Neighbour, Result, TenantRecord, read_result
from bench.store import Store
from bench.tenants.meeting import NoCommonWindowError
from bench.tenants.tenant import Tenant, TenantStepper
from bench.worker.attempt import Attempt
from bench.worker.request import Order
from factories import make_cell, present
from fake_nvml import MIB, FakeNvml
from scripted_workload import Clock, ScriptedWorkload
from stub_framework import StubFramework
from tenancies import make_window

STEP_SECONDS = 0.01
WINDOW_SECONDS = 2.0
"""Long enough for a step of each tenant though the machine is busy: each reads the counters of all processes first."""


class SleepingFramework(StubFramework):
    """A framework whose steps take their time without a core, so that tenants do not disturb each other."""

    def __init__(self, *, step_seconds: float = STEP_SECONDS, **errors: Any) -> None:
        super().__init__(**errors)
        self._step_seconds = step_seconds

    def run_step(self) -> None:
        super().run_step()
        time.sleep(self._step_seconds)


def run_group(folder: Path, monkeypatch: pytest.MonkeyPatch, *frameworks: StubFramework, **fields: Any) -> Result:
    """Run tenants with these frameworks, each of the others after it was called; return tenant 0's Result."""
    for name in (*THREAD_VARIABLES, "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"):
        monkeypatch.setenv(name, "")  # attempts set them for good
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0" if fields.get("device") == "gpu" else "")
    # Each tenant has a thread of its own, which bears its number.
    monkeypatch.setattr(
        "bench.worker.attempt.load_framework", lambda *_: frameworks[int(threading.current_thread().name)]
    )
    protocol = {"min_seconds": WINDOW_SECONDS, "num_steps": 3, "max_warmup_seconds": 1e-3}
    cell = make_cell(**({"tenants": len(frameworks)} | protocol | fields))
    store = Store.open(f"file://{folder}/store")

    def run_tenant(tenant: int) -> Result:
        threading.current_thread().name = str(tenant)
        group = {"tenant": tenant, "tenant_group": "g", "store_url": store.url}
        order = Order(cell=cell, run_id="r", repeat=1, attempt=f"a{tenant}", **group)
        part = Tenant(order, store)
        if tenant > 0:
            part.meeting.await_call()
        result = Attempt(order, part).run()
        if tenant > 0:
            part.meeting.leave(part.make_record(result))
        return result

    with ThreadPoolExecutor(len(frameworks)) as pool:
        return list(pool.map(run_tenant, range(len(frameworks))))[0]


def list_records(result: Result) -> list[TenantRecord]:
    return list(present(result.tenancy).tenants)


def test_all_tenants_are_measured_in_one_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frameworks = (SleepingFramework(), SleepingFramework(), SleepingFramework(step_seconds=0.03))
    result = run_group(tmp_path, monkeypatch, *frameworks)
    records = list_records(result)
    assert (result.status, [record.status for record in records]) == ("ok", ["ok"] * 3)
    assert read_result(result.to_json()) == result
    # Or as long as the slowest tenant needs on a machine that is busy; steps sleep 0.01 or 0.03 s.
    window = present(result.tenancy).window_seconds or 0.0
    assert window >= WINDOW_SECONDS - 1e-6
    counts = [len(record.samples.step_seconds) for record in records if record.samples is not None]
    least = (0.01, 0.01, 0.03)
    assert [1 <= count <= window / step for count, step in zip(counts, least, strict=True)] == [True] * 3
    assert all(sum(r.samples.step_seconds) <= window for r in records if r.samples is not None)
    assert result.samples == records[0].samples
    assert result.window_samples_per_s == pytest.approx(64 * (records[0].steps_per_second or 0.0))
    assert len({record.place and record.place.boot_id for record in records}) == 1


def test_a_neighbour_runs_its_own_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, int]] = []

    class NotingFramework(SleepingFramework):
        def build_workload(self, cell: object) -> "NotingFramework":
            seen.append((getattr(cell, "phase", ""), getattr(cell, "batch_size", 0)))
            return self

    neighbour = Neighbour(
        model="conv6", phase="infer", batch_size=2, precision="fp32", mode="eager", input_size=32, num_classes=10
    )
    result = run_group(tmp_path, monkeypatch, NotingFramework(), NotingFramework(), neighbour=neighbour)
    assert result.status == "ok"
    assert sorted(seen) == [("infer", 2), ("train", 64)]


@pytest.mark.parametrize("failing", [0, 1], ids=["tenant 0", "another tenant"])
def test_the_others_are_measured_where_one_falls_out_of_memory(
    failing: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frameworks = [SleepingFramework() for _ in range(3)]
    frameworks[failing] = SleepingFramework(error=MemoryError("no array"))
    result = run_group(tmp_path, monkeypatch, *frameworks)
    records = list_records(result)
    assert result.error is not None
    assert (result.status, result.error.kind) == ("oom", "out-of-memory")
    assert result.error.message == f"1 of 3 tenants fell out of memory; tenant {failing}: MemoryError: no array"
    assert [record.status for record in records] == ["oom" if tenant == failing else "ok" for tenant in range(3)]
    assert [record.steps_per_second is None for record in records] == [tenant == failing for tenant in range(3)]
    assert present(result.tenancy).window_seconds is not None
    assert result.cell.tenants == 3


def test_a_tenant_that_fails_while_all_step_spoils_the_repeat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # After the first step and one of the warm-up, its eleventh is in the rehearsal of all.
    frameworks = (SleepingFramework(), SleepingFramework(late_error=RuntimeError("device lost")))
    result = run_group(tmp_path, monkeypatch, *frameworks)
    assert result.error is not None
    assert (result.status, result.error.kind) == ("failed", "exception")
    assert result.error.message == "1 of 2 tenants ended 'failed'; tenant 1: RuntimeError: device lost"
    assert [record.status for record in list_records(result)] == ["ok", "failed"]


def test_tenants_of_a_gpu_are_no_strangers_and_their_memory_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nvml: FakeNvml
) -> None:
    class ContextFramework(SleepingFramework):
        """Takes the GPU when its model is built, as a framework does."""

        def build_workload(self, cell: Cell) -> "ContextFramework":
            nvml.processes, nvml.memory_used_bytes = [(os.getpid(), 500 * MIB)], 503 * MIB
            return self

    result = run_group(tmp_path, monkeypatch, ContextFramework(), ContextFramework(), device="gpu")
    assert result.status == "ok"
    (gpu,) = result.gpu_use
    assert (gpu.foreign_processes, gpu.foreign_processes_after) == ((), ())
    assert present(gpu.window).seconds >= WINDOW_SECONDS - 1e-6
    assert gpu.idle_power_watts is None  # the others import while tenant 0 does
    assert present(result.tenancy).device_memory_used_bytes == 503 * MIB
    # Both are threads of one process here.
    assert [record.device_memory_bytes for record in list_records(result)] == [500 * MIB] * 2
    assert [record.place and record.place.device for record in list_records(result)] == ["GPU-aaaa1111"] * 2
    reasons = result.validity.reasons if result.validity else ()
    assert [r.message for r in reasons if r.verdict == "contaminated" and "GPU-aaaa1111" in r.message] == []


def test_an_attempt_that_is_cut_short_is_of_the_cell_of_the_repeat(tmp_path: Path) -> None:
    order = Order(
        cell=make_cell(tenants=2), run_id="r", repeat=1, attempt="a", store_url=f"file://{tmp_path}", tenant_group="g"
    )
    preempted = Failure(kind="preempted", message="ended by SIGTERM", signal="SIGTERM")
    first = Attempt(order, Tenant(order, Store.open(order.store_url))).cut_short("preempted", preempted)
    assert (first.cell, first.cell_id) == (order.cell, order.cell.cell_id)

    order = order.model_copy(update={"tenant": 1})
    tenant = Tenant(order, Store.open(order.store_url))
    record = tenant.make_record(Attempt(order, tenant).cut_short("preempted", preempted))
    assert (record.tenant, record.status, record.error) == (1, "preempted", preempted)


def make_stepper(clock: Clock, *durations: float) -> TenantStepper:
    """Return a tenant whose steps take these times in turns."""
    recorder = StepRecorder()
    recorder.warmup_steps.append(0.5)
    return TenantStepper(ScriptedWorkload(clock, cycle(durations)), recorder, clock.read)


def test_the_pace_is_the_mean_of_the_second_half_of_the_rehearsal() -> None:
    clock = Clock()
    # Steps of 0.5 s while the others begin, and then of 0.2 and 0.3 s in turns.
    durations = iter([0.5, 0.5, 0.2, 0.3, *([9.9] * 9)])
    stepper = TenantStepper(ScriptedWorkload(clock, durations), StepRecorder(), clock.read)
    assert stepper.rehearse() == pytest.approx(0.35)  # three steps in 1.2 s: the last two count
    assert clock.now == pytest.approx(101.2)


def test_steps_go_on_until_there_is_a_window() -> None:
    clock = Clock()
    answers: Iterator[CommonWindow | None] = iter([None, None, make_window(110.0)])
    assert make_stepper(clock, 0.125).await_window(lambda: next(answers)) == make_window(110.0)
    assert clock.now == pytest.approx(100.5)  # looked at once, and twice after 0.2 s and the rest of a step


def test_a_window_that_is_called_off_ends_the_steps() -> None:
    stepper = make_stepper(Clock(), 0.1)
    with pytest.raises(NoCommonWindowError, match="two machines"):
        stepper.await_window(lambda: CommonWindow(called_off="two machines"))


def test_the_steps_within_the_window_as_a_whole_count() -> None:
    clock, watched = Clock(), []

    @contextmanager
    def watch() -> Iterator[None]:
        watched.append(clock.now)
        yield
        watched.append(clock.now)

    window = make_window(101.0, seconds=2.0)
    stepper = make_stepper(clock, 0.375)
    stepper.run(window, watch)
    samples, seconds, lateness = stepper.select(window, reached_steady=True)
    # Steps begin at 100 + k * 0.375: the first within the window at 101.125, the last ends at 103.0.
    assert samples.step_seconds == (0.375,) * 5
    assert [seconds, lateness] == pytest.approx([1.875, 0.125])
    assert samples.warmup_step_seconds == (0.5,)
    assert samples.summarized_by == "mean"
    assert watched == [101.125, 103.0]


@pytest.mark.parametrize(
    ("step_seconds", "begins", "seconds", "words"),
    [
        (5.0, 100.0, 2.0, "no step of this tenant lies within the window of 2.0 s"),
        (0.5, 102.0, 4.0, "did not step during the whole window"),  # which starts at 101
    ],
)
def test_a_tenant_that_has_no_step_in_the_window_or_came_late_was_not_in_it(
    step_seconds: float, begins: float, seconds: float, words: str
) -> None:
    clock, window = Clock(), make_window(101.0, seconds=seconds)
    stepper = make_stepper(clock, step_seconds)
    clock.now = begins
    stepper.run(window, nullcontext)
    with pytest.raises(NoCommonWindowError, match=words):
        stepper.select(window, reached_steady=True)
