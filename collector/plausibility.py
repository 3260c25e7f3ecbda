"""The study's table and FLOPs per sample come in; the rates that its times imply, and their words, go out."""

from collections.abc import Mapping
from dataclasses import dataclass

from bench.schema import Phase
from collector.labels import DEVICE_NAMES, FRAMEWORK_NAMES
from collector.study import Entry, Reading, StatedDevice, Study
from collector.units import (
    MILLISECOND,
    PERCENT,
    choose_rate_unit,
    format_number,
)

# Fewer multiplications of 3x3 convolutions than are counted: F(2x2, 3x3) and F(4x4, 3x3) of A. Lavin and S. Gray, Fast
# Algorithms for Convolutional Neural Networks, 2015, arXiv 1509.09308.
WINOGRAD_SAVINGS = (2.25, 4.0)

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
    def share_of_peak(self) -> float:
        """Over the most that a device of the study's description can reach."""
        return self.flops_per_second / self.device.peak_flops_per_second

    @property
    def is_possible(self) -> bool:
        """Whether the device can do so many operations in the time."""
        return self.share_of_peak <= 1


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


def list_impossible(study: Study, counted: Counted) -> list[tuple[Rate, ...]]:
    """Return the rates of the entries of the table that no reading makes possible."""
    rates = (imply_rates(study, entry, counted) for entry in study.table)
    return [found for found in rates if not any(rate.is_possible for rate in found)]


def describe_rate(rate: Rate) -> str:
    """Return in a sentence what a time implies."""
    entry, unit = rate.entry, choose_rate_unit([rate.device.peak_flops_per_second])
    time = f"{format_number(entry.seconds, MILLISECOND)} ms"
    found = f"{format_number(rate.flops_per_second, unit)} {unit.label}"
    share = f"{format_number(rate.share_of_peak, PERCENT)} %"
    peak = f"{format_number(rate.device.peak_flops_per_second, unit)} {unit.label}"
    most = "" if rate.device.low_peak_flops_per_second == rate.device.peak_flops_per_second else " at most"
    counted = ", operations as counted by this run" if rate.is_counted else ""
    return (
        f"{FRAMEWORK_NAMES[entry.framework]} {entry.phase} on the {DEVICE_NAMES[entry.device]}: {time} at "
        f"{rate.input_size} px imply {found}, {share} of the {peak} that a {rate.device.name} has{most}{counted}"
    )


def describe_escape(share_of_peak: float) -> str:
    """Return what could make a share of peak above 1 possible; empty where nothing known does."""
    for saving in WINOGRAD_SAVINGS:
        if share_of_peak <= saving:
            return (
                "possible only if its convolutions are done with fewer operations than counted (Winograd's "
                f"algorithms need up to {saving:g} times fewer multiplications for 3x3 kernels, arXiv 1509.09308)"
            )
    return ""


def compute_latency_gains(study: Study) -> dict[str, float]:
    """Return per model by what share TensorFlow's latency on the GPU is lower than PyTorch's in the study's table."""
    return {
        model: 1
        - study.find_entry(model, "tensorflow", "gpu", "infer").seconds
        / study.find_entry(model, "pytorch", "gpu", "infer").seconds
        for model in study.workloads
    }


def _find_flops(reading: Reading, phase: Phase) -> float:
    return reading.train_flops_per_sample if phase == "train" else reading.infer_flops_per_sample
