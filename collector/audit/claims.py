"""Judge the study's claims by arithmetic, then by what runs measured.

Three verdicts are measured, on the stated hardware where the claim is about hardware, on any GPU where it is about a
framework: `reproduced`, `not reproduced`, `not decided`. Three are arithmetic on a time that the claim rests on, under
every reading of its work: `implausible without Winograd`, `implausible on the stated hardware`, `impossible on the
stated hardware` (see rates.py). `peak rates only`: the figure is a ratio of data sheets. `not tested here`: all
else. Findings stand beside a verdict and decide nothing.
"""

from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from collector.audit.measurements import (
    VERDICTS,
    ClaimContext,
    ClaimResult,
    Decided,
    Finding,
    describe_energies,
    describe_pairs,
    describe_shares,
    describe_speedups,
    describe_times,
    gather_measurements,
    list_missing_intervals,
    select_speedups,
)
from collector.audit.rates import (
    Limit,
    Rate,
    Work,
    describe_algorithm,
    describe_rate,
    describe_seconds,
    is_too_slow,
)
from collector.audit.ratios import evaluate_gain, evaluate_lightness, evaluate_phases, evaluate_speedup
from collector.audit.study import (
    Claim,
    ClaimKind,
    PeakRatio,
    count_flops,
    describe_bound,
    list_beyond_limit,
    load_study,
)
from collector.forecast.fit import STUDY_YEAR, Projection, format_amount, replay_study
from collector.forecast.series import load_series
from collector.units import (
    GFLOPS,
    format_number,
    format_significant,
)


def _evaluate_table(claim: Claim, context: ClaimContext) -> ClaimResult:
    """Evaluate the table by its least plausible time, under the reading that is kindest to each time."""
    study = context.study
    found = sorted(list_beyond_limit(study, context.counted), key=lambda time: time.rate.severity, reverse=True)
    impossible = sum(time.rate.plausibility == "impossible" for time in found)
    reason = (
        f"under every reading of its work, {len(found)} of its {len(study.table)} times are shorter than the "
        f"stated device can do the work in by direct convolutions; {impossible} of them even by Winograd's F(4x4, 3x3)"
    )
    return ClaimResult(
        claim=claim,
        verdict=VERDICTS[found[0].rate.algorithm] if found else "not tested here",
        reason=reason + (f". The worst: {found[0].entry.model}, {found[0].describe()}" if found else ""),
        arithmetic=(
            *(f"{time.entry.model} ({time.rate.plausibility}): {time.describe()}" for time in found),
            *(describe_algorithm(time.rate) for time in found[:1]),
            *claim.facts,
            describe_bound(study.cpu),
            *(workload.remark for workload in study.workloads.values() if workload.remark),
        ),
        measured=describe_shares(context.measurements),
    )


LONG_AGO = 2022
# A projection within this factor of the truth is right. The study gives no error; products of one year differ by more
# (in 2024 141, 180 and 256 GB), so nearer than that a projection could not be called wrong.
RIGHT_FACTOR = 1.25


def _evaluate_memory(claim: Claim, context: ClaimContext) -> ClaimResult:
    """Evaluate the claim by replaying it: degrees 2 to 4, fitted up to each year that the study's data may end in."""
    projections = replay_study(load_series())
    polynomials = [projection for projection in projections if projection.is_of_study]

    def is_right(one: Projection) -> bool:
        return one.truth / RIGHT_FACTOR <= one.value <= one.truth * RIGHT_FACTOR

    right, old = [*filter(is_right, polynomials)], [one for one in polynomials if one.last_year == LONG_AGO]
    decided: Decided = "not decided" if right else "not reproduced"
    scope = "the study's own figures, its degree, its last year of data and what it counts as demand are not known here"
    if polynomials:
        scope = (
            f"{len(right)} of {len(polynomials)} polynomials come within a factor of {RIGHT_FACTOR:g} of the largest "
            f"GPU of {STUDY_YEAR}, {format_amount(polynomials[0].truth, 'GB')}: fitted on GPUs "
            f"{_list_spans(polynomials)}; {scope}"
        )
    miss = f"fitted on GPUs {_list_spans(old)}; none is right"
    finding = Finding(name="misses if fitted up to 2022", reason=miss)
    return ClaimResult(
        claim=claim,
        verdict="not tested here" if not polynomials else "reproduced" if right == polynomials else decided,
        reason=scope,
        findings=(finding,) if old and not any(map(is_right, old)) else (),
        arithmetic=tuple(
            f"{one.method}, fitted on GPUs up to {one.last_year}: "
            f"{format_amount(one.value, 'GB') if one.value > 0 else 'no forecast, as it is zero or less'}"
            for one in projections
        ),
    )


