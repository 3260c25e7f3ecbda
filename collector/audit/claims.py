"""Judge the study's claims by arithmetic, then by what runs measured.

Three verdicts are measured, on the stated hardware where the claim is about hardware, on any GPU where it is about a
framework: `reproduced`, `not reproduced`, `not decided`. Three are arithmetic on a time that the claim rests on, under
every reading of its work: `implausible without Winograd`, `implausible on the stated hardware`, `impossible on the
stated hardware` (see rates.py). `peak rates only`: the figure is a ratio of data sheets. `not tested here`: all
else. Findings stand beside a verdict and decide nothing.

A claim that latency falls by about some share is judged by the mean over the study's models at its own work: the study
states one figure for four models, of which its own table has 18.6, 6.4, 9.8 and 6.1 %: one alone lies within 10 to 20
%, and their mean is 10.3 %. A rule that asked it of each model would call the study itself not reproduced.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import sqrt

import pandas as pd

from collector.audit.measurements import (
    ClaimContext,
    ClaimResult,
    ClaimVerdict,
    Finding,
    Interval,
    ReasonedVerdict,
    describe_pairs,
    describe_shares,
    describe_speedups,
    describe_times,
    explain_missing_intervals,
    find_stated_batches,
    gather_measurements,
    judge_rate,
    list_missing_intervals,
    place_interval,
    shorten,
)
from collector.audit.rates import Limit, Rate, Work, describe_algorithm, describe_rate, describe_seconds, is_too_slow
from collector.audit.speedups import evaluate_energy, evaluate_lightness, evaluate_phases, evaluate_speedup
from collector.audit.study import (
    Claim,
    ClaimKind,
    PeakRatio,
    Study,
    count_flops,
    describe_bound,
    list_beyond_limit,
    load_study,
)
from collector.forecast.fit import STUDY_YEAR, Projection, format_amount, replay_study
from collector.forecast.series import load_series
from collector.labels import label_shared
from collector.ratio_words import describe_ratio
from collector.results.cell_repeats import read_estimate
from collector.results.frames import Row, list_rows
from collector.units import GFLOPS, PERCENT, format_interval, format_number, format_significant, join_words

# "About 15 %": from 10 to 20 %.
GAIN_TOLERANCE = 0.05
# Of several readings of a model's work the one that is kindest to the claim counts.
KINDEST_FIRST: tuple[ClaimVerdict, ...] = ("reproduced", "not decided", "not reproduced")


@dataclass(frozen=True, kw_only=True)
class Gain:
    """The share by which latency falls, below zero where it rises, with its 95 % interval."""

    name: str
    value: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class _Reading:
    """Holds the mean over the models, each at one of its measured input sizes, and the verdict that follows from it."""

    verdict: ClaimVerdict
    mean: Gain
    gains: tuple[Gain, ...]


def judge_gains(figure: float, pairs: pd.DataFrame, study: Study, what: str) -> ReasonedVerdict:
    """Return whether latency falls by `figure`, as the mean over the study's models at its own work.

    The stated GPU decides where it was measured, or else every GPU that was.

    `pairs`: time ratios of a comparison; those at other batches do not decide. `what`: what is compared, in words.
    """
    own = pairs[find_stated_batches(pairs, study)]
    by_gpu = _collect_by_gpu(own)
    decisive = {gpu: _list_readings(figure, gains) for gpu, gains in _select_decisive(by_gpu, study).items()}
    if not decisive:
        return "not tested here", _explain_untested(own, by_gpu, study)
    verdicts = [readings[0].verdict for readings in decisive.values()]
    verdict = next(verdict for verdict in reversed(KINDEST_FIRST) if verdict in verdicts)
    band = format_interval(*find_band(figure), PERCENT)
    reason = "; ".join(
        f"on {gpu}, {what} at the study's own work: {' or '.join(map(_describe_reading, readings))}; "
        f"the band is {band} %"
        for gpu, readings in decisive.items()
    )
    return verdict, reason


def _collect_by_gpu(own: pd.DataFrame) -> dict[str, dict[str, list[Gain]]]:
    known = own[own["ratio_low"].notna()]
    return {str(gpu): _collect_gains(group) for gpu, group in known.groupby("gpu_name_subject", sort=True)}


def _select_decisive(by_gpu: Mapping[str, dict[str, list[Gain]]], study: Study) -> dict[str, dict[str, list[Gain]]]:
    complete = {gpu: gains for gpu, gains in by_gpu.items() if set(gains) == set(study.workloads)}
    stated = {gpu: gains for gpu, gains in complete.items() if study.gpu.is_named(gpu)}
    return stated or complete


def find_band(figure: float) -> Interval:
    """Return what counts as about `figure`."""
    return figure - GAIN_TOLERANCE, figure + GAIN_TOLERANCE


def judge_mean(figure: float, gains: Sequence[Gain]) -> ClaimVerdict:
    """Return where the mean's interval lies: inside the band, outside, or across an edge of it."""
    mean = compute_mean(gains)
    place = place_interval((mean.low, mean.high), find_band(figure))
    return {"inside": "reproduced", "outside": "not reproduced", "across": "not decided"}[place]  # type: ignore[return-value]


