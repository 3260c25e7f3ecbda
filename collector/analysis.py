"""Everything that is known of one run: what was loaded, and what was computed from it."""

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from collector.comparisons import compare_all
from collector.forecast.fit import Forecast
from collector.labels import add_labels
from collector.nights.records import ChangeHistory
from collector.results.collection import Collection
from collector.results.summary import summarize_cells
from collector.sharing.tabulate import tabulate_sharing


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """One run with its summary, its comparisons and what its tenants do to each other. Base units only."""

    collection: Collection
    summary: pd.DataFrame
    """The rows of `summarize_cells` with the labels of `add_labels`."""
    comparisons: Mapping[str, pd.DataFrame]
    """The pairs of `compare_all`, by the name of the comparison."""
    sharing: pd.DataFrame
    """The rows of `tabulate_sharing` with the labels of `add_labels`: what tenants do to each other."""
    include_invalid: bool
    """Whether cells without a valid repeat are compared too."""
    moderated: bool
    """Whether intervals draw on the spread of the run's other cells too."""
    forecast: Forecast | None
    history: ChangeHistory = ChangeHistory()
    """The changes that were seen in the nights of the run's matrix."""

    @property
    def measured(self) -> pd.DataFrame:
        """The rows of the summary that have figures."""
        return self.summary[self.summary["num_ok"] > 0]


def analyze_run(
    collection: Collection,
    *,
    forecast: Forecast | None = None,
    include_invalid: bool = False,
    moderated: bool = False,
    history: ChangeHistory | None = None,
) -> Analysis:
    """Summarise the cells of a run and compare them; `forecast` and `history` are carried along for the report."""
    summary = add_labels(summarize_cells(collection, moderated=moderated))
    return Analysis(
        collection=collection,
        summary=summary,
        comparisons=compare_all(summary, include_invalid=include_invalid),
        sharing=add_labels(tabulate_sharing(collection, include_invalid=include_invalid)),
        include_invalid=include_invalid,
        moderated=moderated,
        forecast=forecast,
        history=history or ChangeHistory(),
    )
