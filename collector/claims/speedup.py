"""Evaluate the claims of GPU over CPU, by arithmetic and by pairs of the study's own configuration.

The study's own configuration is TensorFlow's graph mode on synthetic data at the stated batch and a stated input size.
PyTorch eager, the study's other one, is named beside it; all else is listed only.
"""

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from bench.schema import Device
from collector.claims.measurements import describe_nearest, describe_speedups, select_speedups, shorten
from collector.claims.plausibility import Rate, explain_too_slow, is_too_slow
from collector.claims.stated_times import (
    ReadTime,
    choose_harshest_time,
    choose_kindest_time,
    describe_bound,
    read_time,
)
from collector.claims.study import Claim, Study
from collector.claims.verdicts import (
    ClaimContext,
    ClaimResult,
    ClaimVerdict,
    Finding,
    Interval,
    Place,
    ReasonedVerdict,
    choose_verdict,
    decide,
    explain_missing_intervals,
    list_intervals,
    list_missing_intervals,
    place_interval,
)
from collector.labels import FRAMEWORK_NAMES
from collector.units import GFLOP, GFLOPS, RATIO, format_interval, format_number, format_significant

# The noise of identical runs reaches 10 % (TorchBench, pytorch/benchmark issue 1681): nearer is the same figure.
SPEEDUP_TOLERANCE = 0.10
DEVICES: tuple[Device, ...] = ("cpu", "gpu")
Sides = tuple[ReadTime, ReadTime]
"""A time on the CPU and one on the GPU, under one reading."""


def evaluate_speedup(claim: Claim, context: ClaimContext) -> ClaimResult:
    """Evaluate a claim of GPU over CPU in training or inference."""
    figure, sides = float(claim.figure or 0), _list_sides(claim, context)
    pairs = select_speedups(context.measurements, context.study, str(claim.model), claim.phase)
    verdict, reason = _decide_speedup(figure, pairs, sides, context.study)
    nearest = "; ".join(shorten(describe_nearest(pairs)))
    return ClaimResult(
        statement=claim.statement,
        verdict=verdict,
        reason=reason,
        nearest=f"Measured at the stated work {nearest}{_limit(verdict, pairs)}" if nearest else "",
        is_measured=bool(pairs["ratio"].notna().any()),
        findings=_find_slow_baselines(sides, context.study),
        arithmetic=tuple(_calculate_speedup(claim, sides, context.study)),
        measured=(
            *describe_speedups(context.measurements, pairs[pairs["ratio"].notna()]),
            *list_missing_intervals(pairs),
        ),
    )


def _limit(verdict: ClaimVerdict, pairs: pd.DataFrame) -> str:
    """Return that what was measured on other devices alone decides nothing, where nothing else did."""
    nearest = pairs[pairs["is_nearest"]]
    if verdict != "not tested here" or nearest["is_stated_hardware"].any():
        return ""
    return "; this speaks neither for nor against the claim"


def _decide_speedup(figure: float, pairs: pd.DataFrame, sides: Sequence[Sides], study: Study) -> ReasonedVerdict:
    """Return the verdict: impossible by arithmetic first, then what was measured, then implausible by arithmetic."""
    # Of the reading that is kindest to both sides, the less plausible one: one network made both times.
    worst = choose_kindest_time([choose_harshest_time(pair) for pair in sides])
    return choose_verdict(worst, _compare_speedup(figure, pairs, study))


def _list_sides(claim: Claim, context: ClaimContext) -> list[Sides]:
    """Return per reading the two times that the speedup is made of, TensorFlow's."""
    study = context.study
    entries = (study.find_entry(str(claim.model), "tensorflow", device, claim.phase) for device in DEVICES)
    cpu, gpu = (read_time(study, entry, context.counted) for entry in entries)
    return list(zip(cpu, gpu, strict=True))


