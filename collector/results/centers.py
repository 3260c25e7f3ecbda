"""Summarise the repeats of a cell alike: where the steps of one of them lie on two levels, all by the mean."""

from typing import Any

import pyarrow as pa

from collector.results.attempts import IntArray
from collector.results.cell_repeats import SOUND_VERDICTS

RATES = ("throughput_samples_per_s", "achieved_flops_per_second", "share_of_peak", "share_of_roofline")
"""What is inversely proportional to the step time of a repeat."""


def unify_centers(attempts: pa.Table, counted: IntArray) -> pa.Table:
    """Return rows of the table of attempts in which the counted ones of a cell are summarised by one statistic.

    A measuring process knows its own steps alone, so of a cell on two levels it summarises some repeats by the mean and
    others, whose window saw one level, by the median. Compared with each other these differ by more than their speed.
    A repeat under faulty conditions, which enters no figure where there are others, changes none of these.
    """
    columns: dict[str, list[Any]] = {
        name: attempts[name].to_pylist()
        for name in ("cell_id", "verdict", "summarized_by", "center_step_seconds", "mean_step_seconds", *RATES)
    }
    how = columns["summarized_by"]
    on_levels = {
        columns["cell_id"][row] for row in counted if how[row] == "mean" and columns["verdict"][row] in SOUND_VERDICTS
    }
    changed = [
        row
        for row in counted
        if how[row] == "median" and columns["cell_id"][row] in on_levels and columns["mean_step_seconds"][row]
    ]
    for row in changed:
        mean = columns["mean_step_seconds"][row]
        for name in RATES:
            if columns[name][row] is not None:
                columns[name][row] *= columns["center_step_seconds"][row] / mean
        columns["center_step_seconds"][row], how[row] = mean, "mean"
    for name in ("summarized_by", "center_step_seconds", *RATES) if changed else ():
        place = attempts.schema.get_field_index(name)
        attempts = attempts.set_column(place, name, pa.array(columns[name], attempts.schema.field(name).type))
    return attempts
