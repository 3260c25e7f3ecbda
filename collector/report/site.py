"""Write a folder of static pages: the report of every run of a store, and a list of them.

A bucket or a plain web server can serve the folder, and it can be opened from a disk: pages link to files and fetch
nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from collector.analysis import Analysis
from collector.facts import state_outcome
from collector.files import replace_text
from collector.report.page import load_style, make_page, open_templates, state_policy
from collector.results.collection import Collection
from collector.word_lists import count_things

TITLE = "<title>All runs: benchmatrix</title>"
"""What the list of runs is known by, as its template has it."""
INDEX = "index.html"


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
    """Write the page of a run into its folder in `site` and return its path."""
    path = site / name_folder(analysis.collection.run.run_id) / INDEX
    replace_text(path, make_page(analysis, home=f"../../{INDEX}"))
    return path


def write_index(runs: Iterable[SiteRun], site: Path) -> Path:
    """Write the list of runs, the newest first and those of a matrix together; return its path."""
    newest = sorted(runs, key=lambda run: run.created_at, reverse=True)
    names = dict.fromkeys(run.matrix for run in newest)
    matrices = {name: [run for run in newest if run.matrix == name] for name in names}
    page = open_templates().get_template("site.html.j2")
    text = page.render(
        matrices={name: (count_things(len(found), "run"), found) for name, found in matrices.items()},
        policy=state_policy([load_style()], []),
        style=Markup(load_style()),
    )
    replace_text(site / INDEX, text)
    return site / INDEX
