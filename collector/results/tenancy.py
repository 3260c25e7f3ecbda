"""Flatten what the tenants of a result did: a row for each of them, and the series of their steps."""

from collections.abc import Iterator
from statistics import fmean
from typing import Any

from bench.schema import Result, Samples, TenantRecord

Row = dict[str, Any]

STEP_SERIES = ("warmup_step_seconds", "step_seconds", "device_step_seconds")
WORK_FIELDS = ("model", "phase", "precision", "mode", "batch_size", "input_size")
"""What a neighbour may run otherwise than the cell, and every model has."""


def describe_tenants(result: Result) -> Iterator[Row]:
    """Yield the columns of TENANT_COLUMNS of each tenant; nothing of a result without tenants."""
    if result.tenancy is None:
        return
    for record in result.tenancy.tenants:
        cell = result.cell.as_tenant(record.tenant)
        row = cell.model_dump(include=set(WORK_FIELDS)) | _describe_samples(record, cell.batch_size)
        row |= record.model_dump(include={"tenant", "status", "lateness_seconds", "device_memory_bytes"})
        row |= {"alone_cell_id": cell.cell_id, "window_seconds": result.tenancy.window_seconds}
        if record.memory is not None:
            row |= record.memory.model_dump()
        if record.error is not None:
            row |= {"error_kind": record.error.kind, "error_message": record.error.message}
        yield row


def list_series(result: Result) -> Iterator[Row]:
    """Yield the steps of the result itself, as tenant 0's, and those of each further tenant that has any."""
    if result.samples is not None:
        yield _take_series(0, result.samples)
    for record in result.tenancy.tenants if result.tenancy is not None else ():
        if record.tenant > 0 and record.samples is not None:
            yield _take_series(record.tenant, record.samples)


def sum_sample_rates(result: Result) -> float | None:
    """Return the samples that all tenants of a result did in a second; None without tenants, or without their steps."""
    if result.tenancy is None:
        return None
    rates = [
        (record.steps_per_second or 0.0) * result.cell.as_tenant(record.tenant).batch_size
        for record in result.tenancy.tenants
    ]
    return sum(rates) or None


def _take_series(tenant: int, samples: Samples) -> Row:
    return {"tenant": tenant} | {name: getattr(samples, name) for name in STEP_SERIES}


def _describe_samples(record: TenantRecord, batch_size: int) -> Row:
    if record.samples is None:
        return {}
    steps, rate = record.samples.step_seconds, record.steps_per_second
    return {
        "num_warmup_steps_taken": len(record.samples.warmup_step_seconds),
        "num_steps_taken": len(steps),
        "mean_step_seconds": fmean(steps) if steps else None,
        "window_samples_per_s": rate * batch_size if rate is not None else None,
    }
