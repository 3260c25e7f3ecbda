"""Make valid documents for tests, which name only the fields that they care about.

Everything not named has a plain default: a Conv6 training cell in PyTorch on the CPU, three timed steps of 0.1 s, a
laptop's environment. Times are arbitrary: `make_result(step_seconds=(0.1, 0.2, 0.3))`; windows are derived from them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Protocol, TypeVar

from bench.schema import (
    Cell,
    CpuUse,
    DeviceProfile,
    Environment,
    Failure,
    FailureKind,
    Gpu,
    GpuActivity,
    GpuUse,
    HostPeak,
    LeftOutCell,
    Machine,
    MachineIdentity,
    Memory,
    Node,
    Phases,
    Placement,
    PlannedCell,
    Reason,
    Result,
    Roofline,
    Run,
    Samples,
    Status,
    Stopping,
    Validity,
    Verdict,
)

RUN_ID = "smoke-20260301-120000-ab12"
START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
FAILURE_KINDS: dict[Status, FailureKind] = {
    "failed": "exception",
    "oom": "out-of-memory",
    "timeout": "timeout",
    "preempted": "preempted",
}


T = TypeVar("T")


def present(value: T | None) -> T:
    """Return what a test knows to be there."""
    assert value is not None
    return value


class Sink(Protocol):
    """Where documents can be put: a `bench.store.Store`, or a dict with a `put`."""

    def put(self, key: str, data: bytes) -> None:
        """Keep `data` under `key`."""


make_cell: Callable[..., Cell] = partial(
    Cell,
    model="conv6",
    framework="pytorch",
    device="cpu",
    phase="train",
    batch_size=64,
    input_size=32,
    num_classes=10,
    num_warmup_steps=1,
    num_steps=1,
    min_seconds=0.0,
)
"""A Conv6 training cell that asks for one timed step."""

make_gpu: Callable[..., Gpu] = partial(
    Gpu,
    name="Tesla T4",
    uuid="GPU-5c1e2f6a-0000-0000-0000-000000000001",
    driver_version="550.54.15",
    memory_total_bytes=15 * 2**30,
    compute_capability="7.5",
    cuda_version="12.8",
    cudnn_version="9.10.2",
)
"""A Tesla T4."""

make_environment: Callable[..., Environment] = partial(
    Environment,
    hostname="bench-1",
    kernel="6.1.0-30-amd64",
    python_version="3.11.7",
    cpu_model="Intel(R) Xeon(R) CPU @ 2.20GHz",
    num_visible_cores=2,
    cpu_quota_cores=2.0,
    num_threads=2,
    cpu_governor=None,
    memory_total_bytes=13 * 2**30,
    versions={"torch": "2.11.0", "numpy": "2.3.5"},
    settings={"cudnn.benchmark": False, "float32_matmul_precision": "highest"},
    gpus=(),
    image=None,
    git_revision="0123456789abcdef0123456789abcdef01234567",
)
"""A two-core machine without GPU; pass `gpus=(make_gpu(),)` for one."""


make_machine: Callable[..., Machine] = partial(
    Machine,
    vendor="Amazon EC2",
    product="g4dn.xlarge",
    is_virtual=True,
    num_online_cores=4,
    visible_cores="0-1",
    num_physical_cores=1,
    num_sockets=1,
    num_numa_nodes=1,
    threads_per_core=2,
    instruction_sets=("avx2", "avx512f"),
)
"""Two hyperthreads of one core of a cloud machine that has two cores."""


def make_identity(boot: str = "a", *ids: str, minutes: float = 0) -> MachineIdentity:
    """Return what a machine says of its boot, which began so many minutes after midnight, and of `ids` that last."""
    booted_at = datetime(2026, 11, 21, tzinfo=UTC) + timedelta(minutes=minutes)
    return MachineIdentity(boot_id=boot * 8, booted_at=booted_at, lasting_ids=ids)


def make_host_figures(
    theoretical: float | None = 1.5e11, before: float | None = 1e11, after: float | None = 1e11, **overrides: Any
) -> HostPeak:
    """Return the host of a CPU cell: two cores of Zen 4 at the clock that the rate takes; rates in FLOP/s."""
    fields: dict[str, Any] = {
        "framework": "pytorch",
        "num_threads": 2,
        "num_cores": 2,
        "flops_per_cycle": 32,
        "clock_hertz": 2.6e9 if theoretical is None else theoretical / 64,
        "theoretical_flops_per_second": theoretical,
        "before_flops_per_second": before,
        "after_flops_per_second": after,
    }
    return HostPeak(**(fields | overrides))


make_gpu_activity: Callable[..., GpuActivity] = partial(
    GpuActivity, device_index=0, num_kernels=500, num_copies=10, busy_seconds=0.1
)
"""The first GPU, busy for 0.1 s with 500 kernels and 10 copies."""

make_device_profile: Callable[..., DeviceProfile] = partial(
    DeviceProfile,
    source="torch.profiler",
    step_seconds=(0.5, 0.125, 0.125, 0.125, 0.125),
    gpus=(make_gpu_activity(),),
    kernel_seconds_per_step=0.02,
    kernel_busy_share=0.2,
    profiled_busy_share=0.16,
)
"""Five steps in which a GPU was busy for 0.02 s each, where a step takes 0.1 s without the profiler."""


def make_phases(step_seconds: Sequence[float], warmup_step_seconds: Sequence[float], **overrides: Any) -> Phases:
    """Return complete phases whose windows are exactly as long as their steps."""
    fields: dict[str, Any] = {
        "import_seconds": 2.0,
        "build_seconds": 0.5,
        "first_step_seconds": 1.0,
        "warmup_seconds": sum(warmup_step_seconds),
        "steady_seconds": sum(step_seconds),
    }
    return Phases(**(fields | overrides))


make_memory: Callable[..., Memory] = partial(
    Memory, peak_rss_bytes=2**30, peak_memory_allocated_bytes=None, peak_memory_reserved_bytes=None
)
"""A process that peaked at 1 GiB and has no GPU allocator."""

make_cpu_use: Callable[..., CpuUse] = partial(
    CpuUse,
    window_seconds=0.3,
    own_cores=2.0,
    other_cores=0.0,
    num_machine_cores=2,
    num_periods=3,
    num_throttled_periods=0,
    throttled_seconds=0.0,
    energy_joules=None,
    num_affinity_cores=2,
    num_affinity_physical_cores=2,
    affinity_other_cores=0.0,
    num_sibling_cores=0,
    sibling_busy_cores=0.0,
    pressure_share=0.0,
    machine_pressure_share=0.0,
)
"""Two busy cores of two, none of anybody else's, with a quota that never ran out."""


