"""Find the tables of a run's report that test the same pairs of cells: what is judged together there may be more."""

from collections.abc import Sequence

import pandas as pd

from collector.batch_pairs import list_batch_pairs
from collector.comparisons import COMPARISONS, compare_cells
from collector.machines import SIDES
from collector.results.collection import Collection
from collector.results.frames import Row, list_rows
from collector.results.summary import summarize_cells
from collector.versus.cell_pairs import CellPair
from collector.versus.document import ReportTable

BATCH_FIELD, BATCHES = "batch_size", "batches"
"""The field in which the pairs of the table of batches differ, and the table's name."""


def find_report_tables(
    pairs: Sequence[CellPair], collection: Collection, *, include_invalid: bool
) -> list[ReportTable]:
    """Return the tables that test some of the pairs, whichever of the two cells is the reference there."""
    wanted = {frozenset((pair.a.cell_id, pair.b.cell_id)) for pair in pairs if pair.problem is None}
    differing = {name for pair in pairs for name in pair.a.cell if pair.a.cell[name] != pair.b.cell[name]}
    comparisons = [comparison for comparison in COMPARISONS if comparison.field in differing]
    if not comparisons and BATCH_FIELD not in differing:
        return []
    summary = summarize_cells(collection)
    tested = {
        one.name: _list_tested(compare_cells(summary, one, include_invalid=include_invalid)) for one in comparisons
    }
    if BATCH_FIELD in differing:
        tested[BATCHES] = [_name_cells(pair) for pair in list_batch_pairs(summary)]
    common = {name: sum(found in wanted for found in cells) for name, cells in tested.items()}
    return [
        ReportTable(name=name, num_ratios=len(tested[name]), num_common=number)
        for name, number in common.items()
        if number
    ]


def _list_tested(pairs: pd.DataFrame) -> list[frozenset[str]]:
    """Return the cells of each pair that a table of comparisons tests."""
    return [_name_cells(pair) for pair in list_rows(pairs[pairs["p_value"].notna()])]


def _name_cells(pair: Row) -> frozenset[str]:
    return frozenset(str(pair[f"cell_id_{side}"]) for side in SIDES)
