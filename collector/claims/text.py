"""Evaluate the claim of a text classifier's training times, of which the work is not stated."""

from collector.claims.measurements import describe_speedups
from collector.claims.study import Claim
from collector.claims.verdicts import ClaimContext, ClaimResult, list_missing_intervals
from collector.units import format_significant


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