def make_gpu_use(**overrides: Any) -> GpuUse:
    """Return a T4 with nobody else on it, at 60 W and full clocks for the 3 s of its sampling pass: 180 J, 30 steps.

    Its driver was asked at each sample why it lowers the clock, and gave no reason.
    """
    fields: dict[str, Any] = {
        "uuid": "GPU-5c1e2f6a-0000-0000-0000-000000000001",
        "idle_power_watts": 10.0,
        "memory_used_before_bytes": 2**20,
        "memory_used_peak_bytes": 2**30,
        "foreign_processes": (),
        "processes_visible": True,
        "foreign_processes_after": (),
        "foreign_memory_after_bytes": 2**20,
        "max_sm_clock_mhz": 1590,
        "power_limit_watts": 70.0,
        "default_power_limit_watts": 70.0,
        "window_seconds": 3.0,
        "num_steps": 30,
        "energy_joules": 180.0,
        "energy_source": "energy-counter",
        "sample_seconds": (0.0, 1.0, 2.0),
        "sm_clock_mhz": (1590, 1590, 1590),
        "temperature_celsius": (50, 55, 60),
        "power_watts": (60.0, 60.0, 60.0),
        "throttle_reasons": {},
    }
    samples = overrides.get("sample_seconds", fields["sample_seconds"])
    return GpuUse(**(fields | {"sample_reasons": ((),) * len(samples)} | overrides))


make_roofline: Callable[..., Roofline] = partial(
    Roofline,
    flops_per_step=10**9,
    min_bytes_per_step=10**6,
    achieved_flops_per_second=1e10,
    peak_flops_per_second=5e10,
    peak_bytes_per_second=None,
    peak_source="measured: matrix product in PyTorch",
    share_of_peak=0.2,
    min_step_seconds=0.02,
    bound="arithmetic",
    share_of_roofline=0.2,
)
"""A step of 1 GFLOP that took 0.1 s where 0.02 s are possible: a fifth of the peak, bound by arithmetic."""


