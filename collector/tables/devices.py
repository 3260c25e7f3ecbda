"""The table of devices: how CPUs and GPUs were used while a cell was measured."""

import pandas as pd

from collector.analysis import Analysis
from collector.libraries import NOT_RECORDED
from collector.tables.columns import CELL, number_column
from collector.tables.table import Column, Table, make_table, select_known
from collector.units import CELSIUS, CORES, MEGAHERTZ, NOT_THERE, PERCENT, WATT

COLUMNS = [
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
    rows = select_known(analysis.summary, COLUMNS)
    if rows.empty:
        return None
    caption = "Use of CPUs and GPUs while it was measured, medians of the repeats that count"
    has_gpu = bool((rows["device"] == "gpu").any())
    return make_table(caption, [CELL, *COLUMNS, *([HELD_DOWN_BY] if has_gpu else [])], rows)
