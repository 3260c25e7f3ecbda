"""The table of power and energy."""

from collector.analysis import Analysis
from collector.tables.columns import CELL, number_column
from collector.tables.table import Table, make_table, select_known
from collector.units import JOULE, WATT

ENERGY_CAPTION = "Power and energy, medians of the repeats that count"
COLUMNS = [
    number_column("GPU idle", "gpu_idle_power_watts", WATT, is_optional=True),
    number_column("GPU mean", "gpu_mean_power_watts", WATT, is_optional=True),
    number_column("GPU per step", "gpu_energy_per_step_joules", JOULE, is_optional=True),
    number_column("GPU per sample", "gpu_energy_per_sample_joules", JOULE, is_optional=True),
    number_column("CPU sockets per sample", "cpu_energy_per_sample_joules", JOULE, is_optional=True),
]


def make_energy_table(analysis: Analysis) -> Table | None:
    """Return power and energy of each cell that has a reading of either; None where no cell has one."""
    rows = select_known(analysis.summary, COLUMNS)
    return None if rows.empty else make_table(ENERGY_CAPTION, [CELL, *COLUMNS], rows)
