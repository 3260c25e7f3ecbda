"""Make the picture of a report in README.md: the overview of a published run, in light colours.

`python docs/report_picture.py` writes docs/pictures/report.png anew from the run that is stored under docs/results. It
needs chromium, as the tests of the report do; another version of it, or other fonts, give other bytes.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from bench.store import Store
from collector.analysis import analyze_run
from collector.report.page import write_page
from collector.results.load import load_run

DOCS = Path(__file__).parent
PICTURE = DOCS / "pictures" / "report.png"
RESULTS, RUN_ID = DOCS / "results" / "2026-11-23-h200", "study"
"""The run whose lines README.md shows too."""
CHROMIUM = Path("/usr/bin/chromium")
WIDTH, SCALE = 1280, 1.5
"""Pixels of the page, and how many a pixel of it has in the file: GitHub shows a README about 900 wide."""
MARGIN = 4
FIRST, LAST = "header", "#forest"
"""From the top of the one to the bottom of the other."""
FIND_CLIP = f"""() => {{
  const [first, last] = ["{FIRST}", "{LAST}"].map((name) => document.querySelector(name).getBoundingClientRect());
  return {{ top: first.top + scrollY, bottom: last.bottom + scrollY }};
}}"""


def main() -> None:
    """Write the picture; end with a message where there is no chromium."""
    argparse.ArgumentParser(description=__doc__.partition("\n")[0]).parse_args()
    if not CHROMIUM.exists():
        sys.exit(f"{CHROMIUM}: there is no such program; on Debian: apt-get install chromium")
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.html"
        write_page(analyze_run(load_run(Store.open(RESULTS.resolve().as_uri()), RUN_ID)), report)
        take_picture(report, PICTURE)


def take_picture(report: Path, picture: Path) -> None:
    """Write the overview of a report as PNG."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--headless"])
        page = browser.new_page(
            viewport={"width": WIDTH, "height": 900}, device_scale_factor=SCALE, color_scheme="light"
        )
        page.goto(report.as_uri())
        page.wait_for_selector("html[data-ready]")
        found = page.evaluate(FIND_CLIP)
        height = found["bottom"] - found["top"] + MARGIN
        page.screenshot(
            path=picture, full_page=True, clip={"x": 0, "y": found["top"], "width": WIDTH, "height": height}
        )
        browser.close()


if __name__ == "__main__":
    main()
