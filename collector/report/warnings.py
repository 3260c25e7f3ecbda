"""Warn of what a reader must know before trusting the figures."""

import pandas as pd

from collector.analysis import Analysis
from collector.facts import count_things, list_some
from collector.results.collection import Collection
from collector.results.intervals import MODERATED_WARNING
from collector.tables.environments import describe_environment

MAX_NAMED = 3
"""Cells that a warning names."""


def list_warnings(analysis: Analysis) -> list[str]:
    """Return a sentence for each thing to beware of."""
    collection, measured = analysis.collection, analysis.measured
    is_unsteady = measured["num_counted"] > measured["num_steady"]
    unsteady = int((measured["num_counted"] - measured["num_steady"]).sum())
    where = "; ".join(list_some(measured.loc[is_unsteady, "label"].tolist(), MAX_NAMED))
    single = int((measured["num_counted"] == 1).sum())
    unsound = int((measured["num_sound"] == 0).sum())
    warnings = [
        (unsound, "row", "with figures only of repeats whose conditions were at fault"),
        (unsteady, "repeat", f"timed although the warm-up had not become steady ({where})"),
        (single, "row", "without an interval, as a single repeat counts"),
    ]
    counted = [f"{count_things(count, thing)} {text}." for count, thing, text in warnings if count]
    moderated = [MODERATED_WARNING] if analysis.moderated else []
    return [*_list_mixed_cells(collection, measured), *counted, *moderated]


def _list_mixed_cells(collection: Collection, measured: pd.DataFrame) -> list[str]:
    """Name each cell that ran in several environments, and in what they differ."""
    warnings = []
    for _, rows in measured[measured["num_environments"] > 1].groupby("cell_id", sort=False):
        described = [describe_environment(collection.environments[name]) for name in rows["environment_id"]]
        differing = [name for name in described[0] if len({texts[name] for texts in described}) > 1]
        name = f"{rows['workload'].iloc[0]}, {rows['variant'].iloc[0].partition(' [')[0]}"
        warnings.append(f"{name} ran in {len(rows)} environments, one row each; they differ in {', '.join(differing)}.")
    return warnings
