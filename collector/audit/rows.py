"""Judge the rows of a table: by arithmetic, by measured cells of their work, and by both.

By arithmetic, a figure is judged by the reading of its work that is kindest to it, so `implausible` and `impossible`
hold under every reading.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import pandas as pd

from bench.measure.roofline import CACHE_TRANSFERS
from bench.models.flops import count_step_cost
from bench.registry import EIGHT_BITS, ELEMENT_BYTES, FRAMEWORKS, MODELS, Precision
from collector.audit.table import (
    HALF_RATE,
    PEAK_PRECISIONS,
    AuditTable,
    KnownGpu,
    StatedDevice,
    StatedPrecision,
    StatedReading,
    TableRow,
    find_device,
)
from collector.cell_words import FRAMEWORK_NAMES
from collector.results.frames import list_rows, select_alone
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

# How many times fewer multiplications 3x3 convolutions of stride 1 need by Winograd's F(2x2, 3x3) and F(4x4, 3x3): A.
# Lavin and S. Gray, Fast Algorithms for Convolutional Neural Networks, 2015, arXiv 1509.09308: 36 over 16, 144 over 36.
# Larger tiles save more multiplications and lose more of float32's accuracy; their transforms grow too.
WINOGRAD_SAVING = 2.25
LARGER_TILE_SAVING = 4.0
# The noise of identical runs reaches 10 % (TorchBench, pytorch/benchmark issue 1681): nearer is the same figure.
TOLERANCE = 0.10
# The least bytes of a weight that is read in this precision; amp may keep weights in fp16.
WEIGHT_BYTES: dict[StatedPrecision, int] = {
    **{precision: 1 if precision in EIGHT_BITS else ELEMENT_BYTES[precision] for precision in get_args(Precision)},
    **{"amp": 2, "int8": 1},
}

AuditVerdict = Literal["possible", "implausible", "impossible", "unknown", "reproduced", "not reproduced", "not tested"]
"""The first four are by arithmetic, the others by measurement."""
Algorithm = Literal["direct convolutions", "F(2x2, 3x3)", "F(4x4, 3x3)"]
SAVINGS: Mapping[Algorithm, float] = {
    "direct convolutions": 1.0,
    "F(2x2, 3x3)": WINOGRAD_SAVING,
    "F(4x4, 3x3)": LARGER_TILE_SAVING,
}


@dataclass(frozen=True, kw_only=True)
class Rate:
    """The arithmetic rate, over all devices, that a row's figure implies under one reading of its work."""

    row: TableRow
    device: StatedDevice
    label: str
    """What tells this reading from others, such as `224 px`."""
    flops: float
    """FLOPs of the step as direct convolutions do them, a multiply-add as two; the fewest where they are a range."""
    most_flops: float
    """The most where they are a range."""
    winograd_share: float
    """The part of `flops` in 3x3 convolutions of stride 1, from 0 to 1; 1, the kindest, where it is not known."""

    @property
    def seconds(self) -> float:
        return _count_samples(self.row) / self.row.samples_per_second_stated

    @property
    def limit(self) -> float:
        """The FLOP/s that the row's devices together are not taken to exceed; 1 for each where nothing is known."""
        return self.row.num_devices * (self.peaks[1] or 1.0)

    @property
    def peaks(self) -> tuple[float | None, float | None]:
        """The rated peak of one device in the row's precision, and what it is not taken to exceed."""
        return self.device.find_peak(self.row.precision)

    @property
    def flops_per_second(self) -> float:
        """The arithmetic rate of the step: its FLOPs, counted as direct convolutions, divided by its time."""
        return self.flops / self.seconds

    @property
    def most_flops_per_second(self) -> float:
        """The same with the most FLOPs of the reading, where they are a range."""
        return self.most_flops / self.seconds

    def compute_share(self, saving: float) -> float:
        """Return the share of the limit that is needed where 3x3 convolutions of stride 1 take `saving` times fewer
        FLOPs, transforms not counted.
        """
        least = self.flops * (1 - self.winograd_share + self.winograd_share / saving)
        return least / self.seconds / self.limit

    @property
    def algorithm(self) -> Algorithm | None:
        """The plainest algorithm by which the device can do the work in the time; None: not even by F(4x4, 3x3).

        Winograd's algorithms are taken to save in every 3x3 convolution of stride 1, in full, at no cost of transforms.
        """
        return next((name for name, saving in SAVINGS.items() if self.compute_share(saving) <= 1), None)

    @property
    def plausibility(self) -> Literal["possible", "implausible", "impossible"]:
        """Whether the device can do the work in the time.

        `possible`: by direct convolutions. `implausible`: only by a Winograd algorithm. `impossible`: not even so.
        """
        if self.algorithm is None:
            return "impossible"
        return "possible" if self.algorithm == "direct convolutions" else "implausible"

    @property
    def severity(self) -> tuple[bool, float]:
        """What orders rates from the most plausible to the least."""
        return self.plausibility == "impossible", self.flops_per_second / self.limit

    def describe(self) -> str:
        """Return `64 images x 8.18 GFLOP / 152.73 ms = 3.43 TFLOP/s, 42.3 % of the 8.10 TFLOP/s of the T4 at fp32`.

        The reading's label stands in front of it where the row has several.
        """
        row, (peak, bound) = self.row, self.peaks
        unit = choose_rate_unit([self.flops_per_second, row.num_devices * (bound or 0)])
        operations = "OP" if row.precision == "int8" else "FLOP"
        rates = (self.flops_per_second, self.most_flops_per_second)

        def write_rate(*values: float) -> str:
            numbers = dict.fromkeys(format_number(value, unit) for value in values)
            return f"{' to '.join(numbers)} {unit.label.replace('FLOP', operations)}"

        def write_share(whole: float) -> str:
            return " to ".join(dict.fromkeys(format_number(rate / whole, PERCENT) for rate in rates))

        works = (flops / _count_samples(row) / GFLOP.size for flops in (self.flops, self.most_flops))
        work = f"{' to '.join(dict.fromkeys(map(format_significant, works)))} G{operations}"
        line = f"{self.label}: " if len(row.list_readings()) > 1 else ""
        if row.samples_per_second is not None:
            line += f"{row.figure} x {work}"
        else:
            line += f"{row.batch_size:,} {row.samples} x {work} / {row.figure}"
        line += f" = {write_rate(*rates)}"
        if peak is None or bound is None:
            return line
        devices, rated = name_devices(row, self.device, "the "), row.num_devices * peak
        line += f", {write_share(rated)} % of the {write_rate(rated)} of {devices} at {row.precision}"
        return line + (f", {write_share(self.limit)} % of its bound of {write_rate(bound)}" if bound > peak else "")

    def describe_algorithm(self) -> str:
        """Return what reaches a time that direct convolutions cannot, at what share; empty where they can."""
        if self.plausibility == "possible":
            return ""
        word = "peak" if self.peaks[0] == self.peaks[1] else "bound"
        small, large = (
            format_number(self.compute_share(one), PERCENT) for one in (WINOGRAD_SAVING, LARGER_TILE_SAVING)
        )
        source = "Lavin and Gray, arXiv 1509.09308; their transforms are not counted"
        if self.plausibility == "impossible":
            return (
                f"out of reach even if every 3x3 convolution of stride 1 were done by Winograd's F(4x4, 3x3) with "
                f"{LARGER_TILE_SAVING:g} times fewer multiplications, which would need {large} % of the {word} "
                f"({source})"
            )
        return (
            f"out of reach of direct convolutions. Winograd's F(2x2, 3x3), with {WINOGRAD_SAVING:g} times fewer "
            f"multiplications in 3x3 convolutions of stride 1, would need {small} % of the {word}, F(4x4, 3x3), with "
            f"{LARGER_TILE_SAVING:g} times fewer, {large} % ({source})"
        )


