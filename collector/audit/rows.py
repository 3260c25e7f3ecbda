"""Judge the rows of a table: by arithmetic, by measured cells of their work, and by both."""

from dataclasses import dataclass, replace
from typing import Literal

import pandas as pd

from bench.measure.roofline import CACHE_TRANSFERS
from bench.models.flops import count_step_cost
from bench.registry import FRAMEWORKS, MODELS
from collector.audit.rates import LARGER_TILE_SAVING, TOLERANCE, Algorithm, Rate, Work, describe_algorithm
from collector.audit.table import (
    PEAK_PRECISIONS,
    AuditedDevice,
    AuditTable,
    StatedPrecision,
    StatedReading,
    TableRow,
    find_device,
)
from collector.labels import FRAMEWORK_NAMES
from collector.results.frames import Row, list_rows, select_alone
from collector.units import (
    GFLOP,
    MILLISECOND,
    NOT_THERE,
    PERCENT,
    choose_rate_unit,
    format_interval,
    format_number,
    format_significant,
)

ArithmeticVerdict = Literal["possible", "implausible", "impossible", "unknown"]
MeasuredVerdict = Literal["reproduced", "not reproduced", "not tested"]
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


def judge_by_arithmetic(row: TableRow, device: AuditedDevice) -> Arithmetic:
    """Return whether the devices of `row` can do its work in its time, with the calculation."""
    rates = list_rates(row, device)
    kindest = min(rates, key=lambda rate: rate.severity)
    verdict: ArithmeticVerdict = kindest.plausibility
    if device.bound_flops_per_second is None:
        verdict, reason = "unknown", f"no {row.precision} peak of the {device.name} is known ({device.source})"
    elif reason := _explain_memory(row, device):
        verdict = "impossible"
    else:
        reason = _explain(row, kindest, device)
    return Arithmetic(
        verdict=verdict,
        algorithm=kindest.algorithm if verdict == "implausible" else None,
        flops_per_second=kindest.flops_per_second,
        most_flops_per_second=max(rate.most_flops_per_second for rate in rates),
        bound_flops_per_second=None if device.bound_flops_per_second is None else kindest.limit.flops_per_second,
        lines=tuple(describe_calculation(row, rate, device) for rate in rates),
        reason=reason,
    )


def list_rates(row: TableRow, device: AuditedDevice) -> list[Rate]:
    """Return the rate over all devices that the row's figure implies, under each reading of its work."""
    samples = row.batch_size or row.samples_per_second_stated
    seconds, limit = samples / row.samples_per_second_stated, device.find_limit(row.num_devices)
    return [
        Rate(work=_make_work(row, reading, samples), seconds=seconds, limit=limit) for reading in row.list_readings()
    ]


def _make_work(row: TableRow, reading: StatedReading, samples: float) -> Work:
    """Return the work of a reading; of a counted model the Winograd share is what would leave its least operations.

    It is the part in 3x3 convolutions of stride 1, and more where FFT saves in larger kernels; at most 1.
    """
    if reading.flops_per_sample is not None:
        return reading.make_work(samples)
    cost = count_step_cost(row.make_cell(reading))
    share = (1 - cost.least_flops / cost.flops) / (1 - 1 / LARGER_TILE_SAVING)
    return Work(label=reading.name, flops=samples * cost.flops, winograd_share=min(1.0, share))


def name_samples(row: TableRow) -> str:
    """Return `image` or `sample`, `images` or `samples`, as many as a step has."""
    word = TASK_SAMPLES.get(MODELS[row.model].task, "sample") if row.model is not None else "sample"
    return word if row.batch_size == 1 and row.samples_per_second is None else f"{word}s"


def describe_calculation(row: TableRow, rate: Rate, device: AuditedDevice) -> str:
    """Return `64 images x 8.18 GFLOP / 152.73 ms = 3.43 TFLOP/s, 42.3 % of the 8.10 TFLOP/s of the Tesla T4 at fp32`.

    The reading's label stands in front of it where the row has several.
    """
    peak, bound = device.peak_flops_per_second, device.bound_flops_per_second
    samples = row.batch_size or row.samples_per_second_stated
    unit = choose_rate_unit([rate.flops_per_second, row.num_devices * (bound or 0)])
    operations = "OP" if row.precision == "int8" else "FLOP"
    most = rate.work.flops if rate.work.most_flops is None else rate.work.most_flops

    def write_rate(*values: float) -> str:
        numbers = dict.fromkeys(format_number(value, unit) for value in values)
        return f"{' to '.join(numbers)} {unit.label.replace('FLOP', operations)}"

    def write_share(flops_per_second: float) -> str:
        shares = [value / flops_per_second for value in (rate.flops_per_second, rate.most_flops_per_second)]
        return " to ".join(dict.fromkeys(format_number(share, PERCENT) for share in shares))

    works = dict.fromkeys(format_significant(work / samples / GFLOP.size) for work in (rate.work.flops, most))
    is_rate = row.samples_per_second is not None
    line = f"{rate.work.label}: " if len(row.list_readings()) > 1 else ""
    line += row.figure_with(name_samples(row)) if is_rate else f"{row.batch_size:,} {name_samples(row)}"
    line += f" x {' to '.join(works)} G{operations}"
    line += "" if is_rate else f" / {row.figure_with(name_samples(row))}"
    line += f" = {write_rate(rate.flops_per_second, rate.most_flops_per_second)}"
    if peak is None or bound is None:
        return line
    devices = f"the {device.name}" if row.num_devices == 1 else f"{row.num_devices} x {device.name}"
    rated = row.num_devices * peak
    line += f", {write_share(rated)} % of the {write_rate(rated)} of {devices} at {row.precision}"
    if bound > peak:
        line += f", {write_share(row.num_devices * bound)} % of its bound of {write_rate(bound)}"
    return line


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


