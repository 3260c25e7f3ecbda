"""Measures the report: its bytes, the seconds until a browser can be used on it, and the memory of both.

    .venv/bin/python benchmarks/report.py --cells 8 100 2000

Makes a synthetic run of each size (benchmarks/synthetic_runs.py: three repeats a cell, 40 timed steps each), writes its
report in a process of its own, and opens it in chromium three times. `interactive` is when the grid is drawn and the
filter answers, from the start of the navigation; `filter` is one word in it, until everything in view has followed.
Figures are medians. Run it on an idle machine with two cores.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from synthetic_runs import Size, put_run  # noqa: E402

from bench.store import Store  # noqa: E402

CHROMIUM = "/usr/bin/chromium"
NUM_VISITS = 3
MEBIBYTE = 2**20
FILTER = """() => new Promise((resolve) => {
  const begin = performance.now(), box = document.getElementById("filter");
  box.value = "conv6";
  box.dispatchEvent(new Event("input"));
  requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - begin), 0));
})"""


def render(url: str, run_id: str, path: str) -> None:
    """Write a report in this process and print its seconds of CPU and its peak memory in MiB."""
    from collector.analysis import analyze_run
    from collector.report.page import write_page
    from collector.results.load import load_run

    begin = time.process_time()
    collection = load_run(Store.open(url), run_id, writes_tables=True)
    loaded = time.process_time()
    write_page(analyze_run(collection), Path(path))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"load": loaded - begin, "render": time.process_time() - loaded, "memory": peak}))


def visit(path: Path) -> dict[str, float]:
    """Open a report and return seconds and the heap of its script in MiB."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--headless", "--disable-gpu", "--enable-precise-memory-info"]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(path.as_uri(), timeout=300_000)
        page.wait_for_selector("html[data-ready]", timeout=300_000)
        ready = page.evaluate("performance.getEntriesByType('navigation')[0].domInteractive")
        heap = page.evaluate("performance.memory.usedJSHeapSize")
        return {"interactive": ready / 1000, "filter": page.evaluate(FILTER) / 1000, "heap": heap / MEBIBYTE}


def measure(num_cells: int, folder: Path) -> dict[str, Any]:
    """Return all figures of a run of this size."""
    url, path = f"file://{folder}/store-{num_cells}", folder / f"report-{num_cells}.html"
    run = put_run(Store.open(url), Size(num_cells=num_cells))
    command = [sys.executable, __file__, "--render", url, run.run_id, str(path)]
    written = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    visits = [visit(path) for _ in range(NUM_VISITS)]
    medians = {name: statistics.median(seen[name] for seen in visits) for name in visits[0]}
    return {"cells": num_cells, "megabytes": path.stat().st_size / 1e6, **written, **medians}


def main() -> None:
    """Print a line for each size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", nargs="+", type=int, default=[8, 100, 2000])
    parser.add_argument("--folder", type=Path, help="keeps the runs and reports there")
    parser.add_argument("--render", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.render:
        render(*arguments.render)
        return
    with tempfile.TemporaryDirectory() as temporary:
        for num_cells in arguments.cells:
            found = measure(num_cells, arguments.folder or Path(temporary))
            print(", ".join(f"{name} {value:,.4g}" for name, value in found.items()), flush=True)


if __name__ == "__main__":
    main()
