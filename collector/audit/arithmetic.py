"""Judge a row by arithmetic: the rate that its figure implies, held against what its device can do."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from bench.models.flops import StepCost, count_step_cost
from bench.registry import MODELS
from bench.roofline import CACHE_TRANSFERS
from collector.audit.devices import AuditedDevice
from collector.audit.table import StatedPrecision, StatedReading, TableRow
from collector.claims.plausibility import (
    LARGER_TILE_SAVING,
    Algorithm,
    Limit,
    Rate,
    Work,
    choose_kindest,
    describe_algorithm,
    imply_rates,
)
from collector.units import GFLOP, MILLISECOND, PERCENT, Unit, choose_rate_unit, format_number, format_significant

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
    """Return the verdict and its reason."""
    if device.bound_flops_per_second is None:
        return "unknown", f"no {row.precision} peak of the {device.name} is known ({device.source})"
    memory = _explain_memory(row, costs, device)
    if memory:
        return "impossible", memory
    return kindest.plausibility, _explain(row, kindest, device)


def _count_cost(row: TableRow, reading: StatedReading) -> StepCost | None:
    """Return the cost of a sample by the registry's layers; None where the table states its FLOPs."""
    return None if reading.flops_per_sample is not None else count_step_cost(row.make_cell(reading))


def _count_step_samples(row: TableRow) -> float:
    """Return the samples of what is timed: a step, or a second where only a rate is known."""
    return row.batch_size or row.samples_per_second_stated


def _make_limit(row: TableRow, device: AuditedDevice) -> Limit:
    """Return what the row's devices together are not taken to exceed; any number where that is not known."""
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
    """Return why direct convolutions cannot reach the figure; where they can, whether it is beyond the rated peak."""
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