def _list_spans(projections: Sequence[Projection]) -> str:
    spans = []
    for year in dict.fromkeys(projection.last_year for projection in projections):
        given = [projection.value for projection in projections if projection.last_year == year]
        ends = " to ".join(format_amount(end, "GB") for end in (min(given), max(given)))
        spans.append(f"up to {year} they give {ends}")
    return ", ".join(spans)


def _evaluate_energy(claim: Claim, context: ClaimContext) -> ClaimResult:
    """Evaluate the claim by the power of both devices; energies that were read are listed."""
    study, figure = context.study, float(claim.figure or 0)
    saving = figure * study.cpu.power_watts / study.gpu.power_watts
    pairs = select_speedups(context.measurements, study, str(claim.model), "train")
    return ClaimResult(
        claim=claim,
        verdict="not tested here",
        reason=f"the energy of a {study.gpu.name} and of two vCPUs was not measured; energy is saved by as large a "
        "factor as time only where both devices draw the same power",
        arithmetic=(
            f"two vCPUs draw about {study.cpu.power_watts:g} W (an estimate) and a {study.gpu.name} up to "
            f"{study.gpu.power_watts:g} W: at {figure:g} times the speed the GPU then saves energy by a factor of "
            f"about {saving:.0f} ({figure:g} x {study.cpu.power_watts:g} / {study.gpu.power_watts:g}), where the "
            f"implied claim is {figure:g}",
        ),
        measured=describe_energies(context.measurements, pairs),
    )


def _evaluate_text(claim: Claim, context: ClaimContext) -> ClaimResult:
    """Check the ratio of the claim's two times; the project's own text classifier is listed, nothing decides."""
    assert claim.cpu_seconds
    assert claim.gpu_seconds
    others = context.measurements.others
    pairs = others[(others["model"] == claim.model) & (others["phase"] == "train")]
    ratio = format_significant(claim.cpu_seconds / claim.gpu_seconds)
    return ClaimResult(
        claim=claim,
        verdict="not tested here",
        reason="neither the network, nor its data, nor the GPU is stated, so there is nothing to repeat and no rate to "
        "compute; the project's own text classifier is another network",
        arithmetic=(f"{claim.cpu_seconds:g} s over {claim.gpu_seconds:g} s are {ratio}", *claim.facts),
        measured=(*describe_speedups(context.measurements, pairs), *list_missing_intervals(pairs)),
    )


