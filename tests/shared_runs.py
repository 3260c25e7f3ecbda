"""Makes results of cells whose tenants' steps took so long, for the tests of what tenants do to each other."""

from collections.abc import Sequence
from typing import Any

from bench.schema import Cell, GpuUse, GpuWindow, Neighbour, Result, Status
from factories import make_cell, make_failed_result, make_gpu_use, make_memory, make_result
from tenancies import make_failed_record, make_record, make_tenancy

TRAINING = Neighbour(
    model="conv6", phase="train", precision="fp32", mode="eager", batch_size=32, input_size=32, num_classes=10
)
MEMORY = make_memory(peak_memory_allocated_bytes=2**30, peak_memory_reserved_bytes=2 * 2**30)
WINDOW_SECONDS = 10.0
SEVEN_OF_EIGHT: tuple[Status, ...] = ("ok", "ok", "ok", "ok", "ok", "ok", "ok", "oom")


def make_gpu_cell(**overrides: Any) -> Cell:
    """Return a Conv6 training cell on a GPU; `tenants`, `sharing` and all else can be given."""
    return make_cell(**({"device": "gpu"} | overrides))


def make_tenants_result(cell: Cell, *tenants: Sequence[float], watts: float | None = None, **overrides: Any) -> Result:
    """Return the ok result of a repeat whose tenants' steps took so long, seconds for each tenant.

    `watts`: the power of the GPU while they ran. The figures of the result itself are tenant 0's.
    """
    filled = [_fill_window(steps) for steps in tenants]
    records = [make_record(number, step_seconds=steps, memory=MEMORY) for number, steps in enumerate(filled)]
    tenancy = make_tenancy(*records, window_seconds=WINDOW_SECONDS, device_memory_used_bytes=9 * 2**30)
    fields: dict[str, Any] = {"step_seconds": filled[0], "memory": MEMORY, "tenancy": tenancy}
    watched: dict[str, Any] = {"gpu_use": (_watch_gpu(watts),)} if cell.device == "gpu" else {}
    return make_result(cell, **(fields | watched | overrides))


def _fill_window(steps: Sequence[float]) -> list[float]:
    """Return these steps over and over again, as often as the window holds them: a tenant steps all the time."""
    return [*steps] * max(1, int(WINDOW_SECONDS / sum(steps) + 1e-9))


def make_fallen_result(cell: Cell, *statuses: Status, **overrides: Any) -> Result:
    """Return the result of a repeat in which the tenants with status `oom` fell out of memory; the others ran."""
    records = [
        make_record(number) if status == "ok" else make_failed_record(number) for number, status in enumerate(statuses)
    ]
    message = f"{statuses.count('oom')} of {len(statuses)} tenants fell out of memory"
    return make_failed_result(cell, status="oom", message=message, tenancy=make_tenancy(*records), **overrides)


def _watch_gpu(watts: float | None) -> GpuUse:
    """Return a GPU that was watched in the common window, without a sampling pass."""
    window = GpuWindow(
        seconds=WINDOW_SECONDS,
        sm_clock_before_mhz=1590,
        sm_clock_after_mhz=1590,
        sm_clock_mhz=(),
        energy_joules=None if watts is None else WINDOW_SECONDS * watts,
        held_seconds={},
    )
    empty: dict[str, Any] = dict.fromkeys(("sample_seconds", "sm_clock_mhz", "temperature_celsius", "power_watts"), ())
    nothing = dict.fromkeys(("window_seconds", "energy_joules", "energy_source"))
    return make_gpu_use(window=window, num_steps=0, **(empty | nothing))
