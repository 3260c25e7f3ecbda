"""Summarise the repeats of a cell alike: where the steps of one of them lie on two levels, all by the mean."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from collector.results.attempts import IntArray
from collector.results.cell_repeats import CENTER_RATES, SOUND_VERDICTS


def unify_centers(attempts: pa.Table, counted: IntArray) -> pa.Table:
    """Return rows of the table of attempts in which the counted ones of a cell are summarised by one statistic.

    A measuring process knows its own steps alone, so of a cell on two levels it summarises some repeats by the mean and
    others, whose window saw one level, by the median. Compared with each other these differ by more than their speed.
    A repeat under faulty conditions, which enters no figure where there are others, changes none of these.
    """
    if not pc.any(pc.equal(attempts["summarized_by"], "mean")).as_py():
        return attempts  # as in most runs, whose columns are not read then
    found = attempts.select(["cell_id", "verdict", "summarized_by"]).take(counted)
    cell_ids, verdicts, how = (column.to_pylist() for column in found.columns)
    on_levels = {
        cell_ids[place] for place in range(len(how)) if how[place] == "mean" and verdicts[place] in SOUND_VERDICTS
    }
    changed = [
        int(row)
        for place, row in enumerate(counted)
        if how[place] == "median" and cell_ids[place] in on_levels and attempts["mean_step_seconds"][row].as_py()
    ]
    return _summarize_by_mean(attempts, changed) if changed else attempts


def _summarize_by_mean(attempts: pa.Table, changed: list[int]) -> pa.Table:
    """Return the table with these rows summarised by the mean of their steps."""
    names = ("summarized_by", "center_step_seconds", *CENTER_RATES)
    columns: dict[str, list[Any]] = {name: attempts[name].to_pylist() for name in names}
    means = attempts["mean_step_seconds"].take(changed).to_pylist()
    for row, mean in zip(changed, means, strict=True):
        for name in CENTER_RATES:
            if columns[name][row] is not None:
                columns[name][row] *= columns["center_step_seconds"][row] / mean
        columns["center_step_seconds"][row], columns["summarized_by"][row] = mean, "mean"
    for name in names:
        place = attempts.schema.get_field_index(name)
        attempts = attempts.set_column(place, name, pa.array(columns[name], attempts.schema.field(name).type))
    return attempts
