"""Evaluate the claims of GPU over CPU, by arithmetic and by pairs of the study's own configuration.

The study's own configuration is TensorFlow's graph mode on synthetic data at the stated batch and a stated input size.
PyTorch eager, the study's other one, is named beside it; all else is listed only.
"""

import pandas as pd

from bench.schema import Device
from collector.claims.measurements import describe_nearest, describe_speedups, select_speedups, shorten
from collector.claims.plausibility import (
    Rate,
    choose_lowest,
    describe_algorithm_caveat,
    describe_bound,
    describe_rate,
    imply_rates,
)
from collector.claims.study import Claim, Study
from collector.claims.verdicts import (
    ClaimContext,
    ClaimResult,
    ClaimVerdict,
    Interval,
    Place,
    ReasonedVerdict,
    decide,
    explain_missing_intervals,
    list_intervals,
    list_missing_intervals,
    place_interval,
)
from collector.labels import FRAMEWORK_NAMES
from collector.units import RATIO, format_interval, format_significant

# The noise of identical runs reaches 10 % (TorchBench, pytorch/benchmark issue 1681): nearer is the same figure.
SPEEDUP_TOLERANCE = 0.10
DEVICES: tuple[Device, ...] = ("cpu", "gpu")


def evaluate_speedup(claim: Claim, context: ClaimContext) -> ClaimResult:
    """Evaluate a claim of GPU over CPU in training."""
    model, figure = str(claim.model), float(claim.figure or 0)
    pairs = select_speedups(context.measurements, context.study, model)
    verdict, reason = _decide_speedup(figure, pairs, context, model)
    nearest = "; ".join(shorten(describe_nearest(pairs)))
    return ClaimResult(
        statement=claim.statement,
        verdict=verdict,
        reason=f"{reason}. Measured at the stated work {nearest}" if nearest else reason,
        arithmetic=tuple(_calculate_speedup(model, figure, context)),
        measured=(
            *shorten(describe_speedups(context.measurements, pairs[pairs["ratio"].notna()])),
            *list_missing_intervals(pairs),
        ),
    )


def _decide_speedup(figure: float, pairs: pd.DataFrame, context: ClaimContext, model: str) -> ReasonedVerdict:
    """Return the verdict: impossible by arithmetic first, then what was measured, then implausible by arithmetic."""
    by_arithmetic = _find_implausible_time(model, context)
    if by_arithmetic is not None and by_arithmetic[0] == "impossible on the stated hardware":
        return by_arithmetic
    measured = _compare_speedup(figure, pairs, context.study)
    is_decided = measured[0] not in ("not decided", "not tested here")
    return measured if is_decided or by_arithmetic is None else by_arithmetic


def _imply_sides(model: str, context: ClaimContext) -> list[tuple[Rate, ...]]:
    """Return the rates of the two times that the study's speedup is made of: TensorFlow's, in training."""
    return [
        imply_rates(context.study, context.study.find_entry(model, "tensorflow", device, "train"), context.counted)
        for device in DEVICES
    ]


def _find_implausible_time(model: str, context: ClaimContext) -> ReasonedVerdict | None:
    """Return the verdict on the less plausible of the two times; None where both are possible."""
    worst = max((choose_lowest(rates) for rates in _imply_sides(model, context)), key=lambda rate: rate.share_of_bound)
    if worst.plausibility == "possible":
        return None
    verdict: ClaimVerdict = (
        "impossible on the stated hardware"
        if worst.plausibility == "impossible"
        else "implausible on the stated hardware"
    )
    return verdict, f"{describe_rate(worst)}: {describe_algorithm_caveat(worst)}"


def _compare_speedup(figure: float, pairs: pd.DataFrame, study: Study) -> ReasonedVerdict:
    own = pairs[pairs["is_stated_work"] & pairs["is_stated_mode"]]
    same = own[own["is_stated_hardware"]]
    decisive = same[same["ratio_low"].notna()]
    if decisive.empty:
        return "not tested here", _explain_untested(pairs, own, same, study)
    band = (figure * (1 - SPEEDUP_TOLERANCE), figure * (1 + SPEEDUP_TOLERANCE))
    found: dict[ClaimVerdict, list[str]] = {}
    for size, group in decisive.groupby("input_size", sort=False):
        places = [place_interval(interval, band) for interval in list_intervals(group)]
        found.setdefault(decide(places), []).append(f"at {size} px {_describe_places(group, places, band)}")
    verdicts: tuple[ClaimVerdict, ...] = ("reproduced", "not decided", "not reproduced")
    verdict = next(verdict for verdict in verdicts if verdict in found)
    return verdict, f"on the stated hardware, {'; '.join(text for texts in found.values() for text in texts)}"


def _describe_places(pairs: pd.DataFrame, places: list[Place], band: Interval) -> str:
    """Return each interval beside the band, and whether it lies inside or outside, or is too wide to tell."""
    words = {"inside": "inside", "outside": "outside", "across": "too wide to decide, across an edge of"}
    intervals = [
        f"{format_interval(*interval, RATIO)} times ({words[place]} the band)"
        for interval, place in zip(list_intervals(pairs), places, strict=True)
    ]
    return (
        f"the 95 % interval is {', '.join(intervals)}, the band {format_interval(*band, RATIO)} times, the figure "
        f"within {SPEEDUP_TOLERANCE * 100:.0f} %"
    )


def _explain_untested(pairs: pd.DataFrame, own: pd.DataFrame, same: pd.DataFrame, study: Study) -> str:
    """Return the one reason why nothing that was measured decides; `same` is of `own`, `own` of `pairs`."""
    stated = f"a {study.gpu.name} over a {study.cpu.name}"
    if not same.empty:
        return f"measured on the stated hardware, but {explain_missing_intervals(same)}"
    if own["ratio"].notna().any():
        return f"the figure is of {stated}; measured here is other hardware"
    if not own.empty:
        return f"at the stated work, in TensorFlow's graph mode, {explain_missing_intervals(own)}"
    if pairs["ratio"].notna().any():
        return (
            "measured here is other work than the study's: not its batch, its input size and synthetic data in "
            "TensorFlow's graph mode, GPU and CPU both"
        )
    return explain_missing_intervals(pairs) or "no cell of this model's training was measured on both a GPU and a CPU"


def _calculate_speedup(model: str, figure: float, context: ClaimContext) -> list[str]:
    study, workload = context.study, context.study.workloads[model]
    lines = [describe_rate(rate) for rates in _imply_sides(model, context) for rate in rates]
    lines += [describe_bound(study.cpu), _compare_peaks(figure, study)]
    times = {
        framework: study.find_entry(model, framework, "cpu", "train").seconds
        / study.find_entry(model, framework, "gpu", "train").seconds
        for framework in ("tensorflow", "pytorch")
    }
    ratios = " and ".join(f"{format_significant(ratio)}x in {FRAMEWORK_NAMES[name]}" for name, ratio in times.items())
    lines.append(f"the study's own table gives {ratios}")
    return [*lines, workload.remark] if workload.remark else lines


def _compare_peaks(figure: float, study: Study) -> str:
    gpu, cpu = study.gpu.high_peak_flops_per_second, study.cpu
    low, high = gpu / cpu.high_peak_flops_per_second, gpu / cpu.low_peak_flops_per_second
    span = f"the stated devices' likely peaks are {format_significant(low)} to {format_significant(high)} times apart"
    if figure - 0.5 <= high:  # figures are stated as whole numbers
        return span
    behind = f"{format_significant(figure / high)} to {format_significant(figure / low)}"
    return f"{span}: {figure:g}x needs a CPU that stays {behind} times further below its peak than the GPU"