def _explain_memory(row: TableRow, device: AuditedDevice) -> str:
    """Return why the time is too short to read the weights once, under every reading; empty where it is not.

    Of inference only: how often a training step crosses the memory depends on its optimiser.
    """
    readings = row.list_readings()
    is_counted = all(reading.flops_per_sample is None for reading in readings)
    if row.phase != "infer" or row.batch_size is None or device.bytes_per_second is None or not is_counted:
        return ""
    parameters = min(count_step_cost(row.make_cell(reading)).num_parameters for reading in readings)
    weights = parameters * WEIGHT_BYTES[row.precision]
    least_seconds = max(0.0, weights - CACHE_TRANSFERS * device.cache_bytes) / device.bytes_per_second
    if row.batch_size / row.samples_per_second_stated >= least_seconds:
        return ""
    return (
        f"reading the weights once, {weights / 1e6:,.0f} MB less what the cache keeps, takes "
        f"{format_number(least_seconds, MILLISECOND)} ms at {device.bytes_per_second / 1e9:,.0f} GB/s"
    )


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
    obstacle = "" if summary is None else _find_obstacle(row)
    if summary is None or obstacle:
        return Measured(verdict="not tested", reason=obstacle)
    cells = _find_cells(row, device, summary)
    if cells.empty:
        reason = "no cell of this work, measured on this device under sound conditions"
        return Measured(verdict="not tested", reason=reason)
    seconds = (row.batch_size or 0) / row.samples_per_second_stated
    low, high = cells["interval_low_seconds"], cells["interval_high_seconds"]
    is_decisive = high < TOO_WIDE * low
    decisive = cells[is_decisive]
    agreeing = cells[is_decisive & (low * (1 - TOLERANCE) <= seconds) & (seconds <= high * (1 + TOLERANCE))]
    if decisive.empty:
        return Measured(verdict="not tested", reason=f"no interval, or one too wide to tell: {_describe_cells(cells)}")
    band = f"widened by {TOLERANCE / PERCENT.size:g} %"
    if len(agreeing):
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


def _find_cells(row: TableRow, device: AuditedDevice, summary: pd.DataFrame) -> pd.DataFrame:
    """Return the sound cells of the row's work on such a device."""
    default = MODELS[str(row.model)].input_size
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
        & (found["num_sound"] > 0)
    ]
    if row.framework is not None:
        found = found[found["framework"] == _find_framework(row.framework)]
    return found[[_is_on_device(cell, device) for cell in list_rows(found)]]


def _is_on_device(cell: Row, device: AuditedDevice) -> bool:
    name = cell["gpu_name"] if cell["device"] == "gpu" else cell["cpu_model"]
    if pd.isna(name):
        return False
    if device.num_threads is not None and cell["device"] == "cpu" and cell["num_threads"] != device.num_threads:
        return False
    return (cell["device"] == "gpu" or not device.measured_names) and device.is_named(name)


def _describe_cells(cells: pd.DataFrame) -> str:
    texts = []
    for cell in list_rows(cells):
        span = format_interval(cell["interval_low_seconds"], cell["interval_high_seconds"], MILLISECOND)
        name = f"{FRAMEWORK_NAMES[cell['framework']]} {cell['mode']}"
        shown = "one repeat" if span == NOT_THERE else f"{span} ms"
        texts.append(f"{shown} ({name} at size {cell['input_size']}, run {cell['run_id']})")
    return "; ".join(texts)


AuditVerdict = Literal["possible", "implausible", "impossible", "unknown", "reproduced", "not reproduced"]

CONTRADICTION = (
    "measured cells agree with it nevertheless: the stated peak or the counted operations are wrong, or the cells are"
)


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
        reasons = [f"{self.arithmetic_in_words}: {by_arithmetic}"] if by_arithmetic else []
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
        return self.row.figure_with(name_samples(self.row))


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
