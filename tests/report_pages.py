"""Reports of made-up runs, and what tests ask of their pages."""

import re
from collections.abc import Iterable, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from bench.schema import Cell, Result
from bench.store import Store
from collector.forecast.fit import Forecast
from collector.report.drawn_panels import describe_rows
from collector.report.html import render_report
from collector.report.packing import Pools, expand_column, expand_document, make_pools
from collector.results.load import load_run
from factories import (
    make_cell,
    make_failed_result,
    make_result,
    make_run,
    make_validity,
    put_documents,
)

HOSTILE = "</script></pre><script>window.pwned = true</script><img src=x onerror='window.pwned = true'>"
"""Runs a script wherever it is read as HTML."""


class Page(HTMLParser):
    """What tests ask of a page: its headings, the attributes that can load something, and its scripts and styles."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.headings: list[str] = []
        self.links: list[str] = []
        self.texts: dict[str, list[str]] = {"script": [], "style": []}
        self.tags: list[tuple[str, dict[str, str]]] = []
        self._open: str | None = None
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open = tag
        given = [(name, value or "") for name, value in attrs]  # HTML: an attribute without a value has an empty one
        self.tags.append((tag, dict(given)))
        self.links += [value for name, value in given if name in ("src", "href", "srcset", "data", "action", "poster")]
        if tag in self.texts:
            self.texts[tag].append("")

    def handle_endtag(self, tag: str) -> None:
        self._open = None

    def handle_data(self, data: str) -> None:
        if self._open == "h2":
            self.headings.append(data)
        elif self._open in self.texts:
            self.texts[self._open][-1] += data

    @property
    def scripts(self) -> list[tuple[dict[str, str], str]]:
        """The attributes and the text of each script element."""
        return list(zip([attrs for tag, attrs in self.tags if tag == "script"], self.texts["script"], strict=True))

    @property
    def figures(self) -> list[Any]:
        """The packed figures of all groups, in their order."""
        texts = [text for attrs, text in self.scripts if attrs.get("class") == "packed-figures"]
        return [figure for text in texts for figure in expand_document(text)]

    def expand_data(self, name: str) -> Any:
        """Return what the page's script draws from under this name."""
        (text,) = (text for attrs, text in self.scripts if attrs.get("id") == f"data-{name}")
        return expand_document(text)


def put_and_render(
    directory: Path,
    *results: Result,
    cells: Sequence[Cell] | None = None,
    repeats: int = 3,
    strange_keys: Iterable[str] = (),
    forecast: Forecast | None = None,
    moderated: bool = False,
    **run_fields: Any,
) -> Path:
    """Store documents, load and render them; return the path of the report. Planned are the cells of the results."""
    cells = cells or list({result.cell_id: result.cell for result in results}.values())
    run = make_run(cells, repeats=repeats, **run_fields)
    store = Store.open(f"file://{directory}/store")
    put_documents(store, run, results)
    for key in strange_keys:
        store.put(key, b"{")
    path = directory / "out" / "report.html"
    render_report(load_run(store, run.run_id), forecast=forecast, path=path, moderated=moderated)
    return path


def make_full_run() -> list[Result]:
    """Return repeats of two frameworks on two devices, of which some did not end well."""
    cells = [
        make_cell(framework=framework, device=device, phase=phase)
        for device in ("cpu", "gpu")
        for framework in ("pytorch", "tensorflow")
        for phase in ("train", "infer")
    ]
    seconds = {"cpu": 0.5, "gpu": 0.01}
    results = [
        make_result(cell, repeat=repeat, step_seconds=[seconds[cell.device] * (1 + repeat / 100)] * 30)
        for cell in cells
        for repeat in (1, 2, 3)
    ]
    results[1] = make_failed_result(
        cells[0], repeat=2, message="ValueError: wrong shape", stderr_tail="line 31, in main"
    )
    results[4] = make_result(cells[1], repeat=2, step_seconds=[0.5] * 30, validity=make_validity("throttled"))
    results[5] = make_failed_result(cells[1], repeat=3, status="oom", message="3 GiB asked for")
    return [result for number, result in enumerate(results) if number != 7]


def read_words(path: Path) -> str:
    """Return the visible text and attributes of a report, without its scripts, then what its plots say in words."""
    html = path.read_text()
    page = Page(html)
    pools = make_pools(page.expand_data("cells"))
    words = [
        ": ".join([*figure["panels"], describe_rows({"": list_figure_rows(figure, pools)}, figure["says"])])
        for figure in page.figures
    ]
    return re.sub(r"\s+", " ", " ".join([re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL), *words]))


def list_figure_rows(figure: Any, pools: Pools | None = None) -> list[dict[str, Any]]:
    """Return the rows of all data sets of a packed figure; `pools`: the texts that the page has of its cells."""
    rows = []
    for frame in figure["data"].values():
        columns = {name: expand_column(column, pools) for name, column in frame["columns"].items()}
        rows += [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    return rows
