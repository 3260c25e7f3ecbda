"""`tenants`, `sharing` and `neighbour` in a matrix file, and what a named neighbour stands for."""

from pathlib import Path
from typing import Any

import pytest

from bench.schema import Neighbour
from matrix_files import catch_error, expand, pick

SHARED = """\
name: shared
axes:
  tenants: [1, 2, 4]
  sharing: [time-slicing, mps]
defaults: {model: conv6, framework: pytorch, device: gpu, phase: infer, batch_size: 4, num_classes: 100}
"""
MIXED = """\
name: mixed
axes:
  neighbour: [null, training, resnet, cyclegan]
defaults: {model: conv6, framework: pytorch, device: gpu, phase: infer, batch_size: 4, num_classes: 100, tenants: 2}
neighbours:
  training: {phase: train, batch_size: 64}
  resnet: {model: resnet18, precision: bf16}
  cyclegan: {model: cyclegan, input_size: 64}
"""
CELL: dict[str, Any] = {"phase": "infer", "batch_size": 4, "precision": "fp32", "mode": "eager"}


def test_tenants_and_sharing_are_axes() -> None:
    expected = [(number, sharing) for number in (1, 2, 4) for sharing in ("time-slicing", "mps")]
    assert pick(expand(SHARED), "tenants", "sharing") == expected


def test_what_a_neighbour_does_not_give_is_the_cells_or_its_models() -> None:
    conv6 = Neighbour(model="conv6", input_size=32, num_classes=100, **CELL | {"phase": "train", "batch_size": 64})
    resnet = Neighbour(model="resnet18", input_size=224, num_classes=100, **CELL | {"precision": "bf16"})
    cyclegan = Neighbour(model="cyclegan", input_size=64, num_classes=None, **CELL)
    assert pick(expand(MIXED), "neighbour") == [(None,), (conv6,), (resnet,), (cyclegan,)]


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("resnet, cyclegan]", "resent]", 3, "expected a name under 'neighbours'; did you mean 'resnet'?"),
        (MIXED.partition("neighbours:\n")[2], "  {}\n", 3, "the matrix defines none; add it there"),
        ("phase: train", "framework: jax", 6, "unknown key; known are model, phase"),
        ("{phase: train, batch_size: 64}", "{}", 6, "found an empty entry"),
        ("phase: train", "mode: graph", 3, "mode: 'graph' is not a mode of pytorch"),
        ("tenants: 2", "tenants: 1", 3, "takes 2 tenants or more"),
    ],
)
def test_a_neighbour_that_cannot_be_is_refused(tmp_path: Path, old: str, new: str, line: int, message: str) -> None:
    assert old in MIXED
    error = catch_error(tmp_path, MIXED.replace(old, new))
    assert message in str(error)
    assert f":{line}" in str(error)
