"""stored_runs: the plans of runs come in the order that was asked for, and one that cannot be read says why."""

from pathlib import Path

from bench.store import Store, run_key
from bench.store.stored_runs import read_runs
from factories import make_run, put_documents


def test_plans_come_in_the_order_asked_for_and_others_with_a_reason(tmp_path: Path) -> None:
    store = Store.open(f"file://{tmp_path}")
    names = [f"run-{number:02}" for number in range(40)]
    for name in names:
        put_documents(store, make_run(run_id=name), [])
    store.put(run_key("copied"), make_run(run_id="run-00").to_json())
    store.put(run_key("damaged"), b"{")
    asked = ["damaged", *reversed(names), "absent", "copied"]

    runs, reasons = read_runs(store, asked)

    assert [run.run_id for run in runs] == list(reversed(names))
    assert list(reasons) == ["damaged", "absent", "copied"]
    assert reasons["damaged"].startswith("no JSON")
    assert reasons["absent"] == "there is none"
    assert reasons["copied"] == "it is of the run 'run-00'"