def compute_mean(gains: Sequence[Gain]) -> Gain:
    """Return the mean of independent gains; its interval is put together from theirs.

    The distances of the limits from the values add up in squares: G. Y. Zou, A. Donner, Construction of confidence
    limits about effect measures, Statistics in Medicine 27 (2008) 1693.
    """
    value = sum(gain.value for gain in gains) / len(gains)
    below = sqrt(sum((gain.value - gain.low) ** 2 for gain in gains)) / len(gains)
    above = sqrt(sum((gain.high - gain.value) ** 2 for gain in gains)) / len(gains)
    return Gain(name="arithmetic mean", value=value, low=value - below, high=value + above)


def describe_gain(gain: Gain) -> str:
    """Return `conv6 18.6 % lower`, with the interval where it is one."""
    low, high = _turn_ends(gain)
    return _say_gain(gain) + ("" if low == high else f" (95 % interval {format_interval(low, high, PERCENT)})")


def _turn_ends(gain: Gain) -> Interval:
    return (gain.low, gain.high) if gain.value >= 0 else (-gain.high, -gain.low)


def _say_gain(gain: Gain) -> str:
    size = format_number(abs(gain.value), PERCENT)
    return f"{gain.name} {size} % {'lower' if gain.value >= 0 else 'higher'}"


def describe_extremes(pairs: pd.DataFrame) -> str:
    """Return the cells in which latency falls most and least, at any batch; empty where fewer than two have intervals.

    `pairs`: time ratios of a comparison. A claim that one cell bears out can be wrong of another.
    """
    known = pairs[pairs["ratio_low"].notna()]
    if len(known) < 2:
        return ""
    named = sorted(zip(label_shared(known), list_rows(known), strict=True), key=lambda item: float(item[1]["ratio"]))
    best, worst = (f"{name}, {_say_longer(row)}" for name, row in (named[0], named[-1]))
    return f"Of {len(named)} cells measured here, the best for the claim: {best}; the worst: {worst}"


def _say_longer(pair: Row) -> str:
    ratio = read_estimate(pair, center="ratio")
    return describe_ratio(ratio, subject=pair["subject"], reference=pair["reference"])


def _collect_gains(pairs: pd.DataFrame) -> dict[str, list[Gain]]:
    gains: dict[str, list[Gain]] = {}
    for (model, size), group in pairs.groupby(["model", "input_size"], sort=True):
        gain = Gain(
            name=f"{model} at {size} px",
            value=1 - float(group["ratio"].median()),
            low=1 - float(group["ratio_high"].max()),
            high=1 - float(group["ratio_low"].min()),
        )
        gains.setdefault(str(model), []).append(gain)
    return gains


def _list_readings(figure: float, gains: Mapping[str, Sequence[Gain]]) -> list[_Reading]:
    readings = [
        _Reading(verdict=judge_mean(figure, chosen), mean=compute_mean(chosen), gains=chosen)
        for chosen in product(*gains.values())
    ]
    return sorted(readings, key=lambda reading: KINDEST_FIRST.index(reading.verdict))


def _describe_reading(reading: _Reading) -> str:
    return f"{describe_gain(reading.mean)}, of {', '.join(map(_say_gain, reading.gains))}"


def _explain_untested(own: pd.DataFrame, by_gpu: Mapping[str, Mapping[str, Sequence[Gain]]], study: Study) -> str:
    wanted = f"the claim is a mean over {len(study.workloads)} models at the study's own batches and sizes"
    missing = explain_missing_intervals(own)
    if not by_gpu:
        return f"{wanted}, of which no pair was measured here{f': {missing}' if missing else ''}"
    return f"{wanted}; this run has {'; '.join(_list_measured(by_gpu))}"


