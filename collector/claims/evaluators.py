"""Evaluate the claims of the study by arithmetic and by what runs measured.

Six verdicts. `impossible`, `implausible on the stated hardware`: by arithmetic, a time that the claim rests on is too
short for its device, even if an algorithm saves multiplications, or unless one does (collector.claims.plausibility).
`reproduced`, `not reproduced`: measured, and every interval lies inside the claim's band, or one lies wholly outside.
`not decided`: measured, and an interval is too wide to tell. These three need the stated hardware where the claim is
about hardware, and any GPU where it is about a framework. `not tested here`: all else.
"""

from collections.abc import Callable, Mapping

from collector.claims.inference import evaluate_fusion, evaluate_latency
from collector.claims.measurements import describe_energies, describe_shares, select_speedups, shorten
from collector.claims.plausibility import describe_algorithm
from collector.claims.speedup import evaluate_speedup
from collector.claims.stated_times import describe_bound, list_beyond_limit
from collector.claims.study import Claim, ClaimKind
from collector.claims.verdicts import ClaimContext, ClaimResult, judge_rate
from collector.forecast.fit import Forecast, format_gb
from collector.results.frames import list_rows

STUDY_YEAR = 2025


def evaluate_claim(claim: Claim, context: ClaimContext) -> ClaimResult:
    """Return what arithmetic and runs say about `claim`, by the evaluator of its kind."""
    return _EVALUATORS[claim.kind](claim, context)


def _evaluate_table(claim: Claim, context: ClaimContext) -> ClaimResult:
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


def _evaluate_memory(claim: Claim, context: ClaimContext) -> ClaimResult:
    return ClaimResult(
        statement=claim.statement,
        verdict="not tested here",
        reason="the figures that it projects are not known here; what its method gives is",
        arithmetic=tuple(_replay_memory(context.forecast)) if context.forecast else (),
    )


def _replay_memory(forecast: Forecast) -> list[str]:
    forecasts = forecast.backtest[forecast.backtest["year"] == STUDY_YEAR]
    return [
        f"{row['candidate']}, fitted on GPUs up to {row['origin']}: "
        + ("no forecast" if row["refused"] else f"{format_gb(row['predicted_gb'])}")
        + f" for the largest GPU of {STUDY_YEAR}, which has {format_gb(row['actual_gb'])}"
        for row in list_rows(forecasts)
    ]


def _evaluate_energy(claim: Claim, context: ClaimContext) -> ClaimResult:
    study, figure = context.study, float(claim.figure or 0)
    saving = figure * study.cpu.power_watts / study.gpu.power_watts
    pairs = select_speedups(context.measurements, study, str(claim.model))
    return ClaimResult(
        statement=claim.statement,
        verdict="not tested here",
        reason=f"the energy of a {study.gpu.name} and of two vCPUs was not measured; energy is saved by as large a "
        "factor as time only where both devices draw the same power",
        arithmetic=(
            f"two vCPUs draw about {study.cpu.power_watts:g} W (an estimate) and a {study.gpu.name} up to "
            f"{study.gpu.power_watts:g} W: at {figure:g} times the speed the GPU then saves energy by a factor of "
            f"about {saving:.0f} ({figure:g} x {study.cpu.power_watts:g} / {study.gpu.power_watts:g}), where the "
            f"implied claim is {figure:g}",
        ),
        measured=shorten(describe_energies(context.measurements, pairs[pairs["ratio"].notna()])),
    )


def _evaluate_value(claim: Claim, context: ClaimContext) -> ClaimResult:
    return ClaimResult(
        statement=claim.statement, verdict="not tested here", reason="a judgement of value, not a measurement"
    )


_EVALUATORS: Mapping[ClaimKind, Callable[[Claim, ClaimContext], ClaimResult]] = {
    "speedup": evaluate_speedup,
    "latency": evaluate_latency,
    "fusion": evaluate_fusion,
    "table": _evaluate_table,
    "memory": _evaluate_memory,
    "energy": _evaluate_energy,
    "judgement": _evaluate_value,
}
