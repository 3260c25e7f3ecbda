"""Judge the rows of a table: by arithmetic, by measured cells of their work, and by both."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import pandas as pd

from bench.measure.roofline import CACHE_TRANSFERS
from bench.models.flops import StepCost, count_step_cost
from bench.registry import FRAMEWORKS, MODELS
from collector.audit.devices import AuditedDevice, find_device
from collector.audit.rates import (
    LARGER_TILE_SAVING,
    TOLERANCE,
    Algorithm,
    Limit,
    Rate,
    Work,
    choose_kindest,
    describe_algorithm,
    imply_rates,
)
from collector.audit.table import PEAK_PRECISIONS, AuditTable, StatedPrecision, StatedReading, TableRow
from collector.labels import FRAMEWORK_NAMES
from collector.prices.table import split_name
from collector.results.frames import Row, list_rows, select_alone
from collector.units import (
    GFLOP,
    MILLISECOND,
    PERCENT,
    Unit,
    choose_rate_unit,
    format_interval,
    format_number,
    format_significant,
)

ArithmeticVerdict = Literal["possible", "implausible", "impossible", "unknown"]

# The least bytes of a weight that is read in this precision; amp may keep weights in fp16.
WEIGHT_BYTES: dict[StatedPrecision, int] = {"fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2, "amp": 2, "int8": 1}
TASK_SAMPLES = {"image-classification": "image", "image-translation": "image"}


@dataclass(frozen=True, kw_only=True)
class Arithmetic:
    """What arithmetic says of a row."""

    verdict: ArithmeticVerdict
    """Holds under every reading of the row's work."""
    algorithm: Algorithm | None
    """What an implausible figure needs at the least. None: it is not implausible."""
    flops_per_second: float
    """The rate, over all devices, of the reading that is kindest to the row."""
    most_flops_per_second: float
    """The largest rate of any reading."""
    bound_flops_per_second: float | None
    """What the row's devices together are not taken to exceed. None: it is not known."""
    lines: tuple[str, ...]
    """The calculation, one line for each reading."""
    reason: str
    """Why it is not possible, or what a reader should know; may be empty."""

    @property
    def share_of_bound(self) -> float | None:
        """The kindest rate over the bound."""
        return None if self.bound_flops_per_second is None else self.flops_per_second / self.bound_flops_per_second

    @property
    def most_share_of_bound(self) -> float | None:
        """The largest rate over the bound."""
        bound = self.bound_flops_per_second
        return None if bound is None else self.most_flops_per_second / bound


def judge_by_arithmetic(row: TableRow, device: AuditedDevice) -> Arithmetic:
    """Return whether the devices of `row` can do its work in its time, with the calculation."""
    readings = row.list_readings()
    costs = [_count_cost(row, reading) for reading in readings]
    works = [_make_work(row, reading, cost) for reading, cost in zip(readings, costs, strict=True)]
    limit = _make_limit(row, device)
    rates = imply_rates(works, _count_step_samples(row) / row.samples_per_second_stated, limit)
    kindest = choose_kindest(rates)
    verdict, reason = _decide(row, device, costs, kindest)
    return Arithmetic(
        verdict=verdict,
        algorithm=kindest.algorithm if verdict == "implausible" else None,
        flops_per_second=kindest.flops_per_second,
        most_flops_per_second=max(rate.most_flops_per_second for rate in rates),
        bound_flops_per_second=None if device.bound_flops_per_second is None else limit.flops_per_second,
        lines=tuple(_describe_calculation(row, rate, device, has_label=len(rates) > 1) for rate in rates),
        reason=reason,
    )


def name_samples(row: TableRow) -> str:
    """Return `image` or `sample`, `images` or `samples`, as many as a step has."""
    word = TASK_SAMPLES.get(MODELS[row.model].task, "sample") if row.model is not None else "sample"
    return word if row.batch_size == 1 and row.samples_per_second is None else f"{word}s"


def describe_figure(row: TableRow) -> str:
    """Return the figure of the row as stated: `152.73 ms`, `1,198 images/s`."""
    if row.samples_per_second is not None:
        return f"{row.samples_per_second:,.10g} {name_samples(row)}/s"
    return f"{row.seconds:,.10g} s" if row.seconds is not None else f"{row.milliseconds:,.10g} ms"