def make_validity(*verdicts: Verdict) -> Validity:
    """Return a Validity with one invented reason per verdict, given gravest first; `valid` if none is given."""
    reasons = tuple(Reason(verdict=verdict, message=f"made up to be {verdict}") for verdict in verdicts)
    return Validity(verdict=verdicts[0] if verdicts else "valid", reasons=reasons)


def make_result(
    cell: Cell | None = None,
    *,
    step_seconds: Sequence[float] = (0.1, 0.1, 0.1),
    warmup_step_seconds: Sequence[float] = (0.2, 0.1),
    device_step_seconds: Sequence[float] | None = None,
    reached_steady: bool = True,
    **overrides: Any,
) -> Result:
    """Return the ok result of repeat 1; any field can be overridden."""
    cell = cell or make_cell()
    samples = Samples(
        warmup_step_seconds=tuple(warmup_step_seconds),
        step_seconds=tuple(step_seconds),
        device_step_seconds=None if device_step_seconds is None else tuple(device_step_seconds),
        reached_steady=reached_steady,
    )
    phases = overrides.get("phases") or make_phases(step_seconds, warmup_step_seconds)
    measured = {
        "status": "ok",
        "phases": phases,
        "samples": samples,
        "memory": make_memory(),
        "cpu_use": make_cpu_use(window_seconds=phases.steady_seconds or 1.0),
        "gpu_use": (make_gpu_use(),) if cell.device == "gpu" else (),
        "roofline": make_roofline(),
        "validity": make_validity(),
        "environment": make_environment(gpus=(make_gpu(),) if cell.device == "gpu" else ()),
    }
    return Result(**(_describe_attempt(cell, overrides) | measured | overrides))


def make_failed_result(
    cell: Cell | None = None,
    *,
    status: Status = "failed",
    kind: FailureKind | None = None,
    message: str = "RuntimeError: it broke",
    stderr_tail: str = "",
    **overrides: Any,
) -> Result:
    """Return a result that did not end well, without samples; `kind` follows from `status` unless given."""
    error = Failure(kind=kind or FAILURE_KINDS[status], message=message, stderr_tail=stderr_tail)
    attempt = _describe_attempt(cell or make_cell(), overrides)
    return Result(**(attempt | {"status": status, "error": error} | overrides))


def make_run(
    cells: Iterable[Cell] | None = None,
    *,
    repeats: int = 3,
    timeout_seconds: float = 600.0,
    stopping: Stopping | None = None,
    left_out: Iterable[LeftOutCell] = (),
    **overrides: Any,
) -> Run:
    """Return a run that planned `repeats` repeats of each cell."""
    planned = [
        PlannedCell(cell=cell, repeats=repeats, timeout_seconds=timeout_seconds, stopping=stopping)
        for cell in (cells if cells is not None else (make_cell(),))
    ]
    fields: dict[str, Any] = {
        "run_id": RUN_ID,
        "matrix": "smoke",
        "created_at": START,
        "executor": "local",
        "hostname": "bench-1",
        "user": "ada",
        "tool_version": "0.1.0",
        "git_revision": "0123456789abcdef0123456789abcdef01234567",
        "cells": tuple(planned),
        "left_out": tuple(left_out),
    }
    return Run(**(fields | overrides))


def make_placement(result: Result, node: Node | None = None, **overrides: Any) -> Placement:
    """Return where the attempt of `result` ran: on a node of which nothing is known unless `node` says it."""
    fields: dict[str, Any] = result.model_dump(include={"run_id", "cell_id", "repeat", "attempt"})
    return Placement(**(fields | {"pod": f"pod-{result.attempt}", "node_name": "node-1", "node": node} | overrides))


def put_documents(store: Sink, run: Run, results: Iterable[Result]) -> None:
    """Write the run and its results under the keys that docs/architecture.md lists."""
    store.put(f"runs/{run.run_id}/run.json", run.to_json())
    for result in results:
        name = f"{result.repeat}-{result.attempt}.json"
        store.put(f"runs/{result.run_id}/results/{result.cell_id}/{name}", result.to_json())


def _describe_attempt(cell: Cell, overrides: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "run_id": RUN_ID,
        "cell": cell,
        "cell_id": cell.cell_id,
        "repeat": 1,
        "attempt": "a1",
        "written_by": "bench",
        "started_at": START,
        "finished_at": overrides.get("started_at", START) + timedelta(seconds=10),
    }