def _evaluate_product(claim: Claim, context: ClaimContext) -> ClaimResult:
    """Evaluate the claim by arithmetic: what rate its times imply, and whether a kernel's time can be so long."""
    assert claim.flops
    assert claim.cpu_seconds
    assert claim.gpu_seconds
    assert claim.slowest_gpu
    limit = Limit(device=claim.slowest_gpu.name, flops_per_second=claim.slowest_gpu.tflops * 1e12)
    rate = Rate(work=Work(label="FP32", flops=claim.flops, winograd_share=0.0), seconds=claim.gpu_seconds, limit=limit)
    others, rows = context.measurements.others, context.measurements.other_rows
    finding = Finding(
        name="no kernel time",
        reason=f"{describe_rate(rate)}; at that peak the product takes "
        f"{describe_seconds(claim.flops / limit.flops_per_second)}. Either most of it was spent on something else than "
        "the product, or the GPU was a far slower one",
    )
    return ClaimResult(
        claim=claim,
        verdict="not tested here",
        reason="neither the GPU, nor the CPU, nor what was timed beside the product is stated",
        findings=(finding,) if is_too_slow(rate, limit.flops_per_second) else (),
        arithmetic=(
            f"on the CPU {describe_seconds(claim.cpu_seconds)} for {format_number(claim.flops, GFLOPS)} GFLOP are "
            f"{format_number(claim.flops / claim.cpu_seconds, GFLOPS)} GFLOP/s; over the GPU's time that is a "
            f"factor of {format_significant(claim.cpu_seconds / claim.gpu_seconds)}",
            f"on the GPU {describe_rate(rate)}",
            *claim.facts,
        ),
        measured=(
            *describe_speedups(context.measurements, others[others["model"] == claim.model]),
            *describe_times(rows[(rows["model"] == claim.model) & (rows["device"] == "gpu")]),
        ),
    )


def _evaluate_peaks(claim: Claim, context: ClaimContext) -> ClaimResult:
    """Evaluate a claim by the ratios of peaks that it can be read as; TF32 over FP32 is listed as measured."""
    figure = float(claim.figure or 0)
    same = [_describe_peaks(ratio) for ratio in claim.peak_ratios if round(ratio.ratio) == figure]
    reason = f"no ratio of peak rates known here gives {figure:g}, and no program was timed"
    if same:
        reason = f"{figure:g} is the ratio of two peak rates, {' or '.join(same)}; no program was timed"
    is_tf32 = any("TF32" in ratio.label for ratio in claim.peak_ratios)
    return ClaimResult(
        claim=claim,
        verdict="peak rates only" if same else "not tested here",
        reason=reason,
        arithmetic=(*map(_describe_peaks, claim.peak_ratios), *claim.facts),
        measured=describe_pairs(context.measurements.precisions, "as fast as") if is_tf32 else (),
    )


def _describe_peaks(ratio: PeakRatio) -> str:
    rates = f"{ratio.faster_tflops:g} over {ratio.slower_tflops:g} TFLOP/s"
    return f"{format_significant(ratio.ratio)} ({ratio.label}: {rates})"


def _evaluate_value(claim: Claim, context: ClaimContext) -> ClaimResult:
    return ClaimResult(claim=claim, verdict="not tested here", reason="a judgement of value, not a measurement")


_EVALUATORS: Mapping[ClaimKind, Callable[[Claim, ClaimContext], ClaimResult]] = {
    "speedup": evaluate_speedup,
    "lightness": evaluate_lightness,
    "phases": evaluate_phases,
    "latency": evaluate_gain,
    "fusion": evaluate_gain,
    "table": _evaluate_table,
    "memory": _evaluate_memory,
    "energy": _evaluate_energy,
    "text": _evaluate_text,
    "product": _evaluate_product,
    "peaks": _evaluate_peaks,
    "judgement": _evaluate_value,
}


def evaluate_claims(summary: pd.DataFrame) -> tuple[ClaimResult, ...]:
    """Return a result for each claim of the study, in its order, from the rows of `summarize_collections`."""
    return evaluate_all(gather_context(summary))


def gather_context(summary: pd.DataFrame) -> ClaimContext:
    """Return what claims are judged from, of the rows of `summarize_collections`."""
    study = load_study()
    return ClaimContext(study=study, counted=count_flops(summary), measurements=gather_measurements(summary, study))


def evaluate_all(context: ClaimContext) -> tuple[ClaimResult, ...]:
    """Return a result for each claim of the study, in its order."""
    return tuple(_EVALUATORS[claim.kind](claim, context) for claim in context.study.claims)
