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


def test_models_are_named_by_what_their_size_counts_and_by_their_gpus(collect: Collect) -> None:
    cells = [
        make_cell(model="matmul", phase="infer", batch_size=1, input_size=100, num_classes=None),
        make_cell(model="text-classifier", input_size=128, num_classes=2, framework="jax", mode="compiled"),
        make_cell(device="gpu"),
        make_cell(device="gpu", num_gpus=2),
    ]
    labels = add_labels(summarize_cells(collect(*(make_result(cell) for cell in cells), repeats=1)))["label"]
    assert labels.to_list() == [
        "matmul infer, CPU, batch 1, 100 rows, PyTorch eager",
        "text-classifier train, CPU, batch 64, 128 tokens, JAX compiled",
        "conv6 train, GPU, batch 64, 32 px, PyTorch eager",
        "conv6 train, GPU, batch 64, 32 px, 2 GPUs, PyTorch eager",
    ]


@pytest.mark.parametrize(
    ("cpu_model", "num_threads", "label"),
    [("Xeon", 2, "Xeon, 2 threads"), ("Xeon", 1, "Xeon, 1 thread"), ("Xeon", None, "Xeon"), (None, None, "")],
)
def test_hardware_is_named_by_what_is_known(cpu_model: str | None, num_threads: int | None, label: str) -> None:
    assert label_hardware(cpu_model, num_threads) == label