def _list_measured(by_gpu: Mapping[str, Mapping[str, Sequence[Gain]]]) -> Iterator[str]:
    for gpu, gains in by_gpu.items():
        names = join_words(gain.name for found in gains.values() for gain in found)
        yield f"{len(gains)} of them on {gpu}: {names}"


def evaluate_latency(claim: Claim, context: ClaimContext) -> ClaimResult:
    """Evaluate the claim that TensorFlow's latency is lower than PyTorch's by the claim's figure.

    Graph mode over PyTorch eager, at the stated batch, decides; other batches and modes are listed.
    """
    pairs = context.measurements.latencies
    own = select_modes(pairs, "graph", "eager")
    verdict, reason = judge_gains(
        float(claim.figure or 0), own, context.study, "Keras on TensorFlow in graph mode over PyTorch eager"
    )
    return ClaimResult(
        statement=claim.statement,
        verdict=verdict,
        reason=reason,
        extremes=describe_extremes(own),
        arithmetic=(_describe_table(context.study), *claim.facts),
        measured=(
            *describe_pairs(put_stated_first(own, context.study), "as long as"),
            *describe_pairs(_select_others(pairs), "as long as"),
            *list_missing_intervals(own),
        ),
    )


def select_modes(pairs: pd.DataFrame, subject: str, reference: str) -> pd.DataFrame:
    """Return the pairs of one mode over another."""
    return pairs[(pairs["mode_subject"] == subject) & (pairs["mode_reference"] == reference)]


def put_stated_first(pairs: pd.DataFrame, study: Study) -> pd.DataFrame:
    measured = pairs[pairs["ratio"].notna()]
    order = (~find_stated_batches(measured, study)).sort_values(kind="stable").index
    return measured.loc[order]


def _select_others(pairs: pd.DataFrame) -> pd.DataFrame:
    chosen = (("unfused", "eager"), ("fused-norm", "eager"), ("compiled", "compiled"))
    found = pd.concat([select_modes(pairs, *modes) for modes in chosen])
    return found[found["ratio"].notna()]


def _describe_table(study: Study) -> str:
    gains = []
    for model in study.workloads:
        tensorflow, pytorch = (
            study.find_entry(model, name, "gpu", "infer").seconds for name in ("tensorflow", "pytorch")
        )
        gain = 1 - tensorflow / pytorch
        gains.append(Gain(name=model, value=gain, low=gain, high=gain))
    listed = ", ".join(describe_gain(gain) for gain in gains)
    return f"{study.table_name} says {listed}; {describe_gain(compute_mean(gains))}"


def evaluate_fusion(claim: Claim, context: ClaimContext) -> ClaimResult:
    """Evaluate the claim that fusion lowers latency by the claim's figure; fused norms and XLA are listed."""
    pairs = context.measurements.fusion
    own = select_modes(pairs, "graph", "unfused")
    verdict, reason = judge_gains(
        float(claim.figure or 0),
        own,
        context.study,
        "Keras on TensorFlow in graph mode with fusion over the same without",
    )
    others = pd.concat([select_modes(pairs, mode, "graph") for mode in ("fused-norm", "compiled")])
    return ClaimResult(
        statement=claim.statement,
        verdict=verdict,
        reason=reason,
        extremes=describe_extremes(own),
        arithmetic=claim.facts,
        measured=(
            *describe_pairs(put_stated_first(own, context.study), "as long as"),
            *describe_pairs(others[others["ratio"].notna()], "as long as"),
            *list_missing_intervals(own),
        ),
    )


def evaluate_peaks(claim: Claim, context: ClaimContext) -> ClaimResult:
    """Evaluate a claim by the ratios of peaks that it can be read as; TF32 over FP32 is listed as measured."""
    verdict, reason = _judge(claim)
    pairs = context.measurements.precisions
    is_tf32 = any("TF32" in ratio.label for ratio in claim.peak_ratios)
    measured = describe_pairs(pairs[pairs["ratio"].notna()], "as fast as") if is_tf32 else ()
    return ClaimResult(
        statement=claim.statement,
        verdict=verdict,
        reason=reason,
        arithmetic=(*(_describe_peaks(ratio) for ratio in claim.peak_ratios), *claim.facts),
        measured=measured,
    )


def _judge(claim: Claim) -> ReasonedVerdict:
    figure = float(claim.figure or 0)
    same = [_describe_peaks(ratio) for ratio in claim.peak_ratios if round(ratio.ratio) == figure]
    if not same:
        return "not tested here", f"no ratio of peak rates known here gives {figure:g}, and no program was timed"
    return "peak rates only", f"{figure:g} is the ratio of two peak rates, {' or '.join(same)}; no program was timed"


