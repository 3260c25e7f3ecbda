"""No figure of a published run changes unnoticed: numbers to 1e-9, ids and verdicts exactly."""

import json
from pathlib import Path

import figures
import pytest

from bench.schema import Cell

RUNS = figures.list_runs()
NUM_RUNS, NUM_DOCUMENTS = 26 + 5, 605


def compare(name: str, text: str) -> None:
    expected = (figures.FOLDER / name).read_text(encoding="utf-8").splitlines()
    actual = text.splitlines()
    pairs = [(figures.read_line(one), figures.read_line(other)) for one, other in zip(actual, expected, strict=False)]
    wrong = [
        f"{line}\n  was {before}"
        for line, before, (own, held) in zip(actual, expected, pairs, strict=False)
        if own[0] != held[0] or own[1] != pytest.approx(held[1], rel=1e-9, abs=1e-300)
    ]
    assert wrong[:5] == []
    assert len(actual) == len(expected)


@pytest.mark.parametrize(("store", "run_id"), RUNS, ids=[figures.name_file(*run) for run in RUNS])
def test_the_figures_of_a_run_are_those_that_are_held(store: Path, run_id: str) -> None:
    compare(figures.name_file(store, run_id), figures.write_rows(figures.compute_figures(store, run_id)))


def test_what_several_runs_say_together_is_what_is_held() -> None:
    joint = set()
    for name, tables in figures.compute_joint_figures():
        compare(name, figures.write_rows(tables))
        joint.add(name)
    assert {path.name for path in figures.FOLDER.glob("*.csv")} == {figures.name_file(*run) for run in RUNS} | joint
    assert len(RUNS) == NUM_RUNS


def test_every_published_document_counts_and_keeps_its_cell_id() -> None:
    published = [(store, run_id) for store, run_id in RUNS if figures.PLACES[0] in store.parents]
    paths = [path for store, run_id in published for path in (store / "runs" / run_id).glob("results/*/*.json")]
    assert len(paths) + len(published) == NUM_DOCUMENTS
    for path in paths:
        document = json.loads(path.read_bytes())
        assert Cell.model_validate_json(json.dumps(document["cell"])).cell_id == document["cell_id"] == path.parent.name
    for store, run_id in published:
        assert figures.load(store, run_id).skipped == ()
