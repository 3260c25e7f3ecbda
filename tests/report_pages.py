"""Reports of made-up runs, and what tests ask of their pages."""

from collections.abc import Iterable, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from bench.schema import Cell, Result
from bench.store import Store
from collector.analysis import analyze_run
from collector.report.page import write_page
from collector.results.load import load_run
from factories import make_cell, make_failed_result, make_result, make_run, make_validity, put_documents

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


def put_and_render(
    directory: Path,
    *results: Result,
    cells: Sequence[Cell] | None = None,
    repeats: int = 3,
    strange_keys: Iterable[str] = (),
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
    write_page(analyze_run(load_run(store, run.run_id)), path)
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
    slower = {"pytorch": 1.0, "tensorflow": 1.5}
    results = [
        make_result(
            cell, repeat=repeat, step_seconds=[seconds[cell.device] * slower[cell.framework] * (1 + repeat / 100)] * 30
        )
        for cell in cells
        for repeat in (1, 2, 3)
    ]
    results[1] = make_failed_result(
        cells[0], repeat=2, message="ValueError: wrong shape", stderr_tail="line 31, in main"
    )
    results[4] = make_result(cells[1], repeat=2, step_seconds=[0.5] * 30, validity=make_validity("throttled"))
    results[5] = make_failed_result(cells[1], repeat=3, status="oom", message="3 GiB asked for")
    return [result for number, result in enumerate(results) if number != 7]