def list_rates(row: TableRow, device: StatedDevice) -> tuple[Rate, ...]:
    return tuple(_read_rate(row, device, reading) for reading in row.list_readings())


def _read_rate(row: TableRow, device: StatedDevice, reading: StatedReading) -> Rate:
    """Return the rate of a reading; of a counted model the Winograd share is what would leave its least operations.

    It is the part in 3x3 convolutions of stride 1, and more where FFT saves in larger kernels; at most 1.
    """
    if reading.flops_per_sample is not None:
        flops, share = reading.flops_per_sample, 1.0 if reading.winograd_share is None else reading.winograd_share
    else:
        cost = count_step_cost(row.make_cell(reading))
        flops, share = cost.flops, min(1.0, (1 - cost.least_flops / cost.flops) / (1 - 1 / LARGER_TILE_SAVING))
    samples = _count_samples(row)
    return Rate(
        row=row,
        device=device,
        label=reading.label or (f"size {reading.input_size}" if reading.input_size else "the stated work"),
        flops=samples * flops,
        most_flops=samples * (reading.most_flops_per_sample or flops),
        winograd_share=share,
    )


def _count_samples(row: TableRow) -> float:
    """Return the samples of a step, of a rate without a batch those of a second."""
    return row.batch_size or row.samples_per_second_stated


