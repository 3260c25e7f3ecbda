"""Names of cells for people."""

import pytest

from collector.labels import add_labels, label_hardware
from collector.results.summary import summarize_cells
from factories import make_cell, make_result
from measured_runs import Collect
from shared_runs import TRAINING, make_gpu_cell


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


def test_every_cell_with_tenants_says_so_whatever_the_others_are(collect: Collect) -> None:
    neighbour = TRAINING.model_copy(update={"num_classes": 100})
    cells = [
        make_gpu_cell(tenants=4),
        make_gpu_cell(tenants=4, sharing="mps"),
        make_gpu_cell(sharing="mps"),
        make_gpu_cell(tenants=2, neighbour=neighbour),
        make_cell(tenants=2),
    ]
    collection = collect(make_result(make_gpu_cell()), cells=cells, repeats=1)
    assert add_labels(summarize_cells(collection))["label"].to_list() == [
        "conv6 train, GPU, batch 64, 32 px, 4 tenants by time-slicing, PyTorch eager",
        "conv6 train, GPU, batch 64, 32 px, 4 tenants by MPS, PyTorch eager",
        "conv6 train, GPU, batch 64, 32 px, 1 tenant by MPS, PyTorch eager",
        "conv6 train, GPU, batch 64, 32 px, 2 tenants by time-slicing, "
        "beside conv6 train batch 32 size 32 fp32 eager 100 classes, PyTorch eager",
        "conv6 train, CPU, batch 64, 32 px, 2 tenants, PyTorch eager",
    ]
    (label,) = add_labels(summarize_cells(collect(cells=cells[:1], repeats=1)))["label"]
    assert label == "conv6 train, GPU, batch 64, 32 px, 4 tenants by time-slicing, PyTorch eager"


@pytest.mark.parametrize(
    ("cpu_model", "num_threads", "label"),
    [("Xeon", 2, "Xeon, 2 threads"), ("Xeon", 1, "Xeon, 1 thread"), ("Xeon", None, "Xeon"), (None, None, "")],
)
def test_hardware_is_named_by_what_is_known(cpu_model: str | None, num_threads: int | None, label: str) -> None:
    assert label_hardware(cpu_model, num_threads) == label
