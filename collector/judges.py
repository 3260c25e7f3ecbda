"""A claim of the study and the case come in; what arithmetic and runs say about it, and the verdict, go out.

Four verdicts. `impossible on the stated hardware`: a time that the claim rests on is shorter than its device can do the
work in. `reproduced`, `not reproduced`: measured, on the stated hardware where the claim is about hardware, on any GPU
where it is about a framework. `not tested here`: all else; a speedup on other hardware tells nothing of the stated.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from bench.schema import Device
from collector.comparisons import count_left_out
from collector.evidence import (
    Evidence,
    describe_energies,
    describe_pairs,
    describe_shares,
    describe_speedups,
    select_speedups,
    shorten,
)
from collector.forecast import Forecast, format_gb
from collector.frames import list_rows
from collector.labels import FRAMEWORK_NAMES
from collector.plausibility import (
    Counted,
    Rate,
    compute_latency_gains,
    describe_escape,
    describe_rate,
    imply_rates,
    list_impossible,
)
from collector.study import Claim, ClaimKind, Study
from collector.units import PERCENT, format_number, format_significant

Verdict = Literal["reproduced", "not reproduced", "impossible on the stated hardware", "not tested here"]
Judgement = tuple[Verdict, str]

# The noise of identical runs reaches 10 % (TorchBench, pytorch/benchmark issue 1681): nearer is the same figure.
SPEEDUP_TOLERANCE = 0.10
# "About 15 %": from 10 to 20 %.
LATENCY_TOLERANCE = 0.05
STUDY_YEAR = 2025


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A claim with what arithmetic and runs say about it."""

    statement: str
    verdict: Verdict
    reason: str
    arithmetic: tuple[str, ...] = ()
    measured: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Case:
    """What a claim is judged by."""

    study: Study
    counted: Counted
    evidence: Evidence
    forecast: Forecast | None


def judge_claim(claim: Claim, case: Case) -> Answer:
    """Return the answer to `claim`."""
    return _JUDGES[claim.kind](claim, case)


def _judge_speedup(claim: Claim, case: Case) -> Answer:
    model, figure = str(claim.model), float(claim.figure or 0)
    pairs = select_speedups(case.evidence, case.study, model)
    verdict, reason = _find_impossible(model, case) or _compare_speedup(figure, pairs, case.study)
    return Answer(
        statement=claim.statement,
        verdict=verdict,
        reason=reason,
        arithmetic=tuple(_calculate_speedup(model, figure, case)),
        measured=(
            *shorten(describe_speedups(case.evidence, pairs)),
            *_state_left_out(case.evidence.speedups[case.evidence.speedups["model"] == model]),
        ),
    )


def _state_left_out(pairs: pd.DataFrame) -> tuple[str, ...]:
    sentence = count_left_out([pairs])
    return (sentence,) if sentence else ()


def _imply_sides(model: str, case: Case) -> list[tuple[Rate, ...]]:
    """Return the rates of the two times that the study's speedup is made of: TensorFlow's, in training."""
    devices: tuple[Device, ...] = ("cpu", "gpu")
    return [
        imply_rates(case.study, case.study.find_entry(model, "tensorflow", device, "train"), case.counted)
        for device in devices
    ]


def _find_impossible(model: str, case: Case) -> Judgement | None:
    for rates in _imply_sides(model, case):
        if not any(rate.is_possible for rate in rates):
            nearest = min(rates, key=lambda rate: rate.share_of_peak)
            escape = describe_escape(nearest.share_of_peak)
            return "impossible on the stated hardware", describe_rate(nearest) + (f"; {escape}" if escape else "")
    return None


