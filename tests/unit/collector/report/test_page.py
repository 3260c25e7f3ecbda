"""The report in a browser: it asks for nothing, runs nothing of others, answers on its first screen, is accessible."""

import re
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect

from bench.store import Store
from collector.analysis import analyze_run
from collector.report import page as pages
from collector.report.page import read_data, write_page
from collector.results.load import load_run
from factories import make_cell
from measured_runs import make_repeats
from report_pages import HOSTILE, Visit, put_and_render, visit
from runner.price_tables import load_prices
from runner.sources import ROOT

LEGENDS = {"time": "▲ longer, ▼ shorter", "throughput": "▲ more, ▼ less"}


def unfold(seen: Visit) -> None:
    seen.page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_the_report_opens_without_a_request_and_never_scrolls_sideways(
    browser: Browser, full_report: Path, width: int, scheme: str
) -> None:
    seen = visit(browser, full_report, width=width, scheme=scheme)
    unfold(seen)
    assert (seen.requests, seen.errors) == ([full_report.as_uri()], [])
    seen.page.evaluate("document.querySelector('#baseline option').text = 'a long name '.repeat(9)")
    assert seen.page.locator("#baseline").evaluate("(one) => one.offsetWidth") > 350  # of 366 on a phone
    assert seen.page.evaluate("document.documentElement.scrollWidth") == width


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1280, "dark")])
def test_axe_finds_nothing(browser: Browser, full_report: Path, width: int, scheme: str) -> None:
    seen = visit(browser, full_report, width=width, scheme=scheme)
    seen.page.locator("#grid td.longer button").first.click()
    unfold(seen)
    violations = Axe().run(seen.page).response["violations"]
    assert [(found["id"], [node["html"][:120] for node in found["nodes"][:3]]) for found in violations] == []


def test_hostile_text_does_not_run(browser: Browser, hostile_report: Path) -> None:
    seen = visit(browser, hostile_report, address="#doubt-%3Cimg%20src=x%20onerror=pwned()%3E")
    for button in seen.page.locator("#grid button").all():
        button.click()
    unfold(seen)
    expect(seen.page.locator("#failures pre")).to_contain_text("window.pwned")
    assert (len(seen.requests), seen.errors) == (1, [])
    assert seen.page.evaluate("typeof window.pwned") == "undefined"
    html = hostile_report.read_text()
    assert HOSTILE not in html
    assert html.count("<script") == 2


def test_the_page_of_a_published_run_has_its_grid_on_the_first_screen_and_two_screens_of_less_than_500_words(
    browser: Browser, tmp_path: Path
) -> None:
    store = Store.open(f"file://{ROOT}/docs/results/2026-11-23-h200")
    write_page(analyze_run(load_run(store, "study"), prices=load_prices()), tmp_path / "report.html")
    seen = visit(browser, tmp_path / "report.html", width=1280).page
    seen.set_viewport_size({"width": 1280, "height": 800})
    for name in ("#grid", ".chip >> nth=0"):
        box = seen.locator(name).bounding_box()
        assert box is not None
        assert box["y"] + box["height"] < 800
    assert seen.locator("details[open]").count() == 0
    assert seen.evaluate("document.documentElement.scrollHeight") <= 2 * 800
    seen.evaluate("for (const one of document.querySelectorAll('select')) one.remove()")
    assert len(seen.locator("body").inner_text().split()) < 500  # 472 on 2026-11-27


def test_a_doubt_on_the_first_screen_opens_what_it_says_in_full(browser: Browser, full_report: Path) -> None:
    seen = visit(browser, full_report)
    seen.page.get_by_role("link", name="1 repeat oom").click()
    expect(seen.page.locator("#doubt-repeats-oom")).to_be_visible()


def test_each_view_has_its_own_signs_colours_best_and_legend_and_every_text_is_pythons(
    browser: Browser, full_report: Path
) -> None:
    seen, data = visit(browser, full_report), read_data(full_report.read_text())
    for number, baseline in enumerate(data["programs"]):
        seen.page.get_by_label("against").select_option(baseline)
        for at, metric in enumerate(data["metrics"]):
            seen.page.get_by_label("Show").select_option(str(at))
            has_verdict = metric["name"] in ("time", "throughput")
            ratios = [ratio for base, *ratio in data["ratios"] if base == number]
            best = [f"place-{work}-{program}" for work, program, one in data["places"] if one.get("best", [0] * 9)[at]]
            ids = seen.page.locator("#grid td:has(.best)").evaluate_all("all => all.map((one) => one.id)")
            assert ids == sorted(best)
            assert ("±" in seen.page.locator("#grid").inner_text()) == has_verdict
            expect(seen.page.locator("#grid caption")).to_contain_text(f"{metric['title']}, {metric['unit']}")
            expect(seen.page.locator(".scroll + p").first).to_contain_text(LEGENDS.get(metric["name"], "One value"))
            assert seen.page.locator("#forest").is_visible() == any(views[at][2] for *_, views in ratios)
            for work, program, verdict, views in ratios:
                box, (text, title, _) = seen.page.locator(f"#place-{work}-{program}"), views[at]
                expect(box).to_contain_text(text or " ")
                assert box.locator("button").get_attribute("title") == title
                assert (verdict in (box.get_attribute("class") or "").split()) == has_verdict
    assert seen.errors == []