def _describe_peaks(ratio: PeakRatio) -> str:
    rates = f"{ratio.faster_tflops:g} over {ratio.slower_tflops:g} TFLOP/s"
    return f"{format_significant(ratio.ratio)} ({ratio.label}: {rates})"


LONG_AGO = 2022
# A projection within this factor of the truth is right. The study gives no error; products of one year differ by more
# (in 2024 141, 180 and 256 GB), so nearer than that a projection could not be called wrong.
RIGHT_FACTOR = 1.25


def evaluate_memory(claim: Claim, context: ClaimContext) -> ClaimResult:
    """Evaluate the claim by replaying it: degrees 2 to 4, fitted up to each year that the study's data may end in."""
    projections = replay_study(load_series())
    polynomials = [projection for projection in projections if projection.is_of_study]
    scope = "the study's own figures, its degree, its last year of data and what it counts as demand are not known here"
    verdict: ClaimVerdict = "not tested here"
    reason = scope
    if polynomials:
        right = [projection for projection in polynomials if _is_right(projection)]
        verdict = "not decided" if right else "not reproduced"
        verdict = "reproduced" if len(right) == len(polynomials) else verdict
        reason = (
            f"{len(right)} of {len(polynomials)} polynomials come within a factor of {RIGHT_FACTOR:g} of the largest "
            f"GPU of {STUDY_YEAR}, {_format_gb(polynomials[0].truth)}: fitted on GPUs {_list_spans(polynomials)}; "
            f"{scope}"
        )
    return ClaimResult(
        statement=claim.statement,
        verdict=verdict,
        reason=reason,
        findings=_find_miss(polynomials),
        arithmetic=tuple(_describe(projection) for projection in projections),
    )


def _is_right(projection: Projection) -> bool:
    return projection.truth / RIGHT_FACTOR <= projection.value <= projection.truth * RIGHT_FACTOR


def _list_spans(projections: list[Projection]) -> str:
    spans = []
    for year in dict.fromkeys(projection.last_year for projection in projections):
        given = [projection.value for projection in projections if projection.last_year == year]
        spans.append(f"up to {year} they give {_format_gb(min(given))} to {_format_gb(max(given))}")
    return ", ".join(spans)


def _find_miss(polynomials: list[Projection]) -> tuple[Finding, ...]:
    found = [projection for projection in polynomials if projection.last_year == LONG_AGO]
    if not found or any(_is_right(projection) for projection in found):
        return ()
    return (Finding(name="misses if fitted up to 2022", reason=f"fitted on GPUs {_list_spans(found)}; none is right"),)


def _describe(projection: Projection) -> str:
    given = _format_gb(projection.value) if projection.value > 0 else "no forecast, as it is zero or less"
    return f"{projection.method}, fitted on GPUs up to {projection.last_year}: {given}"


def _format_gb(memory_gb: float) -> str:
    return format_amount(memory_gb, "GB")


def evaluate_product(claim: Claim, context: ClaimContext) -> ClaimResult:
    """Evaluate the claim by arithmetic: what rate its times imply, and whether a kernel's time can be so long."""
    assert claim.flops
    assert claim.cpu_seconds
    assert claim.gpu_seconds
    assert claim.slowest_gpu
    limit = Limit(device=claim.slowest_gpu.name, flops_per_second=claim.slowest_gpu.tflops * 1e12)
    rate = Rate(work=Work(label="FP32", flops=claim.flops, winograd_share=0.0), seconds=claim.gpu_seconds, limit=limit)
    others = context.measurements.others
    pairs, rows = others[others["model"] == claim.model], context.measurements.other_rows
    return ClaimResult(
        statement=claim.statement,
        verdict="not tested here",
        reason="neither the GPU, nor the CPU, nor what was timed beside the product is stated",
        findings=_find_other_time(rate),
        arithmetic=(
            f"on the CPU {describe_seconds(claim.cpu_seconds)} for {format_number(claim.flops, GFLOPS)} GFLOP are "
            f"{format_number(claim.flops / claim.cpu_seconds, GFLOPS)} GFLOP/s; over the GPU's time that is a "
            f"factor of {format_significant(claim.cpu_seconds / claim.gpu_seconds)}",
            f"on the GPU {describe_rate(rate)}",
            *claim.facts,
        ),
        measured=(
            *describe_speedups(context.measurements, pairs[pairs["ratio"].notna()]),
            *describe_times(rows[(rows["model"] == claim.model) & (rows["device"] == "gpu")]),
        ),
    )


