"""Write docs/results, the tables of docs/sharing.md and README.md's example from the results that are stored there.

A folder of results has `page.yaml` (which runs it shows, under which names; the numbers that its page types) and
`README.md.j2`, the text of its page with an expression wherever it states a figure. `python docs/make_results.py` makes
from them README.md, claims.md and the reports; with `--check` it exits with 1 where README.md, claims.md or a table of
a report is stale, or a number was typed. Reports take half a minute each: `--pages` leaves them out.
"""

import argparse
import json
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import yaml
from jinja2 import Environment, StrictUndefined
from pydantic import BaseModel, ConfigDict

import readme_example
import sharing_tables
from bench.store import Store
from collector import units
from collector.audit.page import make_claims_page
from collector.grid import make_grid
from collector.report.page import make_data, read_data, write_page
from collector.results.load import load_run
from results_figures import FUNCTIONS, StoredRun, tabulate_runs
from typed_numbers import list_typed_numbers, list_unused_phrases

RESULTS = Path(__file__).parent / "results"
TEMPLATE, SETTINGS, README, CLAIMS = "README.md.j2", "page.yaml", "README.md", "claims.md"
WIDTH = 100
# Blocks of Markdown whose lines stay as they are: tables, headings, code.
VERBATIM = ("|", "#", "    ", "```", "<!--")


class RunSettings(BaseModel):
    """One run of a page."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    matrix: str
    report: str


class PageSettings(BaseModel):
    """Holds the settings of a page of results, which stand in its `page.yaml`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    runs: dict[str, RunSettings]
    """By the name that the template has for the run."""
    claims: tuple[str, ...]
    """The runs that claims.md is made of; none where there is no such file."""
    typed: dict[str, tuple[str, ...]]
    """The phrases with numbers that the template may type, by the reason why no run has measured them."""

    @property
    def phrases(self) -> list[str]:
        return [phrase for phrases in self.typed.values() for phrase in phrases]


@dataclass(frozen=True)
class Page:
    """A folder of results with its page."""

    folder: Path

    @cached_property
    def settings(self) -> PageSettings:
        """What page.yaml says."""
        return PageSettings.model_validate(yaml.safe_load((self.folder / SETTINGS).read_text(encoding="utf-8")))

    @cached_property
    def template(self) -> str:
        """The text of the page with its expressions."""
        return (self.folder / TEMPLATE).read_text(encoding="utf-8")

    @cached_property
    def runs(self) -> dict[str, StoredRun]:
        """The runs of the page by the template's names."""
        store = Store.open(self.folder.resolve().as_uri())
        return {
            name: StoredRun(collection=load_run(store, run.id), matrix=run.matrix)
            for name, run in self.settings.runs.items()
        }

    def render(self) -> str:
        """Return README.md as the results make it."""
        environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True)
        known = {name: unit for name, unit in vars(units).items() if isinstance(unit, units.Unit)}
        functions = {**FUNCTIONS, **sharing_tables.FUNCTIONS, **known}
        text = environment.from_string(self.template).render(
            **functions, **self.runs, run_table=lambda: tabulate_runs(self.runs.values())
        )
        return wrap_prose(text)

    def make_claims(self) -> str:
        """Return claims.md as the results make it."""
        return make_claims_page([self.runs[name].collection for name in self.settings.claims])[0]

    def make_files(self) -> Iterator[tuple[str, str]]:
        """Yield the name and text of each file that the results make, the reports aside."""
        yield README, self.render()
        if self.settings.claims:
            yield CLAIMS, self.make_claims()

    def find_faults(self) -> Iterator[str]:
        """Yield what is wrong with the page: stale files, typed numbers, phrases that are no longer typed."""
        yield from self.find_typed_numbers()
        for name, text in self.make_files():
            if (self.folder / name).read_text(encoding="utf-8") != text:
                yield f"{name}: not what its results say; run `make results`"
        yield from self.find_stale_reports()

    def find_stale_reports(self) -> Iterator[str]:
        """Yield the reports whose grid, repeats and steps are not what the results make."""
        for name, run in self.settings.runs.items():
            path = self.folder / run.report
            text = path.read_text(encoding="utf-8") if path.exists() else ""
            analysis = self.runs[name].analysis
            if read_data(text) != json.loads(json.dumps(make_data(analysis, make_grid(analysis)))):
                yield f"{run.report}: not what its results say; run `make results`"

    def find_typed_numbers(self) -> Iterator[str]:
        """Yield the numbers that were typed into the template, and the phrases that it does not type any more."""
        for number in list_typed_numbers(self.template, self.settings.phrases):
            yield f"{TEMPLATE}: a number that no result made: {number}; generate it, or list it in {SETTINGS}"
        for phrase in list_unused_phrases(self.template, self.settings.phrases):
            yield f"{SETTINGS}: the page does not say {phrase!r} any more"

    def write(self) -> None:
        """Write README.md and claims.md."""
        for name, text in self.make_files():
            (self.folder / name).write_text(text, encoding="utf-8")

    def write_reports(self) -> None:
        for name, run in self.settings.runs.items():
            write_page(self.runs[name].analysis, self.folder / run.report)

    def list_shared(self) -> Iterator[tuple[str, StoredRun]]:
        """Yield (folder, run) of each run of the page that has cells with tenants."""
        for name, run in self.settings.runs.items():
            if sharing_tables.has_tenants(self.folder / "runs" / run.id / "run.json"):
                yield self.folder.name, self.runs[name]


