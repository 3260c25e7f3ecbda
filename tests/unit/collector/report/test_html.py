import json
import re
from dataclasses import dataclass
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import sync_playwright

from bench.schema import LeftOutCell
from bench.store import Store
from collector.forecast.fit import fit_forecast
from collector.forecast.gpu_table import load_gpu_table
from collector.report.html import load_bundle, render_report, state_policy
from collector.results.load import load_run
from factories import (
    RUN_ID,
    make_cell,
    make_environment,
    make_failed_result,
    make_gpu,
    make_result,
    make_run,
    make_validity,
    put_documents,
)

CHROMIUM = Path("/usr/bin/chromium")
HOSTILE = "</script></pre><script>window.pwned = true</script><img src=x onerror='window.pwned = true'>"


class Page(HTMLParser):
    """What tests ask of a page: its headings, the attributes that can load something, and its scripts and styles."""

    def __init__(self, html):
        super().__init__()
        self.headings, self.links, self.texts, self.tags = [], [], {"script": [], "style": []}, []
        self._open = None
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self._open = tag
        self.tags.append((tag, dict(attrs)))
        self.links += [value for name, value in attrs if name in ("src", "href", "srcset", "data", "action", "poster")]
        if tag in self.texts:
            self.texts[tag].append("")

    def handle_endtag(self, tag):
        self._open = None

    def handle_data(self, data):
        if self._open == "h2":
            self.headings.append(data)
        elif self._open in self.texts:
            self.texts[self._open][-1] += data

    @property
    def specs(self):
        scripts = [attrs for tag, attrs in self.tags if tag == "script"]
        return [
            json.loads(text)
            for attrs, text in zip(scripts, self.texts["script"], strict=True)
            if attrs.get("type") == "application/json"
        ]


def put_and_render(directory, *results, cells=None, repeats=3, strange_keys=(), forecast=None, **run_fields):
    """Store documents, load and render them; return the path of the report. Planned are the cells of the results."""
    cells = cells or list({result.cell_id: result.cell for result in results}.values())
    run = make_run(cells, repeats=repeats, **run_fields)
    store = Store.open(f"file://{directory}/store")
    put_documents(store, run, results)
    for key in strange_keys:
        store.put(key, b"{")
    path = directory / "out" / "report.html"
    render_report(load_run(store, run.run_id), forecast=forecast, path=path)
    return path


@pytest.fixture
def render(tmp_path):
    return partial(put_and_render, tmp_path)


def make_full_run():
    """Repeats of two frameworks on two devices, of which some did not end well."""
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


@pytest.fixture(scope="module")
def full_report(tmp_path_factory):
    left_out = LeftOutCell(cell=make_cell(model="resnet18", device="gpu"), reason="no NVIDIA GPU is visible")
    return put_and_render(
        tmp_path_factory.mktemp("full"),
        *make_full_run(),
        left_out=[left_out],
        strange_keys=[f"runs/{RUN_ID}/results/notes.txt"],
        forecast=fit_forecast(load_gpu_table(None), year=2030),
    )


@pytest.fixture(scope="module")
def hostile_report(tmp_path_factory):
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
        forecast=fit_forecast(hostile_table, year=2030),
    )


@pytest.fixture(scope="module")
def browser():
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


def visit(browser, path, *, width):
    page = browser.new_page(viewport={"width": width, "height": 800})
    requests, errors = [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text))
    page.goto(path.as_uri())
    page.locator(".plot svg").nth(page.locator(".plot").count() - 1).wait_for()
    return Visit(page=page, requests=[url for url in requests if not url.startswith("data:")], errors=errors)


def read_words(path):
    """The visible text and attributes of a report, without its scripts."""
    return re.sub(r"\s+", " ", re.sub(r"<script.*?</script>", "", path.read_text(), flags=re.DOTALL))


def test_the_sections_stand_in_order_of_use(full_report):
    assert Page(full_report.read_text()).headings == [
        "Step times",
        "Plots",
        "Memory and durations",
        "Comparisons",
        "Roofline, energy, devices",
        "The study's claims",
        "Not valid",
        "Failures",
        "Left out",
        "Forecast",
        "Environments",
        "Skipped documents",
        "How it was measured",
    ]


def test_the_first_sentence_counts_what_ended_how(full_report):
    assert "21 of 24 planned repeats ended ok, in 8 cells. The others: 1 failed, 1 oom, 1 missing." in read_words(
        full_report
    )


def test_failures_left_out_cells_and_skipped_documents_show_their_reasons(full_report):
    words = read_words(full_report)
    for text in ("ValueError: wrong shape", "line 31", "3 GiB asked for", "no result was found"):
        assert text in words
    assert "no NVIDIA GPU is visible" in words
    assert f"runs/{RUN_ID}/results/notes.txt" in words
    assert "the key is not one of a result" in words


def test_every_question_that_the_data_answer_has_a_plot(full_report):
    words = read_words(full_report)
    for question in (
        "How fast is each cell?",
        "Which framework is faster?",
        "What does the GPU gain?",
        "How near does it come to what the device can do?",
        "Where does the time of a repeat go?",
        "Is the measurement steady?",
    ):
        assert f"<h3>{question}</h3>" in words


def test_what_is_not_there_has_no_section_and_no_plot(render):
    page = render(*(make_result(repeat=repeat) for repeat in (1, 2, 3)))
    assert Page(page.read_text()).headings == [
        "Step times",
        "Plots",
        "Memory and durations",
        "Roofline, energy, devices",
        "Environments",
        "How it was measured",
    ]
    words = read_words(page)
    assert "What does the GPU gain?" not in words
    assert 'class="warnings"' not in words


