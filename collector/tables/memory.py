"""The table of peak memory."""

import pandas as pd

from collector.analysis import Analysis
from collector.tables.columns import CELL, number_column
from collector.tables.table import Table, make_table
from collector.units import choose_memory_unit

CAPTION = "Peak memory, the largest of the repeats that count"
TITLES = {
    "peak_rss_bytes": "process, peak resident",
    "peak_cgroup_bytes": "cgroup, peak",
    "peak_memory_allocated_bytes": "GPU, peak allocated for tensors",
    "peak_memory_reserved_bytes": "GPU, peak reserved",
    "gpu_memory_before_bytes": "device, before",
    "gpu_memory_peak_bytes": "device, peak in use",
}
REMARK = (
    "For tensors: what the framework's allocator held at most; for JAX, what XLA plans for the step. In use on the "
    "device: all of it, with the driver, the context, libraries and what the framework keeps for later, as seen while "
    "the GPU was sampled. Tensors that fit a card do not show that the whole run fits it."
)

CGROUP = "peak_cgroup_bytes"


def make_memory_table(analysis: Analysis) -> Table | None:
    """Return the peaks of memory, the largest of the repeats; None where nothing was measured."""
    rows = analysis.measured
    if rows.empty:
        return None
    unit = choose_memory_unit(rows[list(TITLES)].max().dropna())
    titles = {name: title for name, title in TITLES.items() if name != CGROUP or not _is_shared(rows[CGROUP])}
    peaks = [number_column(title, name, unit, is_optional=True) for name, title in titles.items()]
    has_gpu = rows["peak_memory_allocated_bytes"].notna().any()
    return make_table(CAPTION, [CELL, *peaks], rows, remark=REMARK if has_gpu else "")


def _is_shared(peaks: "pd.Series[int]") -> bool:
    """Return whether all cells say the same peak: their cgroup, such as a container's, is older than each of them.

    The kernel keeps the peak since the cgroup was created, so the figure is of none of them.
    """
    return bool(peaks.count() > 1 and peaks.nunique() == 1)
