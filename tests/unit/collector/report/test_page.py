"""The report in a browser: it asks for nothing, follows its filters, compares as the collector, and is accessible."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect

from browser_visits import Visit, visit
from collector.analysis import Analysis, analyze_run
from collector.report.html import make_page
from factories import RUN_ID, make_cell, make_environment, make_result, make_validity
from measured_runs import collect_results, make_repeats
from page_comparisons import check_pair, list_pairs

Render = Callable[..., Path]


def draw_everything(seen: Visit) -> None:
    """Unfold all sections, scroll each place of plots into view and wait until the first one in it is drawn."""
    seen.page.evaluate("void unfoldAll()")
    for place in seen.page.locator("[data-figures]").all():
        place.scroll_into_view_if_needed()
        expect(place.locator(".plot svg").first).to_be_visible()


@pytest.fixture(scope="module")
def opened(browser: Browser, report: Path) -> Iterator[Visit]:
    """The report of a synthetic run, for tests that leave no filter behind."""
    seen = visit(browser, report)
    yield seen
    assert seen.errors == []


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1440, "light")])
def test_the_report_opens_without_a_request_and_never_scrolls_sideways(
    browser: Browser, full_report: Path, width: int, scheme: str
) -> None:
    seen = visit(browser, full_report, width=width, scheme=scheme)
    draw_everything(seen)
    assert (seen.requests, seen.errors) == ([full_report.as_uri()], [])
    assert seen.page.evaluate("document.documentElement.scrollWidth") == width
    assert seen.page.evaluate("[...document.querySelectorAll('.plot svg')].every(svg => svg.clientWidth <= innerWidth)")


def test_hostile_text_does_not_run(browser: Browser, hostile_report: Path) -> None:
    seen = visit(browser, hostile_report, address="#overview?q=%3Cimg%20src=x%20onerror=pwned()%3E&f.__proto__=1")
    seen.page.get_by_role("button", name="Show all").first.click()
    seen.page.locator("td[data-key]").first.click()
    seen.page.get_by_text("The cell as JSON").click()
    expect(seen.page.locator("#cell pre").last).to_contain_text("window.pwned")
    draw_everything(seen)
    assert (seen.requests, seen.errors) == ([seen.requests[0]], [])
    assert seen.page.evaluate("typeof window.pwned") == "undefined"


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1440, "dark")])
def test_axe_finds_nothing(browser: Browser, report: Path, width: int, scheme: str) -> None:
    seen = visit(browser, report, width=width, scheme=scheme)
    seen.page.locator("td.heat-cell.longer, td.heat-cell.shorter").first.click()
    expect(seen.page.locator("#cell .plot svg").first).to_be_visible()
    violations = Axe().run(seen.page).response["violations"]
    assert [(found["id"], [node["html"][:120] for node in found["nodes"][:3]]) for found in violations] == []


def test_every_cell_stands_in_the_heat_map_and_says_how_it_ended(opened: Visit, analysis: Analysis) -> None:
    kinds = opened.page.evaluate("Array.from({length: CELLS.size}, (_, row) => describeCell(CELLS, row).kind)")
    failed = int((analysis.summary["num_ok"] == 0).sum())
    assert failed > 0
    assert len(kinds) == len(analysis.summary)
    assert sum(kind in ("failed", "missing") for kind in kinds) == failed
    places = opened.page.evaluate("HEAT.map.places.flatMap((line) => [...line]).filter((row) => row >= 0).length")
    assert places == len(analysis.summary)


def test_the_heat_map_has_no_colour_of_a_direction_without_its_verdict(opened: Visit) -> None:
    words = """() => {
      const row = CELLS.ids.findIndex((_, one) => describeCell(CELLS, one).shade !== 0);
      const comparison = HEAT.comparisons[row];
      const described = [{}, { adjusted: 1 }, { pValue: null }].map((change) => {
        HEAT.comparisons[row] = { ...comparison, ...change };
        const { kind, shade } = describeCell(CELLS, row);
        return [kind, shade === 0];
      });
      HEAT.comparisons[row] = comparison;
      return described;
    }"""
    shown, same, single = opened.page.evaluate(words)
    assert shown in (["longer", False], ["shorter", False])
    assert (same, single) == (["same", True], ["single", True])


def test_a_column_of_the_heat_map_says_in_what_it_differs_from_the_baseline_if_in_several_fields(opened: Visit) -> None:
    """A speedup of mode and precision together stood there as if it were that of either."""
    heads = opened.page.locator("#heat thead th")
    notes = {head.inner_text().partition("\n")[0]: head.locator("small").all_inner_texts() for head in heads.all()}
    baseline = [part.strip() for part in opened.page.locator("#baseline").input_value().split(",")]
    assert notes
    for name, found in notes.items():
        differing = sum(one != other for one, other in zip(name.split(", "), baseline, strict=True))
        assert len(found) == (1 if differing > 1 else 0), name
        assert all(note.startswith("differs in ") and note.count(",") == differing - 1 for note in found), name
    assert any(notes.values())


def test_cells_that_could_not_run_are_counted_apart(browser: Browser, full_report: Path) -> None:
    seen = visit(browser, full_report)
    size = seen.page.evaluate("CELLS.size")
    count = f"{size} cells, all shown: {size - 1} of the run, and 1 of its matrix that could not run here."
    assert seen.page.locator("#filter-count").inner_text() == count


def test_the_filter_holds_for_heat_map_tables_and_plots_and_is_in_the_address(
    browser: Browser, report: Path, analysis: Analysis
) -> None:
    seen = visit(browser, report, address="#overview?f.model=conv6&f.framework=JAX")
    seen.page.evaluate("void unfoldAll()")
    count = seen.page.evaluate("PASSING.count")
    assert count == seen.page.evaluate("CELLS.names.filter((name) => /^conv6.*jax/.test(name)).length") > 0
    rows = seen.page.locator("#step-times tbody tr:visible")
    texts = rows.all_inner_texts()
    assert texts
    assert all("conv6" in text and "JAX" in text for text in texts)
    for question in ("How fast is each cell?", "Where does the time of a repeat go?", "Is the measurement steady?"):
        plots = seen.page.locator(f"xpath=//h3[.='{question}']/following-sibling::div[1]")
        plots.scroll_into_view_if_needed()
        expect(plots.locator(".plot svg").first).to_be_visible()
        titles = plots.locator("figcaption").all_inner_texts()
        assert titles
        assert all("conv6" in title for title in titles)
    seen.page.get_by_role("button", name="Show all").first.click()
    assert seen.page.evaluate("PASSING.count") == len(analysis.summary)
    seen.page.get_by_role("searchbox", name="Search").fill("resnet18 train")
    expect(seen.page.locator("#filter-notice")).to_be_visible()
    assert "q=resnet18%20train" in seen.page.url
    assert seen.errors == []


def test_a_side_that_is_chosen_by_a_key_is_seen(opened: Visit) -> None:
    page = opened.page
    page.set_viewport_size({"width": 1280, "height": 300})
    first = page.locator("#heat td[tabindex='0']")
    first.focus()
    first.evaluate("(cell) => cell.scrollIntoView({ block: 'end', behavior: 'instant' })")
    expect(page.locator("#sides")).not_to_be_in_viewport()
    page.keyboard.press("b")
    expect(page.locator("#sides h3")).to_be_in_viewport()


def test_the_heat_map_is_used_by_keys_alone(opened: Visit) -> None:
    page = opened.page
    first = page.locator("#heat td[tabindex='0']")
    first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("a")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("b")
    page.keyboard.press("Enter")
    expect(page.locator("#sides h3")).to_have_text("Two cells compared")
    one, other = page.evaluate("[STATE.a, STATE.b]")
    assert one != other
    assert page.evaluate("STATE.cell") == other
    expect(page.locator("#cell table caption")).to_have_text("Repeats")
    page.keyboard.press("Escape")
    expect(page.locator("#cell")).to_be_hidden()
    assert page.evaluate("document.activeElement === document.querySelector('#heat td[tabindex=\"0\"]')")


def test_a_search_that_nothing_passes_says_what_to_do_and_comes_back(opened: Visit) -> None:
    page = opened.page
    caption = page.locator("#heat-caption").inner_text()
    page.get_by_role("searchbox", name="Search").fill("no such cell")
    expect(page.locator("#heat-caption")).to_contain_text("No cell passes")
    expect(page.locator("#heat")).to_be_hidden()
    expect(page.locator("#answers .emptied")).to_have_text("No row here is of a cell that passes the filter.")
    expect(page.locator("[data-unfiltered]")).to_have_text("The sentences are of all 48 cells, whatever the filter.")
    page.get_by_role("searchbox", name="Search").fill("")
    expect(page.locator("#heat-caption")).to_have_text(caption)
    expect(page.locator("#heat td.heat-cell").first).to_be_visible()
    expect(page.locator("#answers .emptied, [data-unfiltered]:visible")).to_have_count(0)


def test_the_page_compares_as_the_collector_does(opened: Visit, analysis: Analysis) -> None:
    kinds = [check_pair(opened.page, *pair) for pair in list_pairs(analysis)]
    assert {"ratio", "no ratio"} <= set(kinds)


def test_ends_of_an_interval_that_leaves_out_1_do_not_read_as_1(opened: Visit) -> None:
    # 1.0031 to 1.0170 leaves out 1: with three digits its lower end would read as 1.
    assert opened.page.evaluate("formatRatio(1.01, [1.0031, 1.017])") == ["1.010", "1.003 to 1.017"]
    assert opened.page.evaluate("formatRatio(8.42, [8.1, 8.76])") == ["8.42", "8.10 to 8.76"]


def test_the_page_compares_machines_versions_and_faults_as_the_collector_does(browser: Browser, tmp_path: Path) -> None:
    hosts = [make_environment(hostname=f"bench-{number}") for number in (1, 2)]
    other = make_environment(versions={"tensorflow": "2.21.0"}, cpu_model="another CPU")
    jax = make_environment(versions={"jax": "0.11.0"})
    cells = {name: make_cell(framework=name, mode=mode) for name, mode in (("pytorch", "eager"), ("jax", "compiled"))}
    results = [
        make_result(cell, repeat=repeat, step_seconds=(seconds * (1 + repeat / 50),) * 3, environment=hosts[repeat % 2])
        for cell, seconds in ((cells["pytorch"], 0.1), (make_cell(mode="compiled"), 0.08))
        for repeat in (1, 2, 3, 4)
    ]
    results += make_repeats(make_cell(framework="tensorflow", mode="graph"), 0.2, 0.21, 0.204, environment=other)
    results += make_repeats(cells["jax"], 0.09, environment=jax)
    results += make_repeats(make_cell(precision="bf16"), 0.07, 0.071, environment=hosts[0])
    results += make_repeats(
        make_cell(framework="tensorflow", mode="eager"), 0.3, 0.31, environment=jax, validity=make_validity("throttled")
    )
    analysis = analyze_run(collect_results(tmp_path, *results, repeats=4, run_id=RUN_ID))
    path = tmp_path / "report.html"
    path.write_text(make_page(analysis))
    page = visit(browser, path).page
    kinds = {check_pair(page, *pair) for pair in list_pairs(analysis)}
    assert kinds == {"ratio", "no ratio", "no interval", "no verdict"}


@pytest.mark.parametrize(
    ("search", "same"),
    [
        ("inference TF", "infer tensorflow"),
        ("serving torch", "infer pytorch"),
        ("Training Keras", "train"),
        ("bfloat16 train", "bf16 train"),
        ("float32 train", "fp32 train"),
        ("out of memory", "oom"),
        ("crashed", "failed"),
        ("batch size 8", "batch 8"),
        ("bs8", "batch 8"),
    ],
)
def test_the_search_knows_what_people_call_things(opened: Visit, search: str, same: str) -> None:
    count = "(search) => { STATE.q = search; applyFilters(CELLS); return [...PASSING.ids].sort(); }"
    found, expected = (opened.page.evaluate(count, text) for text in (search, same))
    everything = opened.page.evaluate(count, "")
    if "Keras" in search:
        expected = [one for one in expected if "pytorch" not in one]
    assert found == expected
    assert len(found) < len(everything)


def test_a_pair_that_no_table_has_gets_no_verdict_and_the_reason(opened: Visit) -> None:
    words = """() => {
      const pairs = CELLS.ids.flatMap((_, one) => CELLS.ids.map((_, other) => [one, other]));
      const compared = pairs.filter(([one, other]) => one < other && CELLS.compare(one, other).interval);
      const say = (pair) => describeComparison(CELLS, ...pair)[0].textContent;
      const isTabled = (pair) => CELLS.findTable(...pair) !== null;
      const [tabled, others] = [compared.filter(isTabled), compared.filter((pair) => !isTabled(pair))];
      const quote = (pair) => describeComparison(CELLS, ...pair)[1].textContent;
      return [tabled.map(say), others.map(say), tabled.map(quote), others.map(quote)];
    }"""
    tabled, others, joint, alone = opened.page.evaluate(words)
    assert tabled
    assert others
    assert all(", which allows for all " in text and " alone " not in text for text in joint)
    assert all(", 95 % interval of this ratio alone " in text for text in alone)
    assert not any("no verdict" in text for text in tabled)
    assert all(text.startswith("A against B: no verdict, as no table of Comparisons has this pair") for text in others)


def test_times_of_two_sides_recompute_to_their_ratio(opened: Visit) -> None:
    assert opened.page.evaluate("[[0.010356, 0.010344], [0.2, 0.1]].map((pair) => chooseTimeDigits(...pair))") == [5, 4]


def test_a_link_to_what_is_folded_opens_it_and_one_to_a_cell_shows_it(browser: Browser, report: Path) -> None:
    seen = visit(browser, report, address="#table-inference-latency-of-one-batch")
    expect(seen.page.locator("#step-times table").first).to_be_visible()
    expect(seen.page.locator("#comparisons table").first).to_be_hidden()
    seen.page.locator("nav a", has_text="Comparisons").click()
    expect(seen.page.locator("#comparisons table").first).to_be_visible()
    mark = seen.page.locator("#planned a[href^='#cell?']").first
    cell_id = (mark.get_attribute("href") or "").partition("cell=")[2]
    mark.click()
    expect(seen.page.locator("#cell table caption")).to_have_text("Repeats")
    assert seen.page.evaluate("STATE.cell") == cell_id
    assert seen.errors == []


def test_arrow_words_and_colour_of_the_heat_map_point_one_way(opened: Visit) -> None:
    words = """() => CELLS.ids.map((_, row) => {
      const { kind, shade, text } = describeCell(CELLS, row);
      return [kind, shade, text, HEAT.comparisons[row].ratio?.center];
    })"""
    shown = [found for found in opened.page.evaluate(words) if found[0] in ("longer", "shorter")]
    assert {kind for kind, *_ in shown} == {"longer", "shorter"}
    for kind, shade, text, ratio in shown:
        assert (ratio > 1) == (kind == "longer") == text.endswith(("longer", "as long"))
        assert shade == 0 or (shade < 0) == (kind == "longer")
    numbers = [0.5, 0.987, 1.0, 1.21, 2.5]
    assert opened.page.evaluate("(numbers) => numbers.map(describeTime)", numbers) == [
        "2.00× as fast", "1.3 % faster", "0.0 % longer", "21.0 % longer", "2.50× as long",
    ]  # fmt: skip
    assert opened.page.evaluate("(numbers) => numbers.map(formatTimeRatio)", numbers) == [
        "×0.500", "−1.3 %", "+0.0 %", "+21.0 %", "×2.50",
    ]  # fmt: skip
    assert opened.page.evaluate("[SIGNS.longer, SIGNS.shorter].map(([sign, words]) => sign + words.slice(0, 11))") == [
        "▲takes longe",
        "▼takes less ",
    ]
