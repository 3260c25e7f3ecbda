"""Rows and tables to audit, of which a test names only the fields that it cares about."""

from typing import Any

from collector.audit.rows import AuditedRow, audit_table
from collector.audit.table import AuditTable, StatedDevice, TableRow

GIGA = 1e9
ROUND_DEVICE = StatedDevice(name="Round", source="made up: a peak of 1 TFLOP/s", tflops={"fp32": 1.0})


def make_row(**fields: Any) -> TableRow:
    """Return a row of ten samples of 10 GFLOP in 1 s on the round device: a tenth of its peak."""
    defaults: dict[str, Any] = {"device": "Round", "phase": "infer", "precision": "fp32"}
    if "model" not in fields and "readings" not in fields:
        defaults["flops_per_sample"] = 10 * GIGA
    if not {"milliseconds", "seconds", "samples_per_second"} & set(fields):
        defaults["seconds"] = 1.0
    if "samples_per_second" not in fields:
        defaults["batch_size"] = 10
    return TableRow(**(defaults | fields))


def make_table(*rows: TableRow, devices: tuple[StatedDevice, ...] = (ROUND_DEVICE,), **fields: Any) -> AuditTable:
    """Return a table of `rows`."""
    return AuditTable(**({"title": "Made up", "source": "a test", "devices": devices, "rows": rows} | fields))


def audit_row(row: TableRow, *devices: StatedDevice, **options: Any) -> AuditedRow:
    """Return the only row of a table with its verdicts."""
    (audited,) = audit_table(make_table(row, devices=devices or (ROUND_DEVICE,)), **options)
    return audited