def name_devices(row: TableRow, device: StatedDevice, article: str = "") -> str:
    """Return `Tesla T4`, `8 x Tesla T4`; `article` stands before a single one."""
    return f"{article}{device.name}" if row.num_devices == 1 else f"{row.num_devices} x {device.name}"


class Judgement(NamedTuple):
    """What arithmetic says of a row under every reading of its work, or what measured cells say of it."""

    verdict: AuditVerdict
    reason: str = ""
    """Why it is not possible, or what a reader should know; empty where no run was given."""


def _judge_by_arithmetic(kindest: Rate) -> Judgement:
    row, device, (peak, bound) = kindest.row, kindest.device, kindest.peaks
    if peak is None or bound is None:
        return Judgement("unknown", f"no {row.precision} peak of the {device.name} is known ({device.source})")
    if reason := _explain_memory(row, device):
        return Judgement("impossible", reason)
    if kindest.plausibility == "possible":
        is_rated = kindest.flops_per_second <= row.num_devices * peak
        above = "beyond the rated peak, within the bound: it needs a clock above the rated one"
        return Judgement("possible", "" if is_rated else above)
    parts = [kindest.describe_algorithm()]
    if any(reading.flops_per_sample and reading.winograd_share is None for reading in row.list_readings()):
        parts.append("which convolutions the work has is not known: judged as if all of it were 3x3 of stride 1")
    _, tf32 = device.find_peak("tf32")
    if row.precision == "fp32" and tf32 is not None and kindest.flops_per_second <= row.num_devices * tf32:
        parts.append(
            "in TF32, which frameworks use for float32 convolutions on such a GPU unless told otherwise, it would be "
            "possible"
        )
    if row.precision in ("fp16", "amp") and isinstance(device, KnownGpu) and HALF_RATE.search(device.name):
        parts.append("with accumulation in float16 the tensor cores of such a card are twice as fast as this peak")
    return Judgement(kindest.plausibility, "; ".join(parts))


def _explain_memory(row: TableRow, device: StatedDevice) -> str:
    """Return why the time is too short to read the weights once, under every reading; empty where it is not.

    Of inference only: how often a training step crosses the memory depends on its optimiser.
    """
    readings, gigabytes_per_second = row.list_readings(), device.gigabytes_per_second
    is_counted = all(reading.flops_per_sample is None for reading in readings)
    if row.phase != "infer" or row.batch_size is None or gigabytes_per_second is None or not is_counted:
        return ""
    parameters = min(count_step_cost(row.make_cell(reading)).num_parameters for reading in readings)
    weights = parameters * WEIGHT_BYTES[row.precision]
    cached = CACHE_TRANSFERS * device.cache_mebibytes * 2**20
    least_seconds = max(0.0, weights - cached) / (gigabytes_per_second * 1e9)
    if row.batch_size / row.samples_per_second_stated >= least_seconds:
        return ""
    return (
        f"reading the weights once, {weights / 1e6:,.0f} MB less what the cache keeps, takes "
        f"{format_number(least_seconds, MILLISECOND)} ms at {gigabytes_per_second:,.0f} GB/s"
    )


# An interval that spans this factor would agree with a figure and with its double.
TOO_WIDE = 2.0


