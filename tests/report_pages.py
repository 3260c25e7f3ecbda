"""Reports of made-up runs, opened in a browser that keeps what they ask for and which errors they have."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, expect

from bench.schema import Result
from bench.store import Store
from collector.analysis import analyze_run
from collector.report.page import write_page
from collector.results.load import load_run
from factories import make_cell, make_failed_result, make_result, make_run, make_validity, put_documents

# The page is ready when everything is drawn that does not wait for being seen.
READY = "html[data-ready]"
PATIENCE_MILLISECONDS = 300_000.0
"""For whatever a browser does; only a test that fails takes so long."""
expect.set_options(timeout=PATIENCE_MILLISECONDS)
HOSTILE = "</script></pre><script>window.pwned = true</script><img src=x onerror='window.pwned = true'>"
"""Runs a script wherever it is read as HTML."""


@dataclass
class Visit:
    """A page opened in a browser, and what it asked for and which errors and warnings it had."""

    page: Any
    requests: list[str]
    errors: list[str]


def visit(browser: Browser, path: Path, *, width: int = 1440, scheme: Any = "light", address: str = "") -> Visit:
    """Open a report and return when it can be used. `address`: what follows the file's name, such as `#doubts`."""
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce")
    page.set_default_timeout(PATIENCE_MILLISECONDS)
    requests: list[str] = []
    errors: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if message.type in ("error", "warning") else None)
    page.goto(path.as_uri() + address)
    page.wait_for_selector(READY)
    return Visit(page=page, requests=[url for url in requests if not url.startswith("data:")], errors=errors)


def put_and_render(directory: Path, *results: Result, strange_keys: Iterable[str] = (), **run_fields: Any) -> Path:
    """Store documents, load and render them; return the path of the report. Planned are the cells of the results."""
    run = make_run(dict.fromkeys(result.cell for result in results), **run_fields)
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
