"""The details of a cell: what the plan says of it, and what the version of the tool that made the plan did not have."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, expect

from bench.schema.cell import LATER_FIELDS
from bench.store import Store, run_key
from browser_visits import visit
from collector.report.html import render_report
from collector.results.load import load_run
from factories import RUN_ID, make_cell, make_result
from report_pages import put_and_render

Render = Callable[..., Path]


def render_old_plan(directory: Path) -> Path:
    """Return the report of a run whose plan was written before cells had any of LATER_FIELDS."""
    cell = make_cell(device="gpu", sampling_seconds=2.0)
    path = put_and_render(directory, *(make_result(cell, repeat=number) for number in (1, 2, 3)))
    store = Store.open(f"file://{directory}/store")
    document: dict[str, Any] = json.loads(store.get(run_key(RUN_ID)))
    for planned in document["cells"]:
        for name in LATER_FIELDS:
            del planned["cell"][name]
    (directory / "store" / run_key(RUN_ID)).write_text(json.dumps(document))
    render_report(load_run(store, RUN_ID), forecast=None, path=path)
    return path


def test_what_an_older_version_did_not_record_is_said_and_not_its_default(browser: Browser, tmp_path: Path) -> None:
    seen = visit(browser, render_old_plan(tmp_path))
    seen.page.locator("td.heat-cell").first.click()
    passes = seen.page.locator("#cell dl div", has_text="passes after it")
    expect(passes).to_have_text(
        "passes after itclocks, power and memory sampled for 2 s; not recorded by this version of the tool: "
        "pipelined steps, kernel times, speed that lasts"
    )
    seen.page.get_by_text("The cell as JSON").click()
    expect(seen.page.locator("#cell pre").last).to_contain_text("sampling_seconds")
    document = json.loads(seen.page.locator("#cell pre").last.inner_text())
    assert set(document["not_recorded_by_this_version"]) == set(LATER_FIELDS)
    assert not set(LATER_FIELDS) & set(document["cell"])
    assert document["cell"]["data_dir"] is None
    assert seen.errors == []


def test_a_plan_of_this_version_has_all_of_its_passes(browser: Browser, render: Render) -> None:
    cell = make_cell(device="gpu", num_profiled_steps=5, pipelined_seconds=1.0, sustain_seconds=0.0)
    seen = visit(browser, render(*(make_result(cell, repeat=number) for number in (1, 2, 3))))
    seen.page.locator("td.heat-cell").first.click()
    passes = seen.page.locator("#cell dl div", has_text="passes after it")
    expect(passes).to_contain_text("kernel times of 5 profiled steps; not asked for: speed that lasts")
    expect(passes).not_to_contain_text("not recorded")
    seen.page.get_by_text("The cell as JSON").click()
    expect(seen.page.locator("#cell pre").last).to_contain_text('"num_profiled_steps": 5')
    expect(seen.page.locator("#cell pre").last).not_to_contain_text("not_recorded")


def test_the_table_of_repeats_is_as_wide_as_its_pane(browser: Browser, render: Render) -> None:
    cell = make_cell(device="gpu")
    page = visit(browser, render(*(make_result(cell, repeat=number) for number in (1, 2, 3)))).page
    page.locator("td.heat-cell").first.click()
    expect(page.locator("#cell table caption")).to_have_text("Repeats")
    hidden = page.locator("#cell .repeats").evaluate("(box) => box.scrollWidth - box.clientWidth")
    assert hidden <= 0
