"""List for the page what its tables say of pairs of cells, so that two cells chosen in the overview get the same."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from collector.analysis import Analysis
from collector.answers.batch_rules import CAPTION as BATCHES_CAPTION
from collector.answers.fastest import rank_programs
from collector.answers.fastest_rules import CAPTION as FASTEST_CAPTION
from collector.batch_pairs import list_batch_pairs
from collector.machines import SIDES
from collector.ratio_verdicts import count_tested
from collector.report.page_cells import list_page_cells
from collector.results.frames import Row, list_rows
from collector.tables.comparisons import HEADINGS

Key = tuple[str, str]
"""What tells rows of a summary apart: cell_id and environment_id, which is missing where there is no result."""
KEYS = [f"{name}_{side}" for side in SIDES for name in ("cell_id", "environment_id")]
ABOUT_ONE_PAIR = ("tested", "alone")


def list_judged_tables(analysis: Analysis) -> list[dict[str, Any]]:
    """Return of each table that judges pairs its caption, how many ratios it tests together (`size`), and its pairs.

    A pair is the numbers of two rows of `list_page_cells`. `tested`: those whose intervals hold together; `alone`:
    those with a ratio that was not tested. Tables without a pair are left out.
    """
    cells = analysis.derive(list_page_cells)
    numbers = {name_row(row): number for number, row in enumerate(list_rows(cells[["cell_id", "environment_id"]]))}
    tables = [_list_compared(HEADINGS[name].caption, pairs) for name, pairs in analysis.comparisons.items()]
    tables += [_list_batches(analysis), _list_ranked(analysis)]
    return [_number_pairs(table, numbers) for table in tables if table["tested"] or table["alone"]]


def name_row(row: Row) -> Key:
    """Return what tells a row of a summary apart."""
    return str(row["cell_id"]), str(row["environment_id"])


def _list_compared(caption: str, pairs: pd.DataFrame) -> dict[str, Any]:
    shown = pairs[pairs["left_out"].isna() & pairs["ratio"].notna()]
    is_tested = shown["p_value"].notna()
    return {
        "caption": caption,
        "size": count_tested(pairs),
        "tested": _read_keys(shown[is_tested]),
        "alone": _read_keys(shown[~is_tested]),
    }


def _list_batches(analysis: Analysis) -> dict[str, Any]:
    """Return the pairs of each batch with the next smaller: their ratio is of the time of a sample."""
    found = _read_keys(pd.DataFrame(list_batch_pairs(analysis.summary), columns=KEYS))
    return {"caption": BATCHES_CAPTION, "size": len(found), "tested": found, "alone": []}


def _list_ranked(analysis: Analysis) -> dict[str, Any]:
    """Return the pairs that only the table of the fastest has: it judges those that no comparison pairs."""
    compared = {
        frozenset(keys) for pairs in analysis.comparisons.values() for keys in _read_keys(pairs[pairs["ratio"].notna()])
    }
    found = [
        ((name_row(ranking.programs[0]), name_row(program)), judged)
        for ranking in analysis.derive(rank_programs)
        for program, judged in zip(ranking.programs[1:], ranking.behind, strict=True)
    ]
    own = [(keys, judged) for keys, judged in found if frozenset(keys) not in compared]
    return {
        "caption": FASTEST_CAPTION,
        "size": max((judged.size for _, judged in own), default=0),
        "tested": [keys for keys, _ in own],
        "alone": [],
    }


def _read_keys(pairs: pd.DataFrame) -> list[tuple[Key, Key]]:
    return [(_name_side(row, SIDES[0]), _name_side(row, SIDES[1])) for row in list_rows(pairs[KEYS])]


def _name_side(row: Row, side: str) -> Key:
    return str(row[f"cell_id_{side}"]), str(row[f"environment_id_{side}"])


def _number_pairs(table: Mapping[str, Any], numbers: Mapping[Key, int]) -> dict[str, Any]:
    return {
        **table,
        **{kind: [[numbers[one], numbers[other]] for one, other in table[kind]] for kind in ABOUT_ONE_PAIR},
    }
