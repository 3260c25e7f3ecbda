"""Summarise the repeats of a cell alike: where the steps of one of them lie on two levels, all by the mean.

A measuring process knows its own steps alone, so of a cell on two levels it summarises some repeats by the mean and
others, whose window saw one level, by the median. Compared with each other these differ by more than their speed. A
repeat under faulty conditions, which enters no figure where there are others, changes none of these.
"""

import pandas as pd

from collector.results.attempts import IntArray
from collector.results.cell_repeats import CENTER_RATES, SOUND_VERDICTS


def unify_centers(rows: pd.DataFrame, counted: IntArray) -> pd.DataFrame:
    """Return the rows in which those at the places `counted` are summarised by one statistic for each cell."""
    own = rows.iloc[counted]
    is_mean = own["summarized_by"] == "mean"
    on_levels = own.loc[is_mean & own["verdict"].isin(SOUND_VERDICTS), "cell_id"]
    is_changed = own["cell_id"].isin(on_levels) & (own["summarized_by"] == "median") & (own["mean_step_seconds"] > 0)
    changed = own.index[is_changed]
    if changed.empty:
        return rows
    rows = rows.copy()
    means = rows.loc[changed, "mean_step_seconds"]
    for name in CENTER_RATES:
        rows.loc[changed, name] *= rows.loc[changed, "center_step_seconds"] / means
    rows.loc[changed, "center_step_seconds"], rows.loc[changed, "summarized_by"] = means, "mean"
    return rows
