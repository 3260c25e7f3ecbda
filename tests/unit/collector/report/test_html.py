"""The page itself: it asks for nothing, runs nothing of what results say, and can be read anywhere."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from bench.schema import LeftOutCell
from collector.forecast.fit import fit_forecast
from collector.forecast.gpu_table import load_gpu_table, make_gpu_series
from collector.report.html import load_bundle, state_policy
from factories import (
    make_cell,
    make_environment,
    make_failed_result,
    make_gpu,
    make_result,
)
from report_pages import Page, put_and_render

CHROMIUM = Path("/usr/bin/chromium")
HOSTILE = "</script></pre><script>window.pwned = true</script><img src=x onerror='window.pwned = true'>"


@pytest.fixture(scope="module")
def hostile_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    environment = make_environment(cpu_model=HOSTILE, versions={"torch": HOSTILE}, gpus=(make_gpu(name=HOSTILE),))
    table = load_gpu_table(None)
    hostile_table = table.assign(name=HOSTILE)
    hostile_table.attrs = table.attrs
    return put_and_render(
        tmp_path_factory.mktemp("hostile"),
        make_result(repeat=1, environment=environment),
        make_failed_result(repeat=2, message=HOSTILE, stderr_tail=HOSTILE),
        left_out=[LeftOutCell(cell=make_cell(batch_size=1), reason=HOSTILE)],
        user=HOSTILE,
        forecast=fit_forecast(make_gpu_series(hostile_table), year=2030),
    )


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is not installed")
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--headless", "--disable-gpu"])


@dataclass
class Visit:
    """A report opened in a browser, and what it asked for and complained of until its plots were drawn."""

    page: Any
    requests: list[str]
    errors: list[str]


def visit(browser: Browser, path: Path, *, width: int) -> Visit:
    page = browser.new_page(viewport={"width": width, "height": 800})
    requests, errors = [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text))
    page.goto(path.as_uri())
    page.locator(".plot svg").nth(page.locator(".plot").count() - 1).wait_for()
    return Visit(page=page, requests=[url for url in requests if not url.startswith("data:")], errors=errors)


def test_the_report_names_nothing_outside_itself(full_report: Path) -> None:
    page = Page(full_report.read_text())
    assert all(link.startswith(("#", "data:")) for link in page.links)
    assert not {"iframe", "object", "embed"} & {tag for tag, _ in page.tags}
    assert not re.search(r"@import|url\(", "".join(page.texts["style"]))
    assert not re.search(r'"url"|https?:', json.dumps(page.specs))


def test_the_policy_allows_the_two_scripts_of_the_report_and_no_request(full_report: Path) -> None:
    page = Page(full_report.read_text())
    (policy,) = (attrs["content"] for tag, attrs in page.tags if attrs.get("http-equiv") == "Content-Security-Policy")
    scripts = [attrs for tag, attrs in page.tags if tag == "script"]
    executed = [text for attrs, text in zip(scripts, page.texts["script"], strict=True) if not attrs]
    assert policy == state_policy(executed)
    assert "default-src 'none'" in policy
    assert "unsafe-eval" not in policy


def test_the_bundle_can_stand_in_a_script_element() -> None:
    assert "</script" not in load_bundle()
    assert "<!--" not in load_bundle()


def test_the_report_is_smaller_than_2_mb(full_report: Path) -> None:
    assert full_report.stat().st_size < 2_000_000


def test_hostile_text_stays_text(hostile_report: Path) -> None:
    html = hostile_report.read_text()
    page = Page(html)
    assert "img" not in {tag for tag, _ in page.tags}
    assert sum(tag == "script" and not attrs for tag, attrs in page.tags) == 2
    escaped = html.count("&lt;/script&gt;&lt;/pre&gt;&lt;script&gt;window.pwned = true")
    assert escaped >= len(["user", "CPU", "GPU", "package", "message", "stderr", "left out"])


def test_hostile_text_stays_text_in_the_documents_of_plots(hostile_report: Path) -> None:
    forecast = Page(hostile_report.read_text()).specs[-1]
    rows = [row for rows in forecast["datasets"].values() for row in rows]
    assert {row["name"].partition(", ")[0] for row in rows if "name" in row} == {HOSTILE}


def test_tables_and_plots_can_be_read_out(full_report: Path) -> None:
    page = Page(full_report.read_text())
    assert all(attrs.get("scope") in ("col", "row") for tag, attrs in page.tags if tag == "th")
    plots = [attrs for tag, attrs in page.tags if attrs.get("class") == "plot"]
    assert len(page.specs) == len(plots) > 0
    assert all(attrs["role"] == "img" and attrs["aria-label"] for attrs in plots)


@pytest.mark.parametrize("width", [360, 1280])
def test_the_report_opens_without_a_request_and_never_scrolls_sideways(
    browser: Browser, full_report: Path, width: int
) -> None:
    seen = visit(browser, full_report, width=width)
    assert (seen.requests, seen.errors) == ([full_report.as_uri()], [])
    assert seen.page.evaluate("document.documentElement.scrollWidth") == width
    assert seen.page.evaluate("[...document.querySelectorAll('.plot svg')].every(svg => svg.clientWidth <= innerWidth)")


def test_hostile_text_does_not_run(browser: Browser, hostile_report: Path) -> None:
    seen = visit(browser, hostile_report, width=800)
    assert (seen.requests, seen.errors) == ([hostile_report.as_uri()], [])
    assert seen.page.evaluate("typeof window.pwned") == "undefined"
