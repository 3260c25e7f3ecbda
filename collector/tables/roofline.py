"""The table of the roofline: the arithmetic of a step beside what the device can do."""

from collector.analysis import Analysis
from collector.tables.columns import CELL, number_column, text_column
from collector.tables.table import Table, make_table
from collector.units import GFLOP, MILLISECOND, PERCENT, choose_rate_unit


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
        text_column("bound by", "bound"),
        number_column("bound", "min_step_seconds", MILLISECOND),
        number_column("of the bound", "share_of_roofline", PERCENT),
        text_column("peak from", "peak_source"),
    ]
    return make_table(
        "Roofline: the arithmetic of a step, counted as direct convolutions, and how near it came to what the device "
        "can do; with Winograd's more than 100 % can be right",
        columns,
        rows,
    )