def _find_other_time(rate: Rate) -> tuple[Finding, ...]:
    if not is_too_slow(rate, rate.limit.flops_per_second):
        return ()
    least = rate.work.flops / rate.limit.flops_per_second
    reason = (
        f"{describe_rate(rate)}; at that peak the product takes {describe_seconds(least)}. Either most of it "
        "was spent on something else than the product, or the GPU was a far slower one"
    )
    return (Finding(name="no kernel time", reason=reason),)


def evaluate_table(claim: Claim, context: ClaimContext) -> ClaimResult:
    """Evaluate the table by its least plausible time, under the reading that is kindest to each time."""
    found = sorted(list_beyond_limit(context.study, context.counted), key=lambda time: time.rate.severity, reverse=True)
    impossible = sum(time.rate.plausibility == "impossible" for time in found)
    reason = (
        f"under every reading of its work, {len(found)} of its {len(context.study.table)} times are shorter than the "
        f"stated device can do the work in by direct convolutions; {impossible} of them even by Winograd's F(4x4, 3x3)"
    )
    return ClaimResult(
        statement=claim.statement,
        verdict=judge_rate(found[0].rate) if found else "not tested here",
        reason=reason + (f". The worst: {found[0].entry.model}, {found[0].describe()}" if found else ""),
        arithmetic=(
            *(f"{time.entry.model} ({time.rate.plausibility}): {time.describe()}" for time in found),
            *(describe_algorithm(time.rate) for time in found[:1]),
            *claim.facts,
            describe_bound(context.study.cpu),
            *(workload.remark for workload in context.study.workloads.values() if workload.remark),
        ),
        measured=shorten(describe_shares(context.measurements)),
    )


def evaluate_text(claim: Claim, context: ClaimContext) -> ClaimResult:
    """Evaluate the claim: its ratio is checked, the project's own text classifier is listed, nothing decides."""
    assert claim.cpu_seconds
    assert claim.gpu_seconds
    others = context.measurements.others
    pairs = others[(others["model"] == claim.model) & (others["phase"] == "train")]
    return ClaimResult(
        statement=claim.statement,
        verdict="not tested here",
        reason="neither the network, nor its data, nor the GPU is stated, so there is nothing to repeat and no rate to "
        "compute; the project's own text classifier is another network",
        arithmetic=(
            f"{claim.cpu_seconds:g} s over {claim.gpu_seconds:g} s are "
            f"{format_significant(claim.cpu_seconds / claim.gpu_seconds)}",
            *claim.facts,
        ),
        measured=(
            *describe_speedups(context.measurements, pairs[pairs["ratio"].notna()]),
            *list_missing_intervals(pairs),
        ),
    )


def evaluate_claim(claim: Claim, context: ClaimContext) -> ClaimResult:
    """Return what arithmetic and runs say about `claim`, by the evaluator of its kind, and who reports the claim."""
    result = _EVALUATORS[claim.kind](claim, context)
    return replace(
        result,
        id=claim.id,
        provenance=context.study.describe_provenance(claim),
        quote=claim.quote,
    )


def _evaluate_value(claim: Claim, context: ClaimContext) -> ClaimResult:
    return ClaimResult(
        statement=claim.statement, verdict="not tested here", reason="a judgement of value, not a measurement"
    )


_EVALUATORS: Mapping[ClaimKind, Callable[[Claim, ClaimContext], ClaimResult]] = {
    "speedup": evaluate_speedup,
    "lightness": evaluate_lightness,
    "phases": evaluate_phases,
    "latency": evaluate_latency,
    "fusion": evaluate_fusion,
    "table": evaluate_table,
    "memory": evaluate_memory,
    "energy": evaluate_energy,
    "text": evaluate_text,
    "product": evaluate_product,
    "peaks": evaluate_peaks,
    "judgement": _evaluate_value,
}


def gather_context(summary: pd.DataFrame) -> ClaimContext:
    """Return what claims are judged from, of the rows of `summarize_collections`."""
    study = load_study()
    return ClaimContext(study=study, counted=count_flops(summary), measurements=gather_measurements(summary, study))


def evaluate_all(context: ClaimContext) -> tuple[ClaimResult, ...]:
    """Return a result for each claim of the study, in the study's order."""
    return tuple(evaluate_claim(claim, context) for claim in context.study.claims)


def evaluate_claims(summary: pd.DataFrame) -> tuple[ClaimResult, ...]:
    """Return a result for each claim of the study from the rows of `summarize_collections`."""
    return evaluate_all(gather_context(summary))
