"""The table of durations: how long a repeat spends on importing, building, warming up and the timed window."""

from collector.analysis import Analysis
from collector.tables.columns import CELL, number_column
from collector.tables.table import Table, make_table
from collector.units import SECOND

DURATION_TITLES = {
    "import_seconds": "import",
    "build_seconds": "build",
    "first_step_seconds": "first step",
    "warmup_seconds": "warm-up",
    "steady_seconds": "timed window",
}


def make_durations_table(analysis: Analysis) -> Table | None:
    """Return how long each part of a repeat took, the medians of the repeats; None where nothing was measured."""
    rows = analysis.measured
    if rows.empty:
        return None
    durations = [number_column(title, name, SECOND) for name, title in DURATION_TITLES.items()]
    return make_table("Durations within a repeat, medians of the repeats that count", [CELL, *durations], rows)
