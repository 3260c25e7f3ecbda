"""A site: a page for each run and a list of them."""

from pathlib import Path

from bench.store import Store
from collector.analysis import analyze_run
from collector.report.page import SiteRun, describe_run, write_index, write_run_pages
from collector.results.load import load_run
from factories import RUN_ID, make_cell, make_failed_result, make_result, make_run, put_documents
from report_pages import HOSTILE, Page


def test_every_link_leads_to_a_file_and_text_is_text(tmp_path: Path) -> None:
    cells = [make_cell(), make_cell(batch_size=1)]
    store, site = Store.open(f"file://{tmp_path}/store"), tmp_path / "site"
    put_documents(store, make_run(cells, repeats=1), [make_result(cells[0]), make_failed_result(cells[1])])
    analysis = analyze_run(load_run(store, RUN_ID))
    write_run_pages(analysis, site)
    other = SiteRun(run_id="other", matrix=HOSTILE, created_at="", outcome=f"cannot be read: {HOSTILE}", address="")
    write_index([describe_run(analysis.collection), other], site)

    paths = list(site.rglob("*.html"))
    assert len(paths) == 2
    for path in paths:
        links = [link for link in Page(path.read_text()).links if not link.startswith(("#", "data:"))]
        assert links
        assert [link for link in links if not (path.parent / link).is_file()] == []
    html = (site / "index.html").read_text()
    assert "1 of 2 planned repeats ended ok, in 2 cells. The others: 1 failed." in html
    assert "img" not in {tag for tag, _ in Page(html).tags}
    assert Page(html).texts["script"] == []
