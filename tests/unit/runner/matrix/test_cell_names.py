"""What `render` calls a cell."""

from typing import Any

import pytest

from factories import make_cell
from runner.matrix.cell_names import describe_cell


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "conv6 train, CPU, batch 64, size 32, fp32, PyTorch eager"),
        (
            {"framework": "tensorflow", "mode": "graph", "device": "gpu", "num_gpus": 2, "precision": "bf16"},
            "conv6 train, 2 GPUs, batch 64, size 32, bf16, TensorFlow graph",
        ),
        (
            {"device": "gpu", "phase": "infer", "tenants": 4, "sharing": "mps"},
            "conv6 infer, GPU, batch 64, size 32, fp32, PyTorch eager, 4 tenants by mps",
        ),
        ({"tenants": 2}, "conv6 train, CPU, batch 64, size 32, fp32, PyTorch eager, 2 tenants"),
        ({"data_dir": "/data"}, "conv6 train, CPU, batch 64, size 32, fp32, PyTorch eager, data of /data"),
    ],
)
def test_a_cell_is_named_by_what_is_measured_with_what(fields: dict[str, Any], words: str) -> None:
    assert describe_cell(make_cell(**fields)) == words
