"""A site: a page for each run and a list of them."""

import re
from dataclasses import replace
from pathlib import Path

from bench.store import Store
from collector.analysis import analyze_run
from collector.facts import state_outcome
from collector.report.page import HOME, SiteRun, find_page, write_index, write_page
from collector.results.load import load_run
from factories import RUN_ID, make_cell, make_failed_result, make_result, make_run, put_documents
from report_pages import HOSTILE


def test_every_link_leads_to_a_file_and_text_is_text(tmp_path: Path) -> None:
    cells = [make_cell(), make_cell(batch_size=1)]
    store, site = Store.open(f"file://{tmp_path}/store"), tmp_path / "site"
    put_documents(store, make_run(cells, repeats=1), [make_result(cells[0]), make_failed_result(cells[1])])
    analysis = analyze_run(load_run(store, RUN_ID))
    write_page(analysis, find_page(site, RUN_ID), home=HOME)
    ok, other = (SiteRun(run_id=name, matrix=HOSTILE, created_at="", outcome=HOSTILE) for name in (RUN_ID, "other"))
    outcome = state_outcome(analysis.collection)
    write_index([replace(ok, outcome=outcome), replace(other, has_page=False)], site)

    paths = list(site.rglob("*.html"))
    assert len(paths) == 2
    for path in paths:
        found = re.findall(r'<[^>]+ (?:href|src)="([^"]*)"', path.read_text())
        links = [link for link in found if not link.startswith(("#", "data:"))]
        assert links
        assert [link for link in links if not (path.parent / link).is_file()] == []
    html = (site / "index.html").read_text()
    assert "1 of 2 planned repeats ended ok, in 2 cells. The others: 1 failed." in html
    assert "<img" not in html
    assert "<script" not in html