def list_pages() -> list[Page]:
    """Return the pages of all folders of results."""
    return [Page(folder) for folder in sorted(RESULTS.iterdir()) if folder.is_dir()]


def wrap_prose(text: str) -> str:
    """Return Markdown with its paragraphs and list items wrapped at WIDTH, and tables, headings and code as they are.

    What an expression puts into a line makes it longer; wrapped afterwards, a changed figure changes its line alone.
    """
    blocks = text.strip("\n").split("\n\n")
    return "\n\n".join(_wrap_block(block.strip("\n")) for block in blocks if block.strip()) + "\n"


def _wrap_block(block: str) -> str:
    if block.startswith(VERBATIM):
        return block
    return "\n".join(_fill(item) for item in block.replace("\n- ", "\n\n- ").split("\n\n"))


def _fill(item: str) -> str:
    indent = "  " if item.startswith("- ") else ""
    return textwrap.fill(
        " ".join(item.split()), WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def find_all_faults() -> Iterator[str]:
    """Yield what is wrong with the pages, with docs/sharing.md and with README.md."""
    yield from find_stale_example()
    yield from find_stale_sharing()
    for page in list_pages():
        yield from (f"{page.folder.name}/{fault}" for fault in page.find_faults())


def find_stale_example() -> Iterator[str]:
    """Yield that the example of README.md is stale, if it is."""
    if readme_example.make_readme(read_readme()) != read_readme():
        yield "README.md: its example is not what the results say; run `make results`"


def find_stale_sharing() -> Iterator[str]:
    """Yield that the tables of docs/sharing.md are stale, if they are."""
    text = sharing_tables.PAGE.read_text(encoding="utf-8")
    if make_sharing_page(text) != text:
        yield f"{sharing_tables.PAGE.name}: its tables are not what the results say; run `make results`"


def make_sharing_page(text: str) -> str:
    """Return docs/sharing.md with the tables of all runs that have cells with tenants."""
    return sharing_tables.make_sharing_page(text, list_shared_runs())


def write_sharing_page() -> None:
    """Write docs/sharing.md and its picture."""
    page = sharing_tables.PAGE
    page.write_text(make_sharing_page(page.read_text(encoding="utf-8")), encoding="utf-8")
    picture = sharing_tables.draw_picture(run.analysis for _, run in list_shared_runs())
    if picture is not None:
        sharing_tables.PICTURE.write_bytes(picture)


def list_shared_runs() -> list[tuple[str, StoredRun]]:
    """Return (folder, run) of every run that has cells with tenants."""
    return [found for page in list_pages() for found in page.list_shared()]


def read_readme() -> str:
    """Return the README.md of the repository."""
    return readme_example.README.read_text(encoding="utf-8")


def main() -> None:
    """Write the pages, or exit with 1 where `--check` finds faults."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 where a page is stale")
    parser.add_argument("--pages", action="store_true", help="leave the reports out, which take half a minute each")
    chosen = parser.parse_args()
    if chosen.check:
        sys.exit("\n".join(find_all_faults()) or 0)
    readme_example.README.write_text(readme_example.make_readme(read_readme()), encoding="utf-8")
    write_sharing_page()
    for page in list_pages():
        page.write()
        if not chosen.pages:
            page.write_reports()


if __name__ == "__main__":
    main()
