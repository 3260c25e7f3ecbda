"""Tabulate the machines of a run: what they are, and by how much each differs from the others in the same work."""

import pandas as pd

from collector.ratio_words import adjust_verdicts, name_direction
from collector.results.frames import Columns, Row, make_frame
from collector.results.summary import (
    CALIBRATIONS,
    READ_COLUMNS,
    add_products,
    compare_calibrations,
    compare_machines,
    describe_deviations,
    select_sound,
)
from collector.statistics import Estimate

MACHINE_TABLE_COLUMNS: Columns = {
    "machine": "str",
    "instance_type": "str",
    "zone": "str",
    "cpu_model": "str",
    "gpu_name": "str",
    "num_repeats": "int64",
    "num_cells": "int64",
    "product_flops_per_second": "float64",
    "product_factor": "float64",
    "copy_bytes_per_second": "float64",
    "copy_factor": "float64",
    "deviation": "str",
    "gpu_sm_clock_mhz": "float64",
    "gpu_max_temperature_celsius": "float64",
    "time_factor": "float64",
    "time_factor_low": "float64",
    "time_factor_high": "float64",
    "joint_low": "float64",
    "joint_high": "float64",
    "p_value": "float64",
    "p_adjusted": "float64",
    "verdict": "str",
}
"""`product_flops_per_second`: the median of the matrix products of its cells; `product_factor`: its rate over that of
the machines that measured the same product; `copy_bytes_per_second` and `copy_factor` likewise of its memory;
`deviation`: in words, if it differs by its calibration from others of its type. `time_factor`: its step times over
those of the machines that measured the same cells, above 1 where it is slower. The verdict states a difference where
the interval that holds together with those of all machines, `joint_low` to `joint_high`, excludes 1."""
OWN_COLUMNS = (
    *("cell_id", "environment_id", "center_step_seconds", "instance_type", "zone", "cpu_model", "gpu_name"),
    *("gpu_sm_clock_mhz", "gpu_max_temperature_celsius"),
)
"""The columns of the results that are read here beside those of the calibrations."""


def tabulate_machines(results: pd.DataFrame) -> pd.DataFrame:
    """Return one row per machine with sound repeats, columns MACHINE_TABLE_COLUMNS; an unknown factor is missing.

    `results`: rows of RESULT_COLUMNS.
    """
    sound = add_products(select_sound(results, list(dict.fromkeys((*READ_COLUMNS, *OWN_COLUMNS)))))
    times = compare_machines(sound, "center_step_seconds", ["cell_id", "environment_id"])
    factors = {name: compare_calibrations(sound, name) for name in CALIBRATIONS}
    deviations = describe_deviations(sound)
    rows = [
        _describe_machine(str(machine), group)
        | _describe_factor(times.get(str(machine)))
        | {name: found[str(machine)].center for name, found in factors.items() if machine in found}
        | {"deviation": deviations.get(str(machine))}
        for machine, group in sound.groupby("machine", sort=True)
    ]
    return make_frame(adjust_verdicts(rows), MACHINE_TABLE_COLUMNS)


def _describe_machine(machine: str, repeats: pd.DataFrame) -> Row:
    first = repeats.iloc[0]
    return {
        "machine": machine,
        **{name: first[name] for name in ("instance_type", "zone", "cpu_model", "gpu_name")},
        "num_repeats": len(repeats),
        "num_cells": repeats["cell_id"].nunique(),
        **{name: repeats[name].median() for name in ("product_flops_per_second", "copy_bytes_per_second")},
        "gpu_sm_clock_mhz": repeats["gpu_sm_clock_mhz"].median(),
        "gpu_max_temperature_celsius": repeats["gpu_max_temperature_celsius"].max(),
    }


def _describe_factor(factor: Estimate | None) -> Row:
    if factor is None:
        return {}
    low, high = factor.interval or (None, None)
    direction = name_direction(factor)
    test = {"p_value": factor.p_value, "estimate": factor, "direction": direction, "verdict": direction}
    return {
        "time_factor": factor.center,
        "time_factor_low": low,
        "time_factor_high": high,
        **(test if factor.p_value is not None else {}),
    }