def _judge_by_measurement(row: TableRow, device: StatedDevice, summary: pd.DataFrame | None) -> Judgement:
    """Return whether the row's figure lies inside the interval of a matching cell, widened by TOLERANCE.

    `summary`: rows of `summarize_collections`; None where no run was given. docs/audit.md says which cells match.
    """
    if summary is None:
        return Judgement("not tested")
    if obstacle := _find_obstacle(row):
        return Judgement("not tested", obstacle)
    cells = _find_cells(row, device, summary)
    if cells.empty:
        return Judgement("not tested", "no cell of this work, measured on this device under sound conditions")
    seconds = (row.batch_size or 0) / row.samples_per_second_stated
    low, high = cells["interval_low_seconds"], cells["interval_high_seconds"]
    is_decisive = high < TOO_WIDE * low
    if not is_decisive.any():
        return Judgement("not tested", f"no interval, or one too wide to tell: {_describe_cells(cells)}")
    agrees = is_decisive & (low * (1 - TOLERANCE) <= seconds) & (seconds <= high * (1 + TOLERANCE))
    band = f"widened by {TOLERANCE / PERCENT.size:g} %"
    if agrees.any():
        return Judgement("reproduced", f"inside {_describe_cells(cells[agrees])}, {band}")
    return Judgement("not reproduced", f"outside {_describe_cells(cells[is_decisive])}, {band}")


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


def _find_cells(row: TableRow, device: StatedDevice, summary: pd.DataFrame) -> pd.DataFrame:
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
    names = found["gpu_name"].where(found["device"] == "gpu", found["cpu_model"])
    kinds = zip(found["device"], names, found["num_threads"], strict=True)
    return found[[not pd.isna(name) and device.is_measured(kind, name, number) for kind, name, number in kinds]]


def _describe_cells(cells: pd.DataFrame) -> str:
    texts = []
    for cell in list_rows(cells):
        span = format_interval(cell["interval_low_seconds"], cell["interval_high_seconds"], MILLISECOND)
        name = f"{FRAMEWORK_NAMES[cell['framework']]} {cell['mode']}"
        shown = "one repeat" if span == NOT_THERE else f"{span} ms"
        texts.append(f"{shown} ({name} at size {cell['input_size']}, run {cell['run_id']})")
    return "; ".join(texts)


@dataclass(frozen=True)
class AuditedRow:
    """A row with its verdicts."""

    number: int
    """Its place in the table, from 1."""
    row: TableRow
    device: StatedDevice
    rates: tuple[Rate, ...]
    """What its figure implies, one for each reading."""
    kindest: Rate
    """The one by which it is judged."""
    arithmetic: Judgement
    measured: Judgement

    @property
    def bound_flops_per_second(self) -> float | None:
        """What the row's devices together are not taken to exceed. None: it is not known."""
        return None if self.kindest.peaks[1] is None else self.kindest.limit

    @property
    def most_flops_per_second(self) -> float:
        return max(rate.most_flops_per_second for rate in self.rates)

    @property
    def share_of_bound(self) -> float | None:
        bound = self.bound_flops_per_second
        return None if bound is None else self.kindest.flops_per_second / bound

    @property
    def lines(self) -> list[str]:
        return [rate.describe() for rate in self.rates]

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
        is_ordinary = self.arithmetic.verdict == "implausible" and self.kindest.algorithm == "F(2x2, 3x3)"
        return f"{self.arithmetic.verdict} without Winograd" if is_ordinary else self.arithmetic.verdict

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the verdicts are what they are; nothing where arithmetic has no objection and no run was given."""
        by_arithmetic, by_measurement = self.arithmetic.reason, self.measured.reason
        reasons = [f"{self.arithmetic_in_words}: {by_arithmetic}"] if by_arithmetic else []
        reasons += [f"{self.measured.verdict}: {by_measurement}"] if by_measurement else []
        if self.arithmetic.verdict == "impossible" and self.measured.verdict == "reproduced":
            wrong = "the stated peak or the counted operations are wrong, or the cells are"
            reasons.append(f"measured cells agree with it nevertheless: {wrong}")
        return tuple(reasons)

    @property
    def name(self) -> str:
        """What was timed on what: `PyTorch AMP, Tesla T4, batch 64, amp`."""
        row = self.row
        what = row.label or " ".join(filter(None, (row.framework, row.model or "model", row.phase)))
        batch = f"batch {row.batch_size}" if row.batch_size is not None else ""
        return ", ".join(filter(None, (what, name_devices(row, self.device), batch, row.precision)))


def audit_table(table: AuditTable, summary: pd.DataFrame | None = None) -> tuple[AuditedRow, ...]:
    audited = []
    for number, row in enumerate(table.rows, 1):
        device = find_device(table, row)
        rates = list_rates(row, device)
        kindest = min(rates, key=lambda rate: rate.severity)
        judged = _judge_by_arithmetic(kindest), _judge_by_measurement(row, device, summary)
        audited.append(AuditedRow(number, row, device, rates, kindest, *judged))
    return tuple(audited)