def _decide(
    row: TableRow, device: AuditedDevice, costs: Sequence[StepCost | None], kindest: Rate
) -> tuple[ArithmeticVerdict, str]:
    if device.bound_flops_per_second is None:
        return "unknown", f"no {row.precision} peak of the {device.name} is known ({device.source})"
    memory = _explain_memory(row, costs, device)
    if memory:
        return "impossible", memory
    return kindest.plausibility, _explain(row, kindest, device)


def _count_cost(row: TableRow, reading: StatedReading) -> StepCost | None:
    return None if reading.flops_per_sample is not None else count_step_cost(row.make_cell(reading))


def _count_step_samples(row: TableRow) -> float:
    return row.batch_size or row.samples_per_second_stated


def _make_limit(row: TableRow, device: AuditedDevice) -> Limit:
    bound = device.bound_flops_per_second or 1.0
    word = "peak" if bound == device.peak_flops_per_second else "bound"
    return Limit(device=device.name, flops_per_second=row.num_devices * bound, word=word)


def _make_work(row: TableRow, reading: StatedReading, cost: StepCost | None) -> Work:
    samples, size = _count_step_samples(row), reading.input_size
    label = reading.label or (f"size {size}" if size else "the stated work")
    if cost is not None:
        return Work(label=label, flops=samples * cost.flops, winograd_share=_find_winograd_share(cost))
    most = reading.most_flops_per_sample
    assert reading.flops_per_sample is not None
    return Work(
        label=label,
        flops=samples * reading.flops_per_sample,
        most_flops=None if most is None else samples * most,
        winograd_share=1.0 if reading.winograd_share is None else reading.winograd_share,
    )


def _find_winograd_share(cost: StepCost) -> float:
    """Return what part of the work, all saved by F(4x4, 3x3), would leave the least operations of `cost`.

    It is the part in 3x3 convolutions of stride 1, and more where FFT saves in larger kernels; at most 1.
    """
    return min(1.0, (1 - cost.least_flops / cost.flops) / (1 - 1 / LARGER_TILE_SAVING))


def _describe_calculation(row: TableRow, rate: Rate, device: AuditedDevice, *, has_label: bool) -> str:
    """Return `64 images x 8.18 GFLOP / 152.73 ms = 3.43 TFLOP/s, 42.3 % of the 8.10 TFLOP/s of the Tesla T4 at fp32`.

    The reading's label stands in front of it where the row has several.
    """
    peak, bound = device.peak_flops_per_second, device.bound_flops_per_second
    unit = choose_rate_unit([rate.flops_per_second, row.num_devices * (bound or 0)])
    operations = "OP" if row.precision == "int8" else "FLOP"
    per_sample = rate.work.flops / _count_step_samples(row)
    work = f"{format_significant(per_sample / GFLOP.size)} G{operations}"
    if rate.work.most_flops is not None:
        most = rate.work.most_flops / _count_step_samples(row)
        work = f"{format_significant(per_sample / GFLOP.size)} to {format_significant(most / GFLOP.size)} G{operations}"
    samples = f"{row.batch_size:,} {name_samples(row)}" if row.samples_per_second is None else describe_figure(row)
    time = "" if row.samples_per_second is not None else f" / {describe_figure(row)}"
    found = _write_rate([rate.flops_per_second, rate.most_flops_per_second], unit, operations)
    line = f"{samples} x {work}{time} = {found}"
    if has_label:
        line = f"{rate.work.label}: {line}"
    if peak is None or bound is None:
        return line
    line += f", {_share(rate, row.num_devices * peak)} % of the {_write_peak(row, device, peak, unit)}"
    if bound > peak:
        line += f", {_share(rate, row.num_devices * bound)} % of its bound of {_write_rate([bound], unit, operations)}"
    return line


def _write_peak(row: TableRow, device: AuditedDevice, peak: float, unit: Unit) -> str:
    operations = "OP" if row.precision == "int8" else "FLOP"
    devices = f"the {device.name}" if row.num_devices == 1 else f"{row.num_devices} x {device.name}"
    return f"{_write_rate([row.num_devices * peak], unit, operations)} of {devices} at {row.precision}"


