"""The table of the roofline: the arithmetic of a step beside what the device can do."""

from collections.abc import Iterator, Sequence

import pandas as pd

from collector.analysis import Analysis
from collector.product_rates import describe_drift, describe_unequal_products, list_drifted
from collector.results.host_peaks import HostProducts
from collector.tables.columns import CELL, number_column, text_column
from collector.tables.table import Column, Table, make_table
from collector.units import GFLOP, MILLISECOND, NOT_THERE, PERCENT, choose_rate_unit

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
    remark = " ".join(filter(None, _list_remarks(analysis.collection.host_products)))
    return make_table(CAPTION, columns, rows, remark=remark)


def _list_remarks(products: Sequence[HostProducts]) -> Iterator[str]:
    """Yield what the shares of peak rest on, and which rates the hosts and frameworks had."""
    yield REMARK
    yield describe_unequal_products(products)
    for drift in list_drifted(products):
        yield (
            f"The speed of {drift.host.name} was not always the same: {describe_drift(drift)}. Shares here are of the "
            "highest. Step times and ratios are not computed from it; what it does to them is in their intervals."
        )


def describe_limit(roof: str, share: float) -> str:
    """Return what limits a cell that reaches `share` of its nearest roof, as far as that says it."""
    if pd.isna(share) or pd.isna(roof):
        return NOT_THERE
    return str(roof) if share >= NEAR_SHARE else "not known"