def _find_slow_baselines(sides: Sequence[Sides], study: Study) -> tuple[Finding, ...]:
    """Return a finding per reading under which the CPU's time is too slow to be a baseline."""
    low_peak = study.cpu.low_peak_flops_per_second
    return tuple(
        Finding(
            name="too slow to be a baseline",
            scope=f"at {cpu.rate.work.label}",
            reason=f"{cpu.describe()}, and {explain_too_slow(cpu.rate, low_peak)}",
        )
        for cpu, _ in sides
        if is_too_slow(cpu.rate, low_peak)
    )


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
        f"the 95 % interval of the ratio alone is {', '.join(intervals)}, "
        f"the band {format_interval(*band, RATIO)} times, the figure within {SPEEDUP_TOLERANCE * 100:.0f} %"
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
    nearest = pairs[pairs["is_nearest"]]
    if not nearest.empty and not nearest["is_stated_hardware"].any():
        return f"the figure is of {stated}; measured here is other hardware"
    if pairs["ratio"].notna().any():
        return (
            "measured here is other work than the study's: not its batch, its input size and synthetic data in "
            "TensorFlow's graph mode, GPU and CPU both"
        )
    return explain_missing_intervals(pairs) or "no cell of this work was measured on both a GPU and a CPU"


def _calculate_speedup(claim: Claim, sides: Sequence[Sides], study: Study) -> list[str]:
    workload = study.workloads[str(claim.model)]
    lines = [side.describe() for pair in sides for side in pair]
    lines += [_count_readings(sides, study), describe_bound(study.cpu)]
    lines += _compare_peaks(float(claim.figure or 0), sides[0], study)
    ratios = [
        f"{format_significant(ratio)}x in {FRAMEWORK_NAMES[framework]}"
        for framework in FRAMEWORK_NAMES
        if (ratio := _find_table_ratio(claim, framework, study)) is not None
    ]
    lines.append(f"{study.table_name} gives {' and '.join(ratios)}")
    return [*lines, workload.remark] if workload.remark else lines


def _find_table_ratio(claim: Claim, framework: str, study: Study) -> float | None:
    """Return the table's time on the CPU over that on the GPU; None where it lacks one."""
    times = {
        entry.device: entry.seconds
        for entry in study.table
        if (entry.model, entry.framework, entry.phase) == (claim.model, framework, claim.phase)
    }
    return times["cpu"] / times["gpu"] if len(times) == len(DEVICES) else None


def _count_readings(sides: Sequence[Sides], study: Study) -> str:
    """Return under which readings one network explains both times: possible on the GPU, and a baseline on the CPU."""
    labels = [
        cpu.rate.work.label
        for cpu, gpu in sides
        if cpu.rate.plausibility == gpu.rate.plausibility == "possible"
        and not is_too_slow(_keep_possible(cpu.rate, gpu.rate), study.cpu.low_peak_flops_per_second)
    ]
    return (
        f"one network has to explain both times, by direct convolutions on the GPU and fast enough for a baseline on "
        f"the CPU: {len(labels)} of {len(sides)} readings {'does' if len(labels) == 1 else 'do'}"
        + (f" ({', '.join(labels)})" if labels else "")
    )


def _keep_possible(cpu: Rate, gpu: Rate) -> Rate:
    """Return the CPU's rate with no more FLOPs than the GPU can do in its own time, where the reading is a range."""
    if cpu.work.most_flops is None:
        return cpu
    most = min(cpu.work.most_flops, gpu.limit.flops_per_second * gpu.seconds)
    return replace(cpu, work=replace(cpu.work, most_flops=most))


def _compare_peaks(figure: float, sides: Sides, study: Study) -> list[str]:
    """Return how far the peaks are apart, and what follows for the CPU where the figure is larger than that."""
    peak, cpu = study.gpu.high_peak_flops_per_second, study.cpu
    low, high = peak / cpu.high_peak_flops_per_second, peak / cpu.low_peak_flops_per_second
    span = f"the stated devices' likely peaks are {format_significant(low)} to {format_significant(high)} times apart"
    if figure - 0.5 <= high:  # figures are stated as whole numbers
        return [span]
    behind = f"{format_significant(figure / high)} to {format_significant(figure / low)}"
    slow, gpu = (side.entry.seconds for side in sides)
    most = format_number(peak * gpu / slow, GFLOPS)
    return [
        f"{span}: {figure:g}x needs a CPU that stays {behind} times further below its peak than the GPU",
        f"whatever was computed: a {study.gpu.name} at its peak does {format_number(peak * gpu, GFLOP)} GFLOP in its "
        f"time by direct convolutions, which the CPU then did at {most} GFLOP/s or less",
    ]
