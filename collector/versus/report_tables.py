"""Find the tables of a run's report that test the same pairs of cells: what is judged together there may be more."""

from collections.abc import Sequence

from collector.comparisons import COMPARISONS, compare_cells
from collector.machines import SIDES
from collector.results.collection import Collection
from collector.results.summary import summarize_cells
from collector.versus.cell_pairs import CellPair
from collector.versus.document import ReportTable


def find_report_tables(
    pairs: Sequence[CellPair], collection: Collection, *, include_invalid: bool
) -> list[ReportTable]:
    """Return the tables that test some of the pairs, whichever of the two cells is the reference there."""
    wanted = {frozenset((pair.a.cell_id, pair.b.cell_id)) for pair in pairs if pair.problem is None}
    differing = {name for pair in pairs for name in pair.a.cell if pair.a.cell[name] != pair.b.cell[name]}
    comparisons = [comparison for comparison in COMPARISONS if comparison.field in differing]
    if not comparisons:
        return []
    summary, tables = summarize_cells(collection), []
    for comparison in comparisons:
        rows = compare_cells(summary, comparison, include_invalid=include_invalid)
        tested = rows[rows["p_value"].notna()]
        ids = zip(*(tested[f"cell_id_{side}"] for side in SIDES), strict=True)
        num_common = sum(frozenset(found) in wanted for found in ids)
        if num_common:
            tables.append(ReportTable(name=comparison.name, num_ratios=len(tested), num_common=num_common))
    return tables