def _compare_speedup(figure: float, pairs: pd.DataFrame, study: Study) -> Judgement:
    if pairs.empty:
        return "not tested here", "no GPU and CPU were measured at this work"
    same = pairs[
        pairs["is_stated"]
        & (pairs["gpu_name_subject"].str.split().str[-1] == study.gpu.name.split()[-1])
        & (pairs["num_threads_reference"] == study.cpu.num_threads)
        & pairs["ratio_low"].notna()
    ]
    if same.empty:
        stated = f"a {study.gpu.name} over a {study.cpu.name}"
        return (
            "not tested here",
            f"the figure is of {stated}; measured here is other hardware or work",
        )
    low, high = figure * (1 - SPEEDUP_TOLERANCE), figure * (1 + SPEEDUP_TOLERANCE)
    agree = int(((same["ratio_low"] <= high) & (same["ratio_high"] >= low)).sum())
    reason = f"{agree} of {len(same)} pairs on the stated hardware come within {SPEEDUP_TOLERANCE:.0%} of {figure:g}x"
    return ("reproduced" if agree == len(same) else "not reproduced"), reason.replace("%", " %")


def _calculate_speedup(model: str, figure: float, case: Case) -> list[str]:
    study, workload = case.study, case.study.workloads[model]
    lines = [describe_rate(rate) for rates in _imply_sides(model, case) for rate in rates]
    low = study.gpu.peak_flops_per_second / study.cpu.peak_flops_per_second
    high = study.gpu.peak_flops_per_second / study.cpu.low_peak_flops_per_second
    span = f"the stated devices' peaks are {format_significant(low)} to {format_significant(high)} times apart"
    if figure - 0.5 > high:  # figures are stated as whole numbers
        behind = f"{format_significant(figure / high)} to {format_significant(figure / low)}"
        span += f": {figure:g}x needs a CPU that stays {behind} times further below its peak than the GPU"
    lines.append(span)
    times = {
        framework: study.find_entry(model, framework, "cpu", "train").seconds
        / study.find_entry(model, framework, "gpu", "train").seconds
        for framework in ("tensorflow", "pytorch")
    }
    ratios = " and ".join(f"{format_significant(ratio)}x in {FRAMEWORK_NAMES[name]}" for name, ratio in times.items())
    lines.append(f"the study's own table gives {ratios}")
    return [*lines, workload.remark] if workload.remark else lines


def _judge_latency(claim: Claim, case: Case) -> Answer:
    gains = compute_latency_gains(case.study)
    listed = ", ".join(f"{model} {format_number(gain, PERCENT)}" for model, gain in gains.items())
    mean = format_number(sum(gains.values()) / len(gains), PERCENT)
    figure = float(claim.figure or 0)
    own = f"the study's own table says {listed} %, on average {mean} %"
    pairs = case.evidence.latencies
    pairs = pairs[pairs["ratio_low"].notna()]
    default = pairs[(pairs["mode_subject"] == "graph") & (pairs["mode_reference"] == "eager")]
    others = pairs[pairs["mode_subject"].isin(["compiled"]) & (pairs["mode_reference"] == "compiled")]
    verdict, reason = _compare_latency(figure, default)
    return Answer(
        statement=claim.statement,
        verdict=verdict,
        reason=f"{reason}; {figure * 100:.0f} % is not in the study's own table either, its average is {mean} %",
        arithmetic=(own, *claim.facts),
        measured=(
            *shorten(describe_pairs(default, "as long as")),
            *shorten(describe_pairs(others, "as long as")),
            *_state_left_out(case.evidence.latencies),
        ),
    )


def _compare_latency(figure: float, pairs: pd.DataFrame) -> Judgement:
    if pairs.empty:
        return "not tested here", "no two repeats of TensorFlow's graph mode and PyTorch eager were measured on a GPU"
    low, high = 1 - figure - LATENCY_TOLERANCE, 1 - figure + LATENCY_TOLERANCE
    agree = int(((pairs["ratio_low"] <= high) & (pairs["ratio_high"] >= low)).sum())
    slower = int((pairs["ratio_low"] > 1).sum())
    gpus = ", ".join(sorted(set(pairs["gpu_name_subject"])))
    reason = (
        f"on {gpus}, TensorFlow's graph mode takes {format_significant(pairs['ratio'].min())} to "
        f"{format_significant(pairs['ratio'].max())} times as long as PyTorch eager over {len(pairs)} pairs "
        f"of model and batch: {agree} come within {(1 - high) * 100:.0f} to {(1 - low) * 100:.0f} % less, "
        f"in {slower} it is slower"
    )
    return ("reproduced" if agree == len(pairs) else "not reproduced"), reason


