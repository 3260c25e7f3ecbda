"""What changed since the last run of a matrix: the same that `benchmatrix compare` says of the two."""

from dataclasses import replace
from pathlib import Path

from bench.store import Store
from collector.analysis import analyze_run
from collector.report.page import make_page
from collector.results.load import load_run
from collector.versus.comparison import compare_with_last
from two_runs import EVEN, INFER, TRAIN, compare_runs, put_run, scale


def test_a_run_is_compared_with_the_newest_before_it_as_compare_does(tmp_path: Path) -> None:
    put_run(tmp_path, "oldest", {TRAIN: EVEN, INFER: EVEN})
    put_run(tmp_path, "former", {TRAIN: EVEN, INFER: EVEN}, day=1)
    put_run(tmp_path, "this", {TRAIN: scale(EVEN, 1.5), INFER: EVEN}, day=2)
    put_run(tmp_path, "later", {TRAIN: EVEN, INFER: EVEN}, day=3)
    store = Store.open(f"file://{tmp_path}")
    collection = load_run(store, "this")
    since = compare_with_last(store, collection)
    assert since == compare_runs(tmp_path, "former", "this")
    html = make_page(replace(analyze_run(collection), since=since))
    assert 'Since the last run, <a href="#since">former</a>: 1 slower, 1 ' in html
    assert "<code>benchmatrix compare former this</code>" in html
    assert '<details id="since">' in html


def test_nothing_is_said_where_no_run_is_before_it_or_none_has_its_cells(tmp_path: Path) -> None:
    put_run(tmp_path, "first", {TRAIN: EVEN})
    put_run(tmp_path, "other-cells", {INFER: EVEN}, day=1)
    store = Store.open(f"file://{tmp_path}")
    assert compare_with_last(store, load_run(store, "first")) is None
    assert compare_with_last(store, load_run(store, "other-cells")) is None
