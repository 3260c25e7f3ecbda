"""Make results of cells with several tenants, as `factories` makes those of cells with one."""

from collections.abc import Sequence
from typing import Any

from bench.schema import Cell, CommonWindow, Result, Samples, Tenancy, TenantPlace, TenantRecord
from factories import make_cell, make_failed_result, make_memory, make_phases, make_result

GROUP = "a1"
BOOT_ID = "7d9f7d2c-8a55-4c7c-9d0e-1f2e3d4c5b6a"
NAMESPACE = "time:[4026531834]"


def make_place(tenant: int = 0, **overrides: Any) -> TenantPlace:
    """Return a process on a machine's CPU; its number follows from the tenant."""
    fields: dict[str, Any] = {"boot_id": BOOT_ID, "time_namespace": NAMESPACE, "device": None, "pids": (1000 + tenant,)}
    return TenantPlace(**(fields | overrides))


def make_window(start_seconds: float = 100.0, seconds: float = 0.3, **overrides: Any) -> CommonWindow:
    """Return a window that starts at `start_seconds` of the clock; memory is held for a second after it."""
    end_seconds = start_seconds + seconds
    fields = {"start_seconds": start_seconds, "end_seconds": end_seconds, "hold_until_seconds": end_seconds + 1.0}
    return CommonWindow(**(fields | overrides))


def make_record(tenant: int = 0, *, step_seconds: Sequence[float] = (0.1, 0.1, 0.1), **overrides: Any) -> TenantRecord:
    """Return the record of a tenant whose steps filled the window from its start on."""
    samples = Samples(
        warmup_step_seconds=(0.2, 0.1), step_seconds=tuple(step_seconds), reached_steady=True, summarized_by="mean"
    )
    fields: dict[str, Any] = {
        "tenant": tenant,
        "status": "ok",
        "place": make_place(tenant),
        "phases": make_phases(step_seconds, (0.2, 0.1)),
        "samples": samples,
        "lateness_seconds": 0.0,
        "memory": make_memory(),
        "own_cores": 1.0,
    }
    return TenantRecord(**(fields | overrides))


def make_failed_record(tenant: int = 0, **overrides: Any) -> TenantRecord:
    """Return the record of a tenant that fell out of memory, unless the fields say otherwise."""
    failed = make_failed_result(status="oom", message="OutOfMemoryError: CUDA out of memory")
    return TenantRecord(**({"tenant": tenant, "status": failed.status, "error": failed.error} | overrides))


def make_tenancy(*records: TenantRecord, **overrides: Any) -> Tenancy:
    """Return the tenancy of these records, of two equal tenants without any, over a window of 0.3 s."""
    fields: dict[str, Any] = {
        "group": GROUP,
        "window_seconds": 0.3,
        "tenants": records or (make_record(0), make_record(1)),
    }
    return Tenancy(**(fields | overrides))


def make_shared_result(tenancy: Tenancy | None = None, cell: Cell | None = None, **overrides: Any) -> Result:
    """Return the ok result of a cell whose tenants are those of `tenancy`, two equal ones if None."""
    tenancy = tenancy or make_tenancy()
    first = tenancy.tenants[0].samples
    steps = first.step_seconds if first is not None else (0.1, 0.1, 0.1)
    return make_result(
        cell or make_cell(tenants=len(tenancy.tenants)), step_seconds=steps, **({"tenancy": tenancy} | overrides)
    )