def _judge_fusion(claim: Claim, case: Case) -> Answer:
    pairs = case.evidence.modes
    pairs = pairs[pairs["ratio_low"].notna()]
    fused = pairs[(pairs["mode_subject"] == "compiled") & (pairs["mode_reference"] == "graph")]
    traced = pairs[(pairs["mode_subject"] == "graph") & (pairs["mode_reference"] == "eager")]
    faster, slower = int((fused["ratio_low"] > 1).sum()), int((fused["ratio_high"] < 1).sum())
    verdict: Verdict = "reproduced" if faster == len(fused) else "not reproduced"
    reason = f"XLA, which fuses kernels, makes it faster in {faster} of {len(fused)} cells and slower in {slower}"
    if fused.empty:
        verdict, reason = "not tested here", "TensorFlow was not measured with and without XLA on a GPU"
    return Answer(
        statement=claim.statement,
        verdict=verdict,
        reason=reason,
        arithmetic=claim.facts,
        measured=(
            *shorten(describe_pairs(fused, "as fast as")),
            *shorten(describe_pairs(traced, "as fast as")),
            *_state_left_out(case.evidence.modes),
        ),
    )


def _judge_table(claim: Claim, case: Case) -> Answer:
    found = list_impossible(case.study, case.counted)
    nearest = [min(rates, key=lambda rate: rate.share_of_peak) for rates in found]
    number, total = len(found), len(case.study.table)
    hopeless = sum(not describe_escape(rate.share_of_peak) for rate in nearest)
    verdict: Verdict = "impossible on the stated hardware" if found else "not tested here"
    return Answer(
        statement=claim.statement,
        verdict=verdict,
        reason=f"{number} of its {total} times are shorter than the stated device can do the work in at its FP32 peak, "
        f"operations as counted; {hopeless} of them even if every multiplication were saved that Winograd's algorithms "
        "save in 3x3 convolutions",
        arithmetic=tuple(f"{rate.entry.model}: {describe_rate(rate)}" for rate in nearest),
        measured=shorten(describe_shares(case.evidence)),
    )


def _judge_memory(claim: Claim, case: Case) -> Answer:
    return Answer(
        statement=claim.statement,
        verdict="not tested here",
        reason="the figures that it projects are not known here; what its method gives is",
        arithmetic=tuple(_replay_memory(case.forecast)) if case.forecast else (),
    )


def _replay_memory(forecast: Forecast) -> list[str]:
    cases = forecast.backtest[forecast.backtest["year"] == STUDY_YEAR]
    return [
        f"{row['candidate']}, fitted on GPUs up to {row['origin']}: "
        + ("no forecast" if row["refused"] else f"{format_gb(row['predicted_gb'])}")
        + f" for the largest GPU of {STUDY_YEAR}, which has {format_gb(row['actual_gb'])}"
        for row in list_rows(cases)
    ]


def _judge_energy(claim: Claim, case: Case) -> Answer:
    study, figure = case.study, float(claim.figure or 0)
    gain = format_significant(figure * study.cpu.power_watts / study.gpu.power_watts)
    pairs = select_speedups(case.evidence, study, str(claim.model))
    return Answer(
        statement=claim.statement,
        verdict="not tested here",
        reason=f"the energy of a {study.gpu.name} and of two vCPUs was not measured; energy gains equal speedups only "
        "where both devices draw the same power",
        arithmetic=(
            f"two vCPUs draw about {study.cpu.power_watts:g} W (an estimate) and a {study.gpu.name} up to "
            f"{study.gpu.power_watts:g} W: {figure:g} times the speed is then {gain} times the energy",
        ),
        measured=shorten(describe_energies(case.evidence, pairs)),
    )


def _judge_value(claim: Claim, case: Case) -> Answer:
    return Answer(
        statement=claim.statement, verdict="not tested here", reason="a judgement of value, not a measurement"
    )


_JUDGES: Mapping[ClaimKind, Callable[[Claim, Case], Answer]] = {
    "speedup": _judge_speedup,
    "latency": _judge_latency,
    "fusion": _judge_fusion,
    "table": _judge_table,
    "memory": _judge_memory,
    "energy": _judge_energy,
    "judgement": _judge_value,
}
