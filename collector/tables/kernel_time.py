"""The table of where the time of a step on a GPU goes: kernels, or the gaps between them."""

import pandas as pd

from collector.analysis import Analysis
from collector.tables.columns import CELL, number_column, text_column
from collector.tables.table import Table, make_table
from collector.units import MILLISECOND, PERCENT, RATIO

# Below half, the GPU waits longer than it works: kernels that took no time at all would not make the step twice as
# fast.
LAUNCH_BOUND_SHARE = 0.5
REMARK = (
    f"Kernel time: the time of a step in which at least one kernel or copy ran on the busiest GPU, seen by the "
    f"framework's profiler in a pass of its own. Busy: kernel time over the step time, which was taken without the "
    f"profiler; below {LAUNCH_BOUND_SHARE:.0%} the cell is called launch-bound: the GPU waits longer for the host than "
    f"it works."
)
COLUMNS = [
    CELL,
    number_column("step time", "center_step_seconds", MILLISECOND),
    number_column("kernel time", "kernel_seconds_per_step", MILLISECOND),
    number_column("busy", "kernel_busy_share", PERCENT),
    number_column("kernels per step", "kernels_per_step", RATIO),
    number_column("copies per step", "copies_per_step", RATIO),
    number_column("step under the profiler", "profiled_step_seconds", MILLISECOND),
    text_column("note", "limit", is_optional=True),
]


def make_kernel_time_table(analysis: Analysis) -> Table | None:
    """Return how long kernels kept the GPU of each cell busy; None where no cell was profiled."""
    rows = analysis.summary[analysis.summary["kernel_busy_share"].notna()]
    if rows.empty:
        return None
    limits = [_name_limit(*row) for row in zip(rows["kernel_busy_share"], rows["data_dir"], strict=True)]
    return make_table("Where the time of a step on a GPU goes", COLUMNS, rows.assign(limit=limits), remark=REMARK)


def _name_limit(busy_share: float, data_dir: str | None) -> str:
    """Return what the GPU waits for where it is not busy; empty where it is."""
    if busy_share >= LAUNCH_BOUND_SHARE:
        return ""
    return "launch-bound" if pd.isna(data_dir) else "waits for launches or data"
