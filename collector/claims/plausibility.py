"""Compute the arithmetic rates that the study's times imply, and say whether the stated devices can reach them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from bench.schema import Phase
from collector.claims.study import Entry, Reading, StatedDevice, Study
from collector.labels import DEVICE_NAMES, FRAMEWORK_NAMES
from collector.units import MILLISECOND, PERCENT, Unit, choose_rate_unit, format_interval, format_number

# How many times fewer multiplications 3x3 convolutions need than are counted, by F(2x2, 3x3) and by F(4x4, 3x3) of A.
# Lavin and S. Gray, Fast Algorithms for Convolutional Neural Networks, 2015, arXiv 1509.09308: 36 over 16, 144 over 36.
WINOGRAD_SAVING = 2.25
LARGER_TILE_SAVING = 4.0

Plausibility = Literal["possible", "implausible", "impossible"]
Counted = Mapping[tuple[str, int, Phase], float]
"""(model, input_size, phase) to FLOPs per sample, as a run counted them layer by layer."""


@dataclass(frozen=True, kw_only=True)
class Rate:
    """The arithmetic rate that a time of the table implies under one reading of its work."""

    entry: Entry
    input_size: int
    device: StatedDevice
    flops_per_step: float
    is_counted: bool
    """Whether the FLOPs were counted by a run, not taken from the data file."""

    @property
    def flops_per_second(self) -> float:
        """FLOPs of the step over its time."""
        return self.flops_per_step / self.entry.seconds

    @property
    def share_of_bound(self) -> float:
        """Over what no device of the study's description is taken to exceed."""
        return self.flops_per_second / self.device.bound_flops_per_second

    @property
    def plausibility(self) -> Plausibility:
        """Whether the device can do the work in the time: directly, with fewer multiplications, or not at all.

        `impossible`: not even if all of the work were 3x3 convolutions and WINOGRAD_SAVING were saved throughout.
        """
        if self.share_of_bound <= 1:
            return "possible"
        return "implausible" if self.share_of_bound <= WINOGRAD_SAVING else "impossible"


def imply_rates(study: Study, entry: Entry, counted: Counted) -> tuple[Rate, ...]:
    """Return the rate of each reading of the entry's work."""
    workload = study.workloads[entry.model]
    return tuple(
        Rate(
            entry=entry,
            input_size=reading.input_size,
            device=study.find_device(entry.device),
            flops_per_step=workload.batch_size
            * counted.get((entry.model, reading.input_size, entry.phase), _find_flops(reading, entry.phase)),
            is_counted=(entry.model, reading.input_size, entry.phase) in counted,
        )
        for reading in workload.readings
    )


def choose_lowest(rates: Sequence[Rate]) -> Rate:
    """Return the rate of the reading that makes its time the most plausible."""
    return min(rates, key=lambda rate: rate.share_of_bound)


def list_beyond_bound(study: Study, counted: Counted) -> list[Rate]:
    """Return the lowest rate of each entry of the table that no reading makes possible by direct convolutions."""
    lowest = (choose_lowest(imply_rates(study, entry, counted)) for entry in study.table)
    return [rate for rate in lowest if rate.plausibility != "possible"]


def describe_rate(rate: Rate) -> str:
    """Return in a sentence the rate that a time implies."""
    entry, unit = rate.entry, _choose_unit(rate.device)
    time = f"{format_number(entry.seconds, MILLISECOND)} ms"
    found = f"{format_number(rate.flops_per_second, unit)} {unit.label}"
    share = f"{format_number(rate.share_of_bound, PERCENT)} %"
    bound = f"{format_number(rate.device.bound_flops_per_second, unit)} {unit.label} {_name_limit(rate.device)}"
    counted = ", operations as counted in these runs" if rate.is_counted else ""
    return (
        f"{FRAMEWORK_NAMES[entry.framework]} {entry.phase} on the {DEVICE_NAMES[entry.device]}: {time} at "
        f"{rate.input_size} px imply {found}, {share} of the {bound} of a {rate.device.name}{counted}"
    )


def describe_algorithm_caveat(rate: Rate) -> str:
    """Return which algorithm could make a time possible that direct convolutions cannot; empty where they can."""
    if rate.plausibility == "possible":
        return ""
    if rate.plausibility == "implausible":
        return (
            "out of reach of direct convolutions, possible only by algorithms with fewer multiplications. Winograd's "
            f"F(2x2, 3x3), which float32 libraries ordinarily use, needs {WINOGRAD_SAVING:g} times fewer in 3x3 "
            f"convolutions, F(4x4, 3x3) {LARGER_TILE_SAVING:g} times with more transforms (Lavin and Gray, arXiv "
            "1509.09308); work that is not 3x3 convolutions gains nothing by them"
        )
    larger = format_number(rate.share_of_bound / LARGER_TILE_SAVING, PERCENT)
    return (
        f"out of reach even if all of the work were 3x3 convolutions done with {WINOGRAD_SAVING:g} times fewer "
        "multiplications by Winograd's F(2x2, 3x3), which float32 libraries ordinarily use (Lavin and Gray, arXiv "
        f"1509.09308). F(4x4, 3x3) needs {LARGER_TILE_SAVING:g} times fewer with more transforms: it would have to do "
        f"all of the work at {larger} % of the {_name_limit(rate.device)}, the transforms not counted"
    )


def describe_bound(device: StatedDevice) -> str:
    """Return in a sentence what bounds the device, and its likely peak where that is another."""
    unit = _choose_unit(device)
    bound = f"{format_number(device.bound_flops_per_second, unit)} {unit.label}"
    sentence = f"the FP32 {_name_limit(device)} of a {device.name} is taken as {bound} ({device.bound_reason})"
    if _name_limit(device) == "peak":
        return sentence
    likely = format_interval(device.low_peak_flops_per_second, device.high_peak_flops_per_second, unit)
    return f"{sentence}; its likely peak is {likely} {unit.label}"


def compute_latency_gains(study: Study) -> dict[str, float]:
    """Return per model by what share TensorFlow's latency on the GPU is lower than PyTorch's in the study's table."""
    return {
        model: 1
        - study.find_entry(model, "tensorflow", "gpu", "infer").seconds
        / study.find_entry(model, "pytorch", "gpu", "infer").seconds
        for model in study.workloads
    }


def _name_limit(device: StatedDevice) -> str:
    return "peak" if device.high_peak_flops_per_second == device.bound_flops_per_second else "bound"


def _choose_unit(device: StatedDevice) -> Unit:
    return choose_rate_unit([device.bound_flops_per_second])


def _find_flops(reading: Reading, phase: Phase) -> float:
    return reading.train_flops_per_sample if phase == "train" else reading.infer_flops_per_sample
