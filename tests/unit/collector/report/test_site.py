"""A site: a page for each run, a list of them, and the details of each cell as files that the pages link to."""

import json
from pathlib import Path

from bench.store import Store
from collector.analysis import analyze_run
from collector.report.site import SiteRun, describe_run, write_index, write_run_pages
from collector.results.load import load_run
from factories import RUN_ID, make_cell, make_failed_result, make_result, make_run, put_documents
from report_pages import HOSTILE, Page

STEPS = (0.1234567891, 0.2, 0.2)


def write_site(folder: Path) -> Path:
    cells = [make_cell(), make_cell(batch_size=1)]
    store = Store.open(f"file://{folder}/store")
    results = [
        make_result(cells[0], step_seconds=STEPS),
        make_failed_result(cells[1], stderr_tail="line 31"),
    ]
    put_documents(store, make_run(cells, repeats=1), results)
    analysis = analyze_run(load_run(store, RUN_ID))
    site = folder / "site"
    write_run_pages(analysis, site)
    unreadable = SiteRun(
        run_id="other", matrix=HOSTILE, created_at="", outcome=f"cannot be read: {HOSTILE}", address=""
    )
    write_index([describe_run(analysis.collection), unreadable], site)
    return site


def test_every_link_of_the_site_leads_to_a_file(tmp_path: Path) -> None:
    site = write_site(tmp_path)
    for path in site.rglob("*.html"):
        links = [link for link in Page(path.read_text()).links if not link.startswith(("#", "data:"))]
        assert links
        assert [link for link in links if not (path.parent / link).is_file()] == []


def test_the_list_says_how_each_run_ended_and_holds_text_as_text(tmp_path: Path) -> None:
    html = (write_site(tmp_path) / "index.html").read_text()
    assert "1 of 2 planned repeats ended ok, in 2 cells. The others: 1 failed." in html
    assert "img" not in {tag for tag, _ in Page(html).tags}
    assert [text for attrs, text in Page(html).scripts] == []


def test_the_details_of_a_cell_have_every_step_in_full_and_every_column(tmp_path: Path) -> None:
    folder = write_site(tmp_path) / "runs" / RUN_ID / "details"
    ok, failed = (json.loads((folder / f"{make_cell(batch_size=size).cell_id}.json").read_text()) for size in (64, 1))
    assert {row["kind"]: row["seconds"] for row in ok["steps"]}["timed"] == list(STEPS)
    assert (ok["cell"]["batch_size"], ok["repeats"][0]["status"], ok["figures"][0]["num_ok"]) == (64, "ok", 1)
    assert ok["repeats"][0]["peak_rss_bytes"] == 2**30
    assert (failed["steps"], failed["repeats"][0]["stderr_tail"]) == ([], "line 31")
