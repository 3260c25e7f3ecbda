"""Evaluate claims whose figure is the ratio of two data sheets' peak rates."""

from collector.claims.measurements import describe_pairs
from collector.claims.study import Claim, PeakRatio
from collector.claims.verdicts import ClaimContext, ClaimResult, ReasonedVerdict
from collector.units import format_significant


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
        arithmetic=(*(_describe(ratio) for ratio in claim.peak_ratios), *claim.facts),
        measured=measured,
    )


def _judge(claim: Claim) -> ReasonedVerdict:
    figure = float(claim.figure or 0)
    same = [_describe(ratio) for ratio in claim.peak_ratios if round(ratio.ratio) == figure]
    if not same:
        return "not tested here", f"no ratio of peak rates known here gives {figure:g}, and no program was timed"
    return "peak rates only", f"{figure:g} is the ratio of two peak rates, {' or '.join(same)}; no program was timed"


def _describe(ratio: PeakRatio) -> str:
    rates = f"{ratio.faster_tflops:g} over {ratio.slower_tflops:g} TFLOP/s"
    return f"{format_significant(ratio.ratio)} ({ratio.label}: {rates})"