def test_a_run_of_which_nothing_ended_ok_has_a_report(render):
    path = render(make_failed_result(status="timeout", message="no result after 600 s"), repeats=2)
    assert "0 of 2 planned repeats ended ok, in 1 cell. The others: 1 timeout, 1 missing." in read_words(path)
    assert Page(path.read_text()).headings == ["Step times", "Failures", "How it was measured"]


def test_a_cell_in_two_environments_is_named_with_what_differs(render):
    path = render(make_result(repeat=1), make_result(repeat=2, environment=make_environment(num_threads=1)), repeats=2)
    assert (
        "conv6 train, CPU, batch 64, 32 px, PyTorch eager ran in 2 environments, one row each; they differ in threads."
        in read_words(path)
    )


def test_the_forecast_shows_its_answers_and_refusals(render):
    table = load_gpu_table(None)
    falling = table.assign(memory_gb=[max(1.0, 300.0 - 15 * (year - 2008)) for year in table["year"]])
    falling.attrs = table.attrs
    path = render(make_result(), repeats=1, forecast=fit_forecast(falling, year=2040))
    words = read_words(path)
    assert "polynomial 2: no forecast; polynomial 2 would give -180 GB for 2040" in words


def test_the_report_names_nothing_outside_itself(full_report):
    page = Page(full_report.read_text())
    assert all(link.startswith(("#", "data:")) for link in page.links)
    assert not {"iframe", "object", "embed"} & {tag for tag, _ in page.tags}
    assert not re.search(r"@import|url\(", "".join(page.texts["style"]))
    assert not re.search(r'"url"|https?:', json.dumps(page.specs))


def test_the_policy_allows_the_two_scripts_of_the_report_and_no_request(full_report):
    page = Page(full_report.read_text())
    (policy,) = (attrs["content"] for tag, attrs in page.tags if attrs.get("http-equiv") == "Content-Security-Policy")
    scripts = [attrs for tag, attrs in page.tags if tag == "script"]
    executed = [text for attrs, text in zip(scripts, page.texts["script"], strict=True) if not attrs]
    assert policy == state_policy(executed)
    assert "default-src 'none'" in policy
    assert "unsafe-eval" not in policy


def test_the_bundle_can_stand_in_a_script_element():
    assert "</script" not in load_bundle()
    assert "<!--" not in load_bundle()


def test_the_report_is_smaller_than_2_mb(full_report):
    assert full_report.stat().st_size < 2_000_000


def test_hostile_text_stays_text(hostile_report):
    html = hostile_report.read_text()
    page = Page(html)
    assert "img" not in {tag for tag, _ in page.tags}
    assert sum(tag == "script" and not attrs for tag, attrs in page.tags) == 2
    escaped = html.count("&lt;/script&gt;&lt;/pre&gt;&lt;script&gt;window.pwned = true")
    assert escaped >= len(["user", "CPU", "GPU", "package", "message", "stderr", "left out"])


def test_hostile_text_stays_text_in_the_documents_of_plots(hostile_report):
    forecast = Page(hostile_report.read_text()).specs[-1]
    rows = [row for rows in forecast["datasets"].values() for row in rows]
    assert {row["name"].partition(", ")[0] for row in rows if "name" in row} == {HOSTILE}


def test_tables_and_plots_can_be_read_out(full_report):
    page = Page(full_report.read_text())
    assert all(attrs.get("scope") in ("col", "row") for tag, attrs in page.tags if tag == "th")
    plots = [attrs for tag, attrs in page.tags if attrs.get("class") == "plot"]
    assert len(page.specs) == len(plots) > 0
    assert all(attrs["role"] == "img" and attrs["aria-label"] for attrs in plots)


def test_a_wide_matrix_is_drawn_in_part_and_says_so(render):
    cells = [make_cell(batch_size=size) for size in range(1, 27)]
    path = render(*(make_result(cell) for cell in cells), repeats=1)
    words = read_words(path)
    assert "Drawn are 24 of 26 workloads; the tables have all." in words
    assert "Drawn are 24 of 26 cells, the widest intervals first; samples.parquet has all." in words
    assert words.count("PyTorch eager</th>") / 5 == 26  # step times, memory, parts, roofline, devices


def test_many_repeats_with_many_steps_are_drawn_in_part_and_say_so(render):
    results = [make_result(repeat=repeat, step_seconds=[0.1 + repeat / 1000] * 400) for repeat in range(1, 46)]
    path = render(*results, repeats=45)
    assert "Drawn are 40 of 45 repeats of a cell, from the fastest to the slowest; samples.parquet has all." in (
        read_words(path)
    )
    assert "45 of 45 planned repeats ended ok" in read_words(path)
    assert path.stat().st_size < 2_000_000


@pytest.mark.parametrize("width", [360, 1280])
def test_the_report_opens_without_a_request_and_never_scrolls_sideways(browser, full_report, width):
    seen = visit(browser, full_report, width=width)
    assert (seen.requests, seen.errors) == ([full_report.as_uri()], [])
    assert seen.page.evaluate("document.documentElement.scrollWidth") == width
    assert seen.page.evaluate("[...document.querySelectorAll('.plot svg')].every(svg => svg.clientWidth <= innerWidth)")


def test_hostile_text_does_not_run(browser, hostile_report):
    seen = visit(browser, hostile_report, width=800)
    assert (seen.requests, seen.errors) == ([hostile_report.as_uri()], [])
    assert seen.page.evaluate("typeof window.pwned") == "undefined"
