"""Compute everything that the tables and the report of one run are made of."""

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from collector.changes import ChangeHistory
from collector.comparisons import compare_all
from collector.costs.document import CostDocument
from collector.costs.evaluation import CostQuestion, evaluate_costs
from collector.labels import add_labels, sort_cells
from collector.prices.table import PriceTable
from collector.results.collection import Collection
from collector.results.summary import summarize_cells
from collector.sharing import tabulate_sharing
from collector.versus.question import CompareDocument

MAX_PRICED_CELLS = 1000
"""Cells that a report prices, the first ones: pricing one takes two milliseconds, and a run may have 20,000."""


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """One run with its summary, its comparisons and what its tenants do to each other. Base units only."""

    collection: Collection
    summary: pd.DataFrame
    """The rows of `summarize_cells` with the labels of `add_labels`, in the order of `sort_cells`."""
    comparisons: Mapping[str, pd.DataFrame]
    """The pairs of `compare_all`, by the name of the comparison."""
    sharing: pd.DataFrame
    """The rows of `tabulate_sharing` with the labels of `add_labels`: what tenants do to each other."""
    history: ChangeHistory = ChangeHistory()
    """The changes that were seen in the nights of the run's matrix."""
    costs: CostDocument | None = None
    """What the first MAX_PRICED_CELLS of the summary cost by a price table; None where none was given."""

    since: CompareDocument | None = None
    """The comparison with the last run of the matrix; None where there is none, or it was not asked for."""

    @property
    def measured(self) -> pd.DataFrame:
        return self.summary[self.summary["num_ok"] > 0]


def analyze_run(
    collection: Collection, *, history: ChangeHistory | None = None, prices: PriceTable | None = None
) -> Analysis:
    """Summarise the cells of a run, compare and price them; `history` is carried along for the report.

    `prices`: None for a report without costs.
    """
    summary = add_labels(sort_cells(summarize_cells(collection)))
    priced = summary.head(MAX_PRICED_CELLS)
    return Analysis(
        collection=collection,
        summary=summary,
        comparisons=compare_all(summary),
        sharing=add_labels(tabulate_sharing(collection)),
        history=history or ChangeHistory(),
        costs=None if prices is None else evaluate_costs([collection], prices, CostQuestion(), summary=priced),
    )
