"""Compute the arithmetic rate that a stated time implies, and say whether the device can reach it.

Knows no study and no table: a time in seconds, readings of its work in FLOPs and a device's limit come in. A time is
judged by the reading that is kindest to it, so `implausible` and `impossible` hold under every reading.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from collector.units import PERCENT, choose_rate_unit, format_number

# How many times fewer multiplications 3x3 convolutions of stride 1 need by Winograd's F(2x2, 3x3) and F(4x4, 3x3): A.
# Lavin and S. Gray, Fast Algorithms for Convolutional Neural Networks, 2015, arXiv 1509.09308: 36 over 16, 144 over 36.
# Larger tiles save more multiplications and lose more of float32's accuracy; their transforms grow too.
WINOGRAD_SAVING = 2.25
LARGER_TILE_SAVING = 4.0
# A device that does less than this part of even the lowest peak that it may have is no baseline: a speedup over it says
# nothing of the faster device. The study's CPU reaches 0.9 to 1.2 of that peak in training ResNet18 and VGG16, and
# a two-core CPU trains Conv6 at 32 px at 0.69 of its measured matrix product (636 ms a step of 64, 134 GFLOP/s).
BASELINE_SHARE = 0.1
# The noise of identical runs reaches 10 % (TorchBench, pytorch/benchmark issue 1681): nearer is the same figure.
TOLERANCE = 0.10

Plausibility = Literal["possible", "implausible", "impossible"]
Algorithm = Literal["direct convolutions", "F(2x2, 3x3)", "F(4x4, 3x3)"]
SAVINGS: Mapping[Algorithm, float] = {
    "direct convolutions": 1.0,
    "F(2x2, 3x3)": WINOGRAD_SAVING,
    "F(4x4, 3x3)": LARGER_TILE_SAVING,
}


@dataclass(frozen=True, kw_only=True)
class Limit:
    """The arithmetic rate that a device is not taken to exceed, in one precision."""

    device: str
    """Its name for people: `a Tesla T4` is written of `Tesla T4`."""
    flops_per_second: float
    word: str = "peak"
    """`peak`, or `bound` where the peak is not known and this is taken to lie beyond it."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """One reading of what a step computes."""

    label: str
    """What tells this reading from others, such as `224 px`."""
    flops: float
    """FLOPs of the step as direct convolutions do them, a multiply-add as two; the fewest where they are a range."""
    most_flops: float | None = None
    """The most where they are a range; None: as many as `flops`."""
    winograd_share: float = 1.0
    """The part of `flops` in 3x3 convolutions of stride 1, from 0 to 1; 1, the kindest, where it is not known."""

    def count_least(self, saving: float) -> float:
        """Return the FLOPs where 3x3 convolutions of stride 1 need `saving` times fewer, transforms not counted."""
        return self.flops * (1 - self.winograd_share + self.winograd_share / saving)


@dataclass(frozen=True, kw_only=True)
class Rate:
    """The arithmetic rate that a time implies under one reading of its work."""

    work: Work
    seconds: float
    limit: Limit

    @property
    def flops_per_second(self) -> float:
        """The arithmetic rate of the step: its FLOPs, counted as direct convolutions, divided by its time."""
        return self.work.flops / self.seconds

    @property
    def most_flops_per_second(self) -> float:
        """The same with the most FLOPs of the reading, where they are a range."""
        return (self.work.most_flops or self.work.flops) / self.seconds

    @property
    def share_of_limit(self) -> float:
        """The rate over the device's limit, 1 where it reaches it."""
        return self.flops_per_second / self.limit.flops_per_second

    def compute_least_share(self, saving: float) -> float:
        """Return the share of the limit that is needed where 3x3 convolutions take `saving` times fewer FLOPs."""
        return self.work.count_least(saving) / self.seconds / self.limit.flops_per_second

    @property
    def algorithm(self) -> Algorithm | None:
        """The plainest algorithm by which the device can do the work in the time; None: not even by F(4x4, 3x3).

        Winograd's algorithms are taken to save in every 3x3 convolution of stride 1, in full, at no cost of transforms.
        """
        return next((name for name, saving in SAVINGS.items() if self.compute_least_share(saving) <= 1), None)

    @property
    def plausibility(self) -> Plausibility:
        """Whether the device can do the work in the time.

        `possible`: by direct convolutions. `implausible`: only by a Winograd algorithm. `impossible`: not even so.
        """
        if self.algorithm is None:
            return "impossible"
        return "possible" if self.algorithm == "direct convolutions" else "implausible"

    @property
    def severity(self) -> tuple[bool, float]:
        """What orders rates from the most plausible to the least."""
        return self.plausibility == "impossible", self.share_of_limit


def is_too_slow(rate: Rate, low_peak_flops_per_second: float) -> bool:
    """Return whether a time is too slow for a baseline: under BASELINE_SHARE of the lowest peak, at the most FLOPs."""
    return rate.most_flops_per_second < BASELINE_SHARE * low_peak_flops_per_second


def explain_too_slow(rate: Rate, low_peak_flops_per_second: float) -> str:
    """Return in words what makes a time too slow to be a baseline."""
    unit = choose_rate_unit([low_peak_flops_per_second])
    share = format_number(rate.most_flops_per_second / low_peak_flops_per_second, PERCENT)
    return (
        f"{share} % of the lowest peak that it may have, {format_number(low_peak_flops_per_second, unit)} "
        f"{unit.label}. Under {100 * BASELINE_SHARE:g} % is too slow to be a baseline: a speedup over it says nothing "
        "of the faster device"
    )


def describe_algorithm(rate: Rate) -> str:
    """Return what reaches a time that direct convolutions cannot, at what share of the limit; empty where they can."""
    if rate.plausibility == "possible":
        return ""
    small, large = (
        format_number(rate.compute_least_share(saving), PERCENT) for saving in (WINOGRAD_SAVING, LARGER_TILE_SAVING)
    )
    source = "Lavin and Gray, arXiv 1509.09308; their transforms are not counted"
    if rate.plausibility == "impossible":
        return (
            f"out of reach even if every 3x3 convolution of stride 1 were done by Winograd's F(4x4, 3x3) with "
            f"{LARGER_TILE_SAVING:g} times fewer multiplications, which would need {large} % of the {rate.limit.word} "
            f"({source})"
        )
    return (
        f"out of reach of direct convolutions. Winograd's F(2x2, 3x3), with {WINOGRAD_SAVING:g} times fewer "
        f"multiplications in 3x3 convolutions of stride 1, would need {small} % of the {rate.limit.word}, F(4x4, 3x3), "
        f"with {LARGER_TILE_SAVING:g} times fewer, {large} % ({source})"
    )