def _write_rate(values: Sequence[float], unit: Unit, operations: str) -> str:
    numbers = dict.fromkeys(format_number(value, unit) for value in values)
    return f"{' to '.join(numbers)} {unit.label.replace('FLOP', operations)}"


def _share(rate: Rate, flops_per_second: float) -> str:
    shares = [value / flops_per_second for value in (rate.flops_per_second, rate.most_flops_per_second)]
    return " to ".join(dict.fromkeys(format_number(share, PERCENT) for share in shares))


def _explain(row: TableRow, kindest: Rate, device: AuditedDevice) -> str:
    if kindest.plausibility == "possible":
        is_rated = kindest.flops_per_second <= row.num_devices * (device.peak_flops_per_second or 0)
        return "" if is_rated else "beyond the rated peak, within the bound: it needs a clock above the rated one"
    parts = [describe_algorithm(kindest)]
    if any(reading.flops_per_sample and reading.winograd_share is None for reading in row.list_readings()):
        parts.append("which convolutions the work has is not known: judged as if all of it were 3x3 of stride 1")
    tf32 = device.fp32_is_tf32_flops_per_second
    if row.precision == "fp32" and tf32 is not None:
        limit = replace(kindest.limit, flops_per_second=row.num_devices * tf32)
        if replace(kindest, limit=limit).plausibility == "possible":
            parts.append(
                "in TF32, which frameworks use for float32 convolutions on such a GPU unless told otherwise, it would "
                "be possible"
            )
    if row.precision in ("fp16", "amp") and device.is_half_rate:
        parts.append("with accumulation in float16 the tensor cores of such a card are twice as fast as this peak")
    return "; ".join(parts)


def _explain_memory(row: TableRow, costs: Sequence[StepCost | None], device: AuditedDevice) -> str:
    """Return why the time is too short to read the weights once, under every reading; empty where it is not.

    Of inference only: how often a training step crosses the memory depends on its optimiser.
    """
    known = [cost for cost in costs if cost is not None]
    if row.phase != "infer" or row.batch_size is None or device.bytes_per_second is None or len(known) != len(costs):
        return ""
    weights = min(cost.num_parameters for cost in known) * WEIGHT_BYTES[row.precision]
    least_seconds = max(0.0, weights - CACHE_TRANSFERS * device.cache_bytes) / device.bytes_per_second
    if row.batch_size / row.samples_per_second_stated >= least_seconds:
        return ""
    return (
        f"reading the weights once, {weights / 1e6:,.0f} MB less what the cache keeps, takes "
        f"{format_number(least_seconds, MILLISECOND)} ms at {device.bytes_per_second / 1e9:,.0f} GB/s"
    )


MeasuredVerdict = Literal["reproduced", "not reproduced", "not tested"]

