"""The cells of a run stand in one order in every table and in the overview, whatever the order of the plan is."""

from itertools import permutations

import pandas as pd
import pytest

from bench.schema import Cell, LeftOutCell
from bench.store import Store
from collector.analysis import Analysis, analyze_run
from collector.grid import make_grid
from collector.labels import rank
from collector.results.load import load_run
from collector.tables.cells import make_training_table
from factories import make_cell, make_run, put_documents
from measured_runs import TENSORFLOW, make_spread

GRAPH = {"framework": "tensorflow", "mode": "graph"}
WORKS = (
    {"model": "vgg16", "phase": "infer", "input_size": 32},
    {"model": "vgg16", "phase": "train", "input_size": 32, "batch_size": 64},
    {"model": "conv6", "phase": "train", "batch_size": 64},
    {"model": "conv6", "phase": "train", "batch_size": 8},
    {"model": "vgg16", "phase": "train", "input_size": 32, "batch_size": 8},
)


def make_cells(*, is_turned: bool) -> list[Cell]:
    """Return PyTorch and TensorFlow on each of the works, TensorFlow first where `is_turned`."""
    programs = [GRAPH, {}] if is_turned else [{}, GRAPH]
    return [make_cell(**work, **program) for program in programs for work in WORKS]


def analyse(store: Store, cells: list[Cell]) -> Analysis:
    """Return the analysis of a run of these cells, and one that was left out."""
    results = [
        result
        for cell in cells
        for result in make_spread(cell, 0.1, *([TENSORFLOW] if cell.framework == "tensorflow" else []))
    ]
    left_out = LeftOutCell(cell=make_cell(model="resnet18", phase="infer", **GRAPH), reason="no room")
    run = make_run(cells, repeats=3, left_out=[left_out])
    put_documents(store, run, results)
    return analyze_run(load_run(store, run.run_id))


@pytest.mark.parametrize("is_turned", [False, True])
def test_the_tables_the_plan_and_the_overview_have_one_order(
    is_turned: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    store = Store.open(f"file://{tmp_path_factory.mktemp('store')}")
    analysis = analyse(store, make_cells(is_turned=is_turned))
    assert make_training_table(analysis).rows["framework"].tolist()[:2] == ["pytorch", "tensorflow"]
    grid = make_grid(analysis)
    assert [*grid.works] == [
        "vgg16 train, batch 8",
        "vgg16 train, batch 64",
        "vgg16 infer, batch 64",
        "conv6 train, batch 8",
        "conv6 train, batch 64",
        "resnet18 infer, batch 64",
    ]
    assert grid.programs == ("PyTorch eager", "TensorFlow graph")


def test_programs_have_the_order_of_the_tool_and_models_that_of_the_plan() -> None:
    for modes in permutations(["compiled", "graph", "eager"]):
        places = rank("mode", pd.Series(modes))
        assert sorted(modes, key=dict(zip(modes, places, strict=True)).__getitem__) == ["eager", "graph", "compiled"]
    assert rank("model", pd.Series(["vgg16", "conv6", "vgg16"])).tolist() == [0, 1, 0]
    assert rank("num_classes", pd.Series([1000, None, 10])).tolist() == [1, 2, 0]
