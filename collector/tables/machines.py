"""The table of machines: how the nodes or cards of a run differ in the same work."""

import pandas as pd

from collector.analysis import Analysis
from collector.machine_differences import tabulate_machines
from collector.ratio_words import NO_DIFFERENCE
from collector.tables.columns import count_column, interval_column, number_column, text_column
from collector.tables.table import Table, make_table
from collector.units import CELSIUS, GIGABYTES_PER_SECOND, MEGAHERTZ, RATIO, choose_rate_unit, format_significant

EXPLANATION = (
    "Each machine is held against those that measured the same cells: its step times over theirs, above 1 where it is "
    "slower. Its calibration, the matrix product and the copy within its memory that every cell measures outside its "
    "window, is held against that of the others of its type, above 1 where it is faster. A difference is stated "
    "where the interval excludes 1; the intervals of all machines hold together."
)


def make_machines_table(analysis: Analysis) -> Table | None:
    """Return one row per machine; None where the run used only one."""
    rows = tabulate_machines(analysis.collection.results)
    if len(rows) < 2:
        return None
    rate = choose_rate_unit(rows["product_flops_per_second"].dropna())
    columns = [
        text_column("machine", "machine"),
        text_column("machine type", "instance_type", is_optional=True),
        text_column("zone", "zone", is_optional=True),
        count_column("cells", "num_cells"),
        count_column("repeats", "num_repeats"),
        number_column("matrix product", "product_flops_per_second", rate, is_optional=True),
        number_column("against the others", "product_factor", RATIO, is_optional=True),
        number_column("copy in memory", "copy_bytes_per_second", GIGABYTES_PER_SECOND, is_optional=True),
        number_column("against others", "copy_factor", RATIO, is_optional=True),
        number_column("SM clock, median", "gpu_sm_clock_mhz", MEGAHERTZ, is_optional=True),
        number_column("hottest", "gpu_max_temperature_celsius", CELSIUS, is_optional=True),
        number_column("step times against the others", "time_factor", RATIO),
        interval_column("95 % interval", "joint_low", "joint_high", RATIO),
        text_column("verdict", "verdict", is_optional=True),
    ]
    return make_table("Machines, and how they differ", columns, rows, remark=_remark(rows))


def _remark(rows: pd.DataFrame) -> str:
    deviations = rows["deviation"].dropna()
    named = f"By its calibration, against the others of its type: {'; '.join(deviations)}." if len(deviations) else ""
    return " ".join(filter(None, [EXPLANATION, _name_different(rows), named]))


def _name_different(rows: pd.DataFrame) -> str:
    """Return in a sentence which machines differ by more than the spread between repeats explains."""
    tested = rows[rows["verdict"].notna()]
    if tested.empty:
        return "No two of them measured the same cell often enough to say whether they differ."
    different = tested[tested["verdict"] != NO_DIFFERENCE]
    if different.empty:
        return f"None of {len(tested)} differs by more than the spread between repeats explains."
    factors = zip(different["machine"], different["time_factor"], strict=True)
    named = ", ".join(f"{machine} ({format_significant(factor)}x)" for machine, factor in factors)
    return f"{len(different)} of {len(tested)} differ by more than the spread between repeats explains: {named}."