def test_failed_left_out_and_empty_places_are_shown(full_report: Path) -> None:
    html = full_report.read_text()
    assert re.search(r'class="left-out"><span>left out<', html)
    assert 'class="empty"></td>' in html
    states = {place["state"] for *_, place in read_data(html)["places"]}
    assert states == {"ok", "left-out"}


def test_two_cells_that_are_opened_give_the_command_that_compares_them(browser: Browser, full_report: Path) -> None:
    seen = visit(browser, full_report)
    seen.page.locator("#place-0-0 button").click()
    expect(seen.page.locator("#cell")).to_contain_text("repeat 3")
    seen.page.locator("#place-0-1 button").click()
    command = seen.page.locator("#cell code").inner_text()
    places = {(work, program): place for work, program, place in read_data(full_report.read_text())["places"]}
    assert command.startswith("benchmatrix compare --run ")
    for side, place in (("a", places[0, 0]), ("b", places[0, 1])):
        assert f"--{side} framework={place['cell']['framework']}" in command
    assert "--where model=conv6 --where phase=train" in command


def test_tables_are_sorted_and_filtered(browser: Browser, full_report: Path) -> None:
    seen = visit(browser, full_report)
    unfold(seen)
    table = seen.page.locator("#cells table").first
    for sign in (1, -1):
        table.get_by_role("button", name="step time, ms").click()
        found = [float(text.replace(",", "")) for text in table.locator("tbody td:nth-child(2)").all_inner_texts()]
        assert found == sorted(found, reverse=sign < 0)
    seen.page.get_by_label("Filter").fill("infer tensorflow gpu fp32")
    expect(seen.page.locator("#found")).to_have_text("1 of 9 cells")
    assert seen.page.locator("#grid th:visible").all_inner_texts() == ["work", "TensorFlow eager", "conv6 infer"]
    rows = seen.page.locator("#cells tbody tr:visible")
    assert rows.locator("th").all_inner_texts() == ["conv6 infer, GPU, batch 64, 32 px, TensorFlow eager"]


def test_without_a_script_the_grid_has_its_figures_and_ratios(browser: Browser, full_report: Path) -> None:
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto(full_report.as_uri())
    assert page.locator("#grid td.ok b").count() > 3
    expect(page.locator("#grid")).to_contain_text("baseline")


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        ("MAX_CELLS", ("The script shows the first 2 of 3 cells", "The first 2 of 3; the files of")),
        ("MANY_CELLS", ("has no plots",)),
    ],
)
def test_a_page_of_more_cells_than_it_shows_or_draws_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, said: tuple[str, ...]
) -> None:
    monkeypatch.setattr(pages, limit, 2)
    cells = [make_cell(batch_size=size) for size in (1, 2, 4)]
    html = put_and_render(tmp_path, *(one for cell in cells for one in make_repeats(cell, 0.1, 0.1, 0.1))).read_text()
    places = [place for *_, place in read_data(html)["places"]]
    assert [text for text in said if text not in html] == []
    assert len(places) == (2 if limit == "MAX_CELLS" else 3)
    assert limit == "MAX_CELLS" or ("<img" not in html and set(places[0]["cell"]) == {"model", "phase", "batch_size"})


def test_paper_has_the_grid_in_its_colours_the_doubts_in_full_and_nothing_that_is_folded(
    browser: Browser, full_report: Path
) -> None:
    seen = visit(browser, full_report)
    seen.page.emulate_media(media="print")
    shown = ("#grid", "#controls", "#doubt-repeats-oom + dd", "#ranking")
    assert [seen.page.locator(name).is_visible() for name in shown] == [True, False, True, False]
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= 1440


def test_pictures_have_a_size_before_they_are_seen_and_what_the_head_says_is_not_said_again(full_report: Path) -> None:
    html = full_report.read_text()
    assert html.count("<img ") == len(re.findall(r'<img loading="lazy" width="620" height="[1-9]\d+"', html)) > 0
    assert re.findall("<dt>(.*?)</dt>", html)[:2] == ["host", "left out"]
