"""The tables of what devices did: roofline, kernel time, energy, clocks and load."""

from collections.abc import Iterator, Sequence

import pandas as pd

from collector.analysis import Analysis
from collector.libraries import NOT_RECORDED
from collector.results.host_peaks import HostProducts, describe_drift, describe_unequal_products, list_drifted
from collector.tables.columns import CELL, number_column, text_column
from collector.tables.table import Column, Table, make_table, select_known
from collector.units import (
    CELSIUS,
    CORES,
    GFLOP,
    JOULE,
    MEGAHERTZ,
    MILLISECOND,
    NOT_THERE,
    PERCENT,
    RATIO,
    WATT,
    choose_rate_unit,
)

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


ENERGY_CAPTION = "Power and energy, medians of the repeats that count"
ENERGY_COLUMNS = [
    number_column("GPU idle", "gpu_idle_power_watts", WATT, is_optional=True),
    number_column("GPU mean", "gpu_mean_power_watts", WATT, is_optional=True),
    number_column("GPU per step", "gpu_energy_per_step_joules", JOULE, is_optional=True),
    number_column("GPU per sample", "gpu_energy_per_sample_joules", JOULE, is_optional=True),
    number_column("CPU sockets per sample", "cpu_energy_per_sample_joules", JOULE, is_optional=True),
]


def make_energy_table(analysis: Analysis) -> Table | None:
    """Return power and energy of each cell that has a reading of either; None where no cell has one."""
    rows = select_known(analysis.summary, ENERGY_COLUMNS)
    return None if rows.empty else make_table(ENERGY_CAPTION, [CELL, *ENERGY_COLUMNS], rows)


# Below half, the GPU waits longer than it works: kernels that took no time at all would not make the step twice as
# fast.
LAUNCH_BOUND_SHARE = 0.5
KERNEL_REMARK = (
    f"Kernel time: the time of a step in which at least one kernel or copy ran on the busiest GPU, seen by the "
    f"framework's profiler in a pass of its own. Busy: kernel time over the step time, which was taken without the "
    f"profiler; below {LAUNCH_BOUND_SHARE:.0%} the cell is called launch-bound: the GPU waits longer for the host than "
    f"it works."
)
KERNEL_COLUMNS = [
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
    return make_table(
        "Where the time of a step on a GPU goes", KERNEL_COLUMNS, rows.assign(limit=limits), remark=KERNEL_REMARK
    )


def _name_limit(busy_share: float, data_dir: str | None) -> str:
    """Return what the GPU waits for where it is not busy; empty where it is."""
    if busy_share >= LAUNCH_BOUND_SHARE:
        return ""
    return "launch-bound" if pd.isna(data_dir) else "waits for launches or data"


DEVICE_COLUMNS = [
    number_column("own use", "cpu_own_cores", CORES, is_optional=True),
    number_column("others' use", "cpu_other_cores", CORES, is_optional=True),
    number_column("the machine has", "num_machine_cores", CORES, is_optional=True),
    number_column("quota used up", "cpu_throttled_share", PERCENT, is_optional=True),
    number_column("SM clock, median", "gpu_sm_clock_mhz", MEGAHERTZ, is_optional=True),
    number_column("SM clock of its maximum", "gpu_sm_clock_share", PERCENT, is_optional=True),
    number_column("power limit", "gpu_power_limit_watts", WATT, is_optional=True),
    number_column("hottest", "gpu_max_temperature_celsius", CELSIUS, is_optional=True),
]


def _describe_reasons(reasons: str | None, device: str) -> str:
    """Return why the clock of a GPU was held down; what was not read is not known, and no sign of none."""
    if device != "gpu":
        return NOT_THERE
    return NOT_RECORDED if pd.isna(reasons) else str(reasons)


HELD_DOWN_BY = Column(title="clock held down by", sources=("gpu_throttle_reasons", "device"), format=_describe_reasons)


def make_devices_table(analysis: Analysis) -> Table | None:
    """Return how the devices of each cell were used; None where no cell says."""
    rows = select_known(analysis.summary, DEVICE_COLUMNS)
    if rows.empty:
        return None
    caption = "Use of CPUs and GPUs while it was measured, medians of the repeats that count"
    has_gpu = bool((rows["device"] == "gpu").any())
    return make_table(caption, [CELL, *DEVICE_COLUMNS, *([HELD_DOWN_BY] if has_gpu else [])], rows)
