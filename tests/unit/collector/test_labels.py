"""Names of cells for people."""

import pytest

from collector.labels import add_labels, label_hardware
from collector.results.summary import summarize_cells
from factories import make_cell, make_result
from measured_runs import Collect


def test_labels_tell_cells_apart_by_what_varies(collect: Collect) -> None:
    cells = [make_cell(), make_cell(seed=1), make_cell(num_steps=2)]
    labels = add_labels(summarize_cells(collect(*(make_result(cell) for cell in cells), repeats=1)))["label"]
    assert labels[1] == "conv6 train, CPU, batch 64, 32 px, seed 1, 1 steps, PyTorch eager"
    assert labels.nunique() == 3


def test_how_long_was_measured_is_named_only_where_it_differs_for_the_same_work(collect: Collect) -> None:
    cells = [make_cell(num_steps=1), make_cell(device="gpu", num_steps=3), make_cell(phase="infer", num_steps=2)]
    frame = summarize_cells(collect(*(make_result(cell) for cell in cells), repeats=1))
    assert not [label for label in add_labels(frame)["label"] if "steps" in label]
    tensorflow = make_cell(framework="tensorflow", mode="graph", num_steps=2)
    frame = summarize_cells(collect(*(make_result(cell) for cell in [*cells, tensorflow]), repeats=1))
    assert "conv6 train, CPU, batch 64, 32 px, 1 steps, PyTorch eager" in set(add_labels(frame)["label"])
    assert "conv6 train, CPU, batch 64, 32 px, 2 steps, TensorFlow graph" in set(add_labels(frame)["label"])


@pytest.mark.parametrize(
    ("cpu_model", "num_threads", "label"),
    [("Xeon", 2, "Xeon, 2 threads"), ("Xeon", 1, "Xeon, 1 thread"), ("Xeon", None, "Xeon"), (None, None, "")],
)
def test_hardware_is_named_by_what_is_known(cpu_model: str | None, num_threads: int | None, label: str) -> None:
    assert label_hardware(cpu_model, num_threads) == label
