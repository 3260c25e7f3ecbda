"""Judge a row by measurement: find the measured cells that are of its work, and see whether its figure agrees."""

import re
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from bench.registry import FRAMEWORKS, MODELS
from collector.audit.devices import AuditedDevice
from collector.audit.table import PEAK_PRECISIONS, TableRow
from collector.claims.speedup import SPEEDUP_TOLERANCE
from collector.device_names import split_name
from collector.labels import FRAMEWORK_NAMES
from collector.results.cells import select_alone
from collector.results.frames import Row, list_rows
from collector.units import MILLISECOND, PERCENT, format_interval

MeasuredVerdict = Literal["reproduced", "not reproduced", "not tested"]

# An interval that spans this factor would agree with a figure and with its double.
TOO_WIDE = 2.0


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What measured cells say of a row."""

    verdict: MeasuredVerdict
    reason: str
    """Empty where no run was given."""


def judge_by_measurement(
    row: TableRow, device: AuditedDevice, summary: pd.DataFrame | None, *, include_invalid: bool = False
) -> Measured:
    """Return whether the row's figure lies inside the interval of a matching cell, widened by SPEEDUP_TOLERANCE.

    `summary`: rows of `summarize_collections`; None where no run was given. Cells match in device, model, input size,
    phase, precision, batch size, number of devices and, where the row gives one, framework; in any mode, on synthetic
    data, without other tenants on the device.
    """
    if summary is None:
        return Measured(verdict="not tested", reason="")
    obstacle = _find_obstacle(row)
    if obstacle:
        return Measured(verdict="not tested", reason=obstacle)
    cells = _find_cells(row, device, summary)
    if not include_invalid:
        cells = [cell for cell in cells if cell["num_sound"] > 0]
    if not cells:
        return Measured(
            verdict="not tested",
            reason="no cell of this work, measured on this device under sound conditions",
        )
    decisive = [cell for cell in cells if _has_narrow_interval(cell)]
    if not decisive:
        return Measured(verdict="not tested", reason=f"no interval, or one too wide to tell: {_describe_cells(cells)}")
    assert row.batch_size is not None
    seconds = row.batch_size / row.samples_per_second_stated
    agreeing = [cell for cell in decisive if _agrees(seconds, cell)]
    band = f"widened by {SPEEDUP_TOLERANCE / PERCENT.size:g} %"
    if agreeing:
        return Measured(verdict="reproduced", reason=f"inside {_describe_cells(agreeing)}, {band}")
    return Measured(verdict="not reproduced", reason=f"outside {_describe_cells(decisive)}, {band}")


def _find_obstacle(row: TableRow) -> str:
    """Return why no cell can match the row at all; empty where one can."""
    if row.model is None:
        return "the row names no model of the registry"
    if row.batch_size is None:
        return "the row gives no batch size"
    if row.precision == "int8":
        return "no cell measures int8"
    if row.precision == "amp" and row.phase == "infer":
        return "amp casts weights in every step; cells of inference hold them in fp16"
    if row.framework is not None and _find_framework(row.framework) is None:
        return f"no cell measures the framework '{row.framework}'; measured are {', '.join(FRAMEWORKS)}"
    return ""


def _find_framework(name: str) -> str | None:
    return next((key for key, spec in FRAMEWORKS.items() if name.casefold() in (key, spec.label.casefold())), None)


def _find_cells(row: TableRow, device: AuditedDevice, summary: pd.DataFrame) -> list[Row]:
    assert row.model is not None
    default = MODELS[row.model].input_size
    sizes = {reading.input_size or default for reading in row.list_readings() if reading.is_model}
    found = select_alone(summary)
    found = found[
        (found["model"] == row.model)
        & found["input_size"].isin(sizes)
        & (found["phase"] == row.phase)
        & (found["precision"] == PEAK_PRECISIONS[row.precision])
        & (found["batch_size"] == row.batch_size)
        & (found["num_gpus"] == row.num_devices)
        & found["data_dir"].isna()
    ]
    if row.framework is not None:
        found = found[found["framework"] == _find_framework(row.framework)]
    return [cell for cell in list_rows(found) if _is_on_device(cell, device)]


def _is_on_device(cell: Row, device: AuditedDevice) -> bool:
    name = cell["gpu_name"] if cell["device"] == "gpu" else cell["cpu_model"]
    if pd.isna(name):
        return False
    if device.measured_names:
        return cell["device"] == "gpu" and name in device.measured_names
    if device.num_threads is not None and cell["device"] == "cpu" and cell["num_threads"] != device.num_threads:
        return False
    if device.measured_words is None:
        return split_name(name) == split_name(device.name)
    return re.search(rf"(?<!\w){re.escape(device.measured_words)}(?!\w)", name, re.IGNORECASE) is not None


def _find_interval(cell: Row) -> tuple[float, float] | None:
    low, high = cell["interval_low_seconds"], cell["interval_high_seconds"]
    return (float(low), float(high)) if pd.notna(low) and pd.notna(high) else None


def _has_narrow_interval(cell: Row) -> bool:
    interval = _find_interval(cell)
    return interval is not None and interval[1] < TOO_WIDE * interval[0]


def _agrees(seconds: float, cell: Row) -> bool:
    low, high = _find_interval(cell) or (0.0, 0.0)
    return low * (1 - SPEEDUP_TOLERANCE) <= seconds <= high * (1 + SPEEDUP_TOLERANCE)


def _describe_cells(cells: list[Row]) -> str:
    texts = []
    for cell in cells:
        interval = _find_interval(cell)
        span = f"{format_interval(*interval, MILLISECOND)} ms" if interval else "one repeat"
        name = f"{FRAMEWORK_NAMES[cell['framework']]} {cell['mode']}"
        texts.append(f"{span} ({name} at size {cell['input_size']}, run {cell['run_id']})")
    return "; ".join(texts)
