"""Cells: combinations that make no sense are refused, those at the bounds are accepted."""

from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from bench.registry import FRAMEWORKS, MODELS, ModelSpec
from factories import make_cell


def make_spec(**overrides: Any) -> ModelSpec:
    return replace(MODELS["conv6"], **({"data": None} | overrides))


@pytest.mark.parametrize(
    ("spec", "fields", "message"),
    [
        ({}, {"num_classes": None}, "num_classes: tiny is a classifier and needs a number of classes"),
        ({"num_classes": None}, {"num_classes": 10}, "num_classes: tiny has no classes; leave it out or give null"),
        ({"phases": ("infer",)}, {"phase": "train"}, "phase: 'train' makes no sense for tiny; it has infer"),
        ({"min_input_size": 33}, {}, r"input_size: 32 does not fit tiny: at least 33 \["),
        ({"input_size_multiple": 5}, {}, "input_size: 32 does not fit tiny: at least 8 and a multiple of 5"),
        ({}, {"data_dir": "/data"}, "data_dir: tiny runs on synthetic data only; leave it out"),
        ({}, {"num_gpus": 2}, "num_gpus: is 1 where device is 'cpu'"),
        ({}, {"device": "gpu", "num_gpus": 3}, "batch_size: 64 cannot be shared evenly by 3 GPUs"),
        ({}, {"mode": "graph"}, "mode: 'graph' is not a mode of pytorch; it has eager, compiled"),
        ({}, {"framework": "tensorflow", "mode": "jit"}, "Input should be 'eager', 'graph', 'unfused', 'fused-"),
        (
            {},
            {"framework": "tensorflow", "mode": "fused-norm"},
            "mode: 'fused-norm' changes batch norms, and tiny has none; take 'graph'",
        ),
        ({}, {"framework": "jax"}, "mode: 'eager' is not a mode of jax; it has compiled"),
    ],
)
def test_a_cell_that_makes_no_sense_is_refused(
    spec: dict[str, Any], fields: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MODELS, "tiny", make_spec(**spec))
    with pytest.raises(ValidationError, match=message):
        make_cell(**({"model": "tiny"} | fields))


def test_a_device_that_a_framework_lacks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FRAMEWORKS, "pytorch", replace(FRAMEWORKS["pytorch"], devices=("cpu",)))
    with pytest.raises(ValidationError, match="device: pytorch has no 'gpu'; it has cpu"):
        make_cell(device="gpu")


def test_an_unknown_model_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ValidationError, match=r"model: 'conv7' is unknown; known are conv6, "):
        make_cell(model="conv7")
