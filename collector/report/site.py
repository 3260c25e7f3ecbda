"""Write a folder of static pages: the report of every run of a store, a list of them, each cell's details as a file.

A bucket or a plain web server can serve the folder, and it can be opened from a disk: pages link to files and fetch
nothing.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import Markup

from collector.analysis import Analysis
from collector.facts import count_things, state_outcome
from collector.files import replace_text
from collector.report.html import load_style, make_page, open_templates, state_policy
from collector.results.collection import Collection
from collector.results.frames import CELL_COLUMNS, Row, list_rows

TITLE = "<title>All runs: benchmatrix</title>"
"""What the list of runs is known by, as its template has it."""
PAGE, DETAILS, INDEX = "index.html", "details", "index.html"


@dataclass(frozen=True, kw_only=True)
class SiteRun:
    """One line of the list of runs."""

    run_id: str
    matrix: str
    created_at: str
    outcome: str
    """How its repeats ended, in words; why it cannot be read, if it cannot."""
    address: str
    """The folder of its page, from the list; empty if it has none."""


def name_folder(run_id: str) -> str:
    """Return the folder of a run's page in the site."""
    return f"runs/{run_id}"


def describe_run(collection: Collection) -> SiteRun:
    """Return the line of a run that has a page."""
    run = collection.run
    return SiteRun(
        run_id=run.run_id,
        matrix=run.matrix,
        created_at=f"{run.created_at:%Y-%m-%d %H:%M}",
        outcome=state_outcome(collection),
        address=name_folder(run.run_id),
    )


def write_run_pages(analysis: Analysis, site: Path) -> Path:
    """Write the page of a run and the details of its cells into its folder in `site`; return the page's path."""
    folder = site / name_folder(analysis.collection.run.run_id)
    for cell_id, document in list_cell_documents(analysis):
        replace_text(folder / DETAILS / f"{cell_id}.json", json.dumps(document, indent=1, allow_nan=False))
    replace_text(folder / PAGE, make_page(analysis, links={"home": f"../../{INDEX}", "details": DETAILS}))
    return folder / PAGE


def write_index(runs: Iterable[SiteRun], site: Path) -> Path:
    """Write the list of runs, the newest first and those of a matrix together; return its path."""
    newest = sorted(runs, key=lambda run: run.created_at, reverse=True)
    names = dict.fromkeys(run.matrix for run in newest)
    matrices = {name: [run for run in newest if run.matrix == name] for name in names}
    page = open_templates().get_template("site.html.j2")
    text = page.render(
        matrices={name: (count_things(len(found), "run"), found) for name, found in matrices.items()},
        policy=state_policy([]),
        style=Markup(load_style()),
    )
    replace_text(site / INDEX, text)
    return site / INDEX


def list_cell_documents(analysis: Analysis) -> Iterator[tuple[str, Row]]:
    """Yield id and document of each planned cell: its fields, its figures, its repeats and every step, in seconds."""
    collection = analysis.collection
    results = collection.results[[name for name in collection.results if name not in CELL_COLUMNS]]
    repeats = {str(cell_id): rows for cell_id, rows in results.groupby("cell_id", sort=False)}
    figures = {str(cell_id): rows for cell_id, rows in analysis.summary.groupby("cell_id", sort=False)}
    steps = _list_steps(collection)
    found = next(steps, None)
    for planned in collection.run.cells:
        cell_id = planned.cell.cell_id
        own: list[Row] = []
        if found is not None and found[0] == cell_id:
            own, found = found[1], next(steps, None)
        yield (
            cell_id,
            {
                "cell_id": cell_id,
                "cell": planned.cell.model_dump(mode="json"),
                "planned_repeats": planned.repeats,
                "figures": _list_known(figures[cell_id]),
                "repeats": _list_known(repeats[cell_id]),
                "steps": own,
            },
        )


def _list_steps(collection: Collection) -> Iterator[tuple[str, list[Row]]]:
    """Yield the steps of each cell that has any, in the order of the plan: a row for each repeat, tenant and kind."""
    series = chain.from_iterable(_split_series(piece) for piece in collection.steps.tabulate() if len(piece))
    for cell_id, rows in groupby(series, key=lambda row: str(row["cell_id"])):
        yield cell_id, [{name: value for name, value in row.items() if name != "cell_id"} for row in rows]


def _split_series(piece: pd.DataFrame) -> Iterator[Row]:
    for _, rows in piece.groupby(["cell_id", "repeat", "tenant", "kind"], sort=False):
        first = list_rows(rows.head(1)[["cell_id", "repeat", "tenant", "kind"]])[0]
        yield first | {"seconds": rows["seconds"].tolist()}


def _list_known(rows: pd.DataFrame) -> Sequence[Row]:
    """Return rows as JSON has them, without what is missing."""
    return [{name: _to_json(value) for name, value in row.items() if not pd.isna(value)} for row in list_rows(rows)]


def _to_json(value: Any) -> Any:
    if isinstance(value, pd.Timestamp):
        return value.isoformat()
    return value.item() if hasattr(value, "item") else value
