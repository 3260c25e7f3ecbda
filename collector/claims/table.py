"""Evaluate the claim that the times of the study's table are those of the stated work on the stated hardware."""

from collector.claims.measurements import describe_shares, shorten
from collector.claims.plausibility import describe_algorithm
from collector.claims.stated_times import describe_bound, list_beyond_limit
from collector.claims.study import Claim
from collector.claims.verdicts import ClaimContext, ClaimResult, judge_rate


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
