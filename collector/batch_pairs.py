"""Pair the largest with the smallest batch of cells that are otherwise equal.

The answers, the table of batches, the overview of the report and `compare` all have these pairs from here.
"""

import pandas as pd

from collector.machines import SIDES, are_comparable
from collector.results.cells import PROTOCOL_FIELDS, select_alone
from collector.results.frames import CELL_COLUMNS, Row, list_rows

SERIES_COLUMNS = (
    *(name for name in CELL_COLUMNS if name not in ("batch_size", *PROTOCOL_FIELDS)),
    *("hardware_id", "framework_version"),
)
"""What is equal in the cells of a series: all but the batch and how long was measured."""
READ_COLUMNS = (
    *SERIES_COLUMNS,
    *("batch_size", "gpu_name", "cpu_model", "num_counted", "instance_types", "hostnames"),
    *("center_step_seconds", "log_standard_error", "degrees_of_freedom", "cell_id", "environment_id"),
    *("num_machines", "machines", "machine_step_seconds"),
)


def list_batch_pairs(summary: pd.DataFrame) -> list[Row]:
    """Return of each series with several batches the largest as subject and the smallest as reference.

    In the order of the plan, with READ_COLUMNS of both sides. The ends of a series are chosen by their batch and not by
    their speed. A series counts where both ends have an interval and a repeat under sound conditions, and can be
    compared: they ran on the same machines or each on several.
    """
    known = select_alone(summary[(summary["num_sound"] > 0) & summary["log_standard_error"].notna()])
    rows = known[list(READ_COLUMNS)]
    series = rows.groupby(list(SERIES_COLUMNS), dropna=False, sort=False).ngroup()
    ordered = rows.assign(series=series).sort_values(["series", "batch_size"], kind="stable")
    smallest, largest = (list_rows(ordered.drop_duplicates("series", keep=end)) for end in ("first", "last"))
    return [
        _join_sides(subject, reference)
        for subject, reference in zip(largest, smallest, strict=True)
        if subject["batch_size"] > reference["batch_size"] and are_comparable(reference, subject)
    ]


def _join_sides(subject: Row, reference: Row) -> Row:
    shared = {name: subject[name] for name in ("device", "num_gpus")}
    sides = zip(SIDES, (subject, reference), strict=True)
    return shared | {
        f"{name}_{side}": value for side, row in sides for name, value in row.items() if name not in shared
    }
