"""Warn of what a reader must know before trusting the figures."""

import pandas as pd

from collector.analysis import Analysis
from collector.facts import count_things
from collector.results.collection import Collection
from collector.results.host_peaks import HostDrift
from collector.results.intervals import MODERATED_WARNING
from collector.tables.environments import describe_environment
from collector.units import PERCENT, choose_rate_unit, format_number


def list_warnings(analysis: Analysis) -> list[str]:
    """Return a sentence for each thing to beware of."""
    collection, measured = analysis.collection, analysis.measured
    unsteady = int((measured["num_counted"] - measured["num_steady"]).sum())
    single = int((measured["num_counted"] == 1).sum())
    unproven = int((measured["num_valid"] == 0).sum())
    retried = int((collection.results["num_attempts"] > 1).sum())
    warnings = [
        (unproven, "row", "without a valid repeat: the row's note says which repeats count"),
        (unsteady, "repeat", "timed although the warm-up had not become steady"),
        (single, "row", "without an interval, as a single repeat counts"),
        (retried, "repeat", "with more than one attempt; the earliest counts that ended ok and was not contaminated"),
    ]
    counted = [f"{count_things(count, thing)} {text}." for count, thing, text in warnings if count]
    moderated = [MODERATED_WARNING] if analysis.moderated else []
    drifts = map(_describe_drift, collection.host_drifts)
    return [*_list_mixed_cells(collection, measured), *drifts, *counted, *moderated]


def _describe_drift(drift: HostDrift) -> str:
    """Say that the speed of a host changed while the run was measured."""
    host, low, high = drift.host, drift.low_flops_per_second, drift.high_flops_per_second
    unit = choose_rate_unit([high])
    rates = f"{format_number(low, unit)} to {format_number(high, unit)} {unit.label}"
    return (
        f"Matrix products of {drift.framework} on {host.name} ({host.precision}, {host.num_threads} threads) ran "
        f"at {rates} in {drift.num_results} results, {format_number(high / low - 1, PERCENT)} % apart: shares refer to "
        "the host's highest figure of the run."
    )


def _list_mixed_cells(collection: Collection, measured: pd.DataFrame) -> list[str]:
    """Name each cell that ran in several environments, and in what they differ."""
    warnings = []
    for _, rows in measured[measured["num_environments"] > 1].groupby("cell_id", sort=False):
        described = [describe_environment(collection.environments[name]) for name in rows["environment_id"]]
        differing = [name for name in described[0] if len({texts[name] for texts in described}) > 1]
        name = f"{rows['workload'].iloc[0]}, {rows['variant'].iloc[0].partition(' [')[0]}"
        warnings.append(f"{name} ran in {len(rows)} environments, one row each; they differ in {', '.join(differing)}.")
    return warnings
