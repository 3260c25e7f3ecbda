"""The table of the roofline: the arithmetic of a step beside what the device can do."""

import pandas as pd

from collector.analysis import Analysis
from collector.labels import FRAMEWORK_NAMES
from collector.results.host_peaks import HostDrift
from collector.tables.columns import CELL, number_column, text_column
from collector.tables.table import Column, Table, make_table
from collector.units import GFLOP, MILLISECOND, NOT_THERE, PERCENT, choose_rate_unit, format_number

NEAR_SHARE = 0.5
"""From here on a step spends most of its time on what the roof counts, if it runs at the roof's rate. Below, the longer
part of the time is something else, which the roof does not name."""
CAPTION = (
    "Roofline: the arithmetic of a step, counted as direct convolutions, and how near it came to what the device "
    "can do; with Winograd's more than 100 % can be right"
)
REMARK = (
    "The nearest roof is the one that a perfect program would meet first: the peak of arithmetic, or the bandwidth for "
    "the least bytes. It limits a cell that reaches at least half of it, as far as its convolutions are direct ones. "
    "Below half it does not say what does: launches, the host, more bytes than the least, or other operations. The "
    "row of a cell with tenants is of one of them: the others take their part of the device."
)


def make_roofline_table(analysis: Analysis) -> Table | None:
    """Return how near each cell came to the bounds of its device; None where no cell has a FLOP count."""
    rows = analysis.summary[analysis.summary["flops_per_step"].notna()]
    if rows.empty:
        return None
    unit = choose_rate_unit(rows[["achieved_flops_per_second", "peak_flops_per_second"]].max().dropna())
    columns = [
        CELL,
        number_column("FLOP count", "flops_per_step", GFLOP),
        number_column("achieved", "achieved_flops_per_second", unit),
        number_column("peak", "peak_flops_per_second", unit),
        number_column("of peak", "share_of_peak", PERCENT),
        text_column("nearest roof", "bound"),
        number_column("least time under it", "min_step_seconds", MILLISECOND),
        number_column("of that roof", "share_of_roofline", PERCENT),
        Column(title="limited by", sources=("bound", "share_of_roofline"), format=describe_limit),
        text_column("peak from", "peak_source"),
    ]
    remark = " ".join([REMARK, *map(describe_drift, analysis.collection.host_drifts)])
    return make_table(CAPTION, columns, rows, remark=remark)


def describe_drift(drift: HostDrift) -> str:
    """Say by how much the speed of a host differed between results, and which figures that concerns."""
    host, low, high = drift.host, drift.low_flops_per_second, drift.high_flops_per_second
    unit = choose_rate_unit([high])
    rates = f"{format_number(low, unit)} to {format_number(high, unit)} {unit.label}"
    framework = FRAMEWORK_NAMES.get(drift.framework, drift.framework)
    return (
        f"The speed of {host.name} was not always the same: matrix products of {framework} ({host.precision}, "
        f"{host.num_threads} threads) ran at {rates} in {drift.num_results} results, "
        f"{format_number(high / low - 1, PERCENT)} % apart. Shares here are of the highest. "
        "Step times and ratios are not computed from it; what it does to them is in their intervals."
    )


def describe_limit(roof: str, share: float) -> str:
    """Return what limits a cell that reaches `share` of its nearest roof, as far as that says it."""
    if pd.isna(share) or pd.isna(roof):
        return NOT_THERE
    return str(roof) if share >= NEAR_SHARE else "not known"