# An interval that spans this factor would agree with a figure and with its double.
TOO_WIDE = 2.0


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What measured cells say of a row."""

    verdict: MeasuredVerdict
    reason: str
    """Empty where no run was given."""


def judge_by_measurement(row: TableRow, device: AuditedDevice, summary: pd.DataFrame | None) -> Measured:
    """Return whether the row's figure lies inside the interval of a matching cell, widened by TOLERANCE.

    `summary`: rows of `summarize_collections`; None where no run was given. Cells match in device, model, input size,
    phase, precision, batch size, number of devices and, where the row gives one, framework; in any mode, on synthetic
    data, without other tenants on the device.
    """
    if summary is None:
        return Measured(verdict="not tested", reason="")
    obstacle = _find_obstacle(row)
    if obstacle:
        return Measured(verdict="not tested", reason=obstacle)
    cells = [cell for cell in _find_cells(row, device, summary) if cell["num_sound"] > 0]
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
    band = f"widened by {TOLERANCE / PERCENT.size:g} %"
    if agreeing:
        return Measured(verdict="reproduced", reason=f"inside {_describe_cells(agreeing)}, {band}")
    return Measured(verdict="not reproduced", reason=f"outside {_describe_cells(decisive)}, {band}")


def _find_obstacle(row: TableRow) -> str:
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
    return low * (1 - TOLERANCE) <= seconds <= high * (1 + TOLERANCE)


def _describe_cells(cells: list[Row]) -> str:
    texts = []
    for cell in cells:
        interval = _find_interval(cell)
        span = f"{format_interval(*interval, MILLISECOND)} ms" if interval else "one repeat"
        name = f"{FRAMEWORK_NAMES[cell['framework']]} {cell['mode']}"
        texts.append(f"{span} ({name} at size {cell['input_size']}, run {cell['run_id']})")
    return "; ".join(texts)


AuditVerdict = Literal["possible", "implausible", "impossible", "unknown", "reproduced", "not reproduced"]

CONTRADICTION = (
    "measured cells agree with it nevertheless: the stated peak or the counted operations are wrong, or the cells are"
)
STATED_PEAK = "judged by a peak that the device does not have"
"""How the reason begins that names such a peak: the verdict stays that by the stated one, as the table means it."""


@dataclass(frozen=True, kw_only=True)
class AuditedRow:
    """A row with its verdicts."""

    number: int
    """Its place in the table, from 1."""
    row: TableRow
    device: AuditedDevice
    arithmetic: Arithmetic
    measured: Measured

    @property
    def verdict(self) -> AuditVerdict:
        """What was measured, where it was; `impossible` stands whatever was measured."""
        if self.arithmetic.verdict == "impossible" or self.measured.verdict == "not tested":
            return self.arithmetic.verdict
        return self.measured.verdict

    @property
    def verdict_in_words(self) -> str:
        return self.arithmetic_in_words if self.verdict == self.arithmetic.verdict else self.verdict

    @property
    def arithmetic_in_words(self) -> str:
        """The verdict by arithmetic for people, in the words of the claims.

        What F(2x2, 3x3) reaches, which float32 libraries ordinarily use, is `implausible without Winograd`; what only
        the larger tiles of F(4x4, 3x3) reach is `implausible`.
        """
        is_ordinary = self.arithmetic.algorithm == "F(2x2, 3x3)"
        return f"{self.arithmetic.verdict} without Winograd" if is_ordinary else self.arithmetic.verdict

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the verdicts are what they are; nothing where arithmetic has no objection and no run was given."""
        by_arithmetic, by_measurement = self.arithmetic.reason, self.measured.reason
        reasons = [f"{STATED_PEAK}: {self.device.contradiction}"] if self.device.contradiction else []
        reasons += [f"{self.arithmetic_in_words}: {by_arithmetic}"] if by_arithmetic else []
        reasons += [f"{self.measured.verdict}: {by_measurement}"] if by_measurement else []
        if self.arithmetic.verdict == "impossible" and self.measured.verdict == "reproduced":
            reasons.append(CONTRADICTION)
        return tuple(reasons)

    @property
    def name(self) -> str:
        """What was timed on what: `PyTorch AMP, Tesla T4, batch 64, amp`."""
        row = self.row
        what = row.label or " ".join(filter(None, (row.framework, row.model or "model", row.phase)))
        devices = self.device.name if row.num_devices == 1 else f"{row.num_devices} x {self.device.name}"
        batch = f"batch {row.batch_size}" if row.batch_size is not None else ""
        return ", ".join(filter(None, (what, devices, batch, row.precision)))

    @property
    def figure(self) -> str:
        return describe_figure(self.row)


def audit_table(table: AuditTable, summary: pd.DataFrame | None = None) -> tuple[AuditedRow, ...]:
    """Return the rows of `table` with their verdicts; `summary`: rows of `summarize_collections` of the runs, if any.

    Raises UnknownDeviceError for a row whose device neither the table nor `bench.measure.roofline` knows.
    """
    audited = []
    for number, row in enumerate(table.rows, start=1):
        device = find_device(table, row)
        arithmetic, measured = judge_by_arithmetic(row, device), judge_by_measurement(row, device, summary)
        audited.append(AuditedRow(number=number, row=row, device=device, arithmetic=arithmetic, measured=measured))
    return tuple(audited)
