"""What cells are called: the same by the command line, which loads no pandas, and in a report."""

import subprocess
import sys
from typing import Any

import pytest

from collector.cell_words import name_cell
from collector.labels import add_labels
from collector.results.summary import summarize_cells
from factories import make_cell
from measured_runs import Collect
from shared_runs import TRAINING

CELLS: list[tuple[dict[str, Any], str]] = [
    ({}, "conv6 train, CPU, batch 64, 32 px, fp32, PyTorch eager"),
    (
        {"framework": "tensorflow", "mode": "graph", "device": "gpu", "num_gpus": 2, "precision": "bf16"},
        "conv6 train, GPU, batch 64, 32 px, bf16, 2 GPUs, TensorFlow graph",
    ),
    (
        {"model": "text-classifier", "input_size": 128, "num_classes": 2, "precision": "bf16"},
        "text-classifier train, CPU, batch 64, 128 tokens, bf16, PyTorch eager",
    ),
    (
        {"device": "gpu", "phase": "infer", "tenants": 4, "sharing": "mps"},
        "conv6 infer, GPU, batch 64, 32 px, 4 tenants by MPS, fp32, PyTorch eager",
    ),
    (
        {"device": "gpu", "tenants": 2, "neighbour": TRAINING.model_copy(update={"num_classes": 100})},
        "conv6 train, GPU, batch 64, 32 px, 2 tenants by time-slicing, "
        "beside conv6 train batch 32 size 32 fp32 eager 100 classes, fp32, PyTorch eager",
    ),
    (
        {"model": "matmul", "phase": "infer", "batch_size": 1, "input_size": 100, "num_classes": None},
        "matmul infer, CPU, batch 1, 100 rows, fp32, PyTorch eager",
    ),
    ({"tenants": 2}, "conv6 train, CPU, batch 64, 32 px, 2 tenants, fp32, PyTorch eager"),
    ({"data_dir": "/data"}, "conv6 train, CPU, batch 64, 32 px, fp32, data of /data, PyTorch eager"),
]


@pytest.mark.parametrize(("fields", "words"), CELLS)
def test_a_cell_is_named_by_what_is_measured_with_what(fields: dict[str, Any], words: str) -> None:
    assert name_cell(make_cell(**fields)) == words


def test_a_report_calls_cells_the_same(collect: Collect) -> None:
    cells = [make_cell(**fields) for fields, _ in CELLS]
    cells += [cell.model_copy(update={"precision": "tf32"}) for cell in cells]  # a report names what varies
    labels = add_labels(summarize_cells(collect(cells=cells, repeats=1)))["label"]
    named = [name.replace("synthetic data, ", "") for name in labels]
    assert named == [name_cell(cell) for cell in cells]


def test_naming_a_cell_loads_no_pandas() -> None:
    program = "import collector.cell_words, sys; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()
    assert "collector.cell_words" in modules
    assert not {"pandas", "numpy"} & set(modules)
