"""Cells: combinations that make no sense are refused; equal cells have one id on every machine, others another."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from bench.registry import FRAMEWORKS, MODELS, ModelSpec
from bench.schema import Cell, Neighbour
from bench.schema.cell import LATER_FIELDS
from factories import make_cell

NEIGHBOUR = Neighbour(
    model="resnet18", phase="infer", batch_size=1, precision="fp32", mode="eager", input_size=224, num_classes=10
)


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
        ({}, {"model": "conv7"}, "model: 'conv7' is unknown; known are conv6, "),
        ({}, {"tenants": 0}, "tenants"),
        ({}, {"tenants": 65}, "tenants"),
        ({}, {"sharing": "mps"}, "sharing: 'mps' is for GPUs"),
        ({}, {"device": "gpu", "num_gpus": 2, "tenants": 2}, "num_gpus: is 1 where a GPU is shared"),
        ({}, {"device": "gpu", "num_gpus": 2, "sharing": "mig"}, "num_gpus: is 1 where a GPU is shared"),
        ({}, {"tenants": 2, "sustain_seconds": 1.0}, "sustain_seconds: steps of several tenants do not run on"),
        ({}, {"neighbour": NEIGHBOUR}, "neighbour: takes 2 tenants or more"),
        (
            {},
            {"tenants": 2, "neighbour": NEIGHBOUR.model_copy(update={"model": "conv7"})},
            "neighbour: model: 'conv7' is unknown",
        ),
        (
            {},
            {"tenants": 2, "neighbour": NEIGHBOUR.model_copy(update={"mode": "graph"})},
            "neighbour: mode: 'graph' is not a mode of pytorch",
        ),
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


DNS_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
# Fields that are younger than version 2, and the value at which a cell is the one that it was without the field.
LATER: dict[str, Any] = {
    "num_profiled_steps": 5,
    "pipelined_seconds": 1.0,
    "sustain_seconds": 0.0,
    "tenants": 1,
    "sharing": "time-slicing",
    "neighbour": None,
}


def test_a_cells_id_is_the_same_in_every_process() -> None:
    # printf '%s' '{"batch_size":64,"device":"cpu",...}' | sha256sum
    expected = "conv6-pytorch-cpu-train-fp32-eager-b64-7890d9fa"
    program = "from factories import make_cell; print(make_cell().cell_id)"
    variables = {**os.environ, "PYTHONHASHSEED": "4711", "PYTHONPATH": str(Path(__file__).parents[3])}
    command = [sys.executable, "-c", program]
    printed = subprocess.run(command, env=variables, capture_output=True, text=True, check=True).stdout
    assert printed.strip() == make_cell().cell_id == expected


def test_every_field_is_in_the_text_that_the_id_is_made_of() -> None:
    later = {"num_profiled_steps": 0, "pipelined_seconds": 0.0, "tenants": 2, "sharing": "mps", "neighbour": NEIGHBOUR}
    cells = (make_cell(device="gpu", **later), make_cell(sustain_seconds=60.0))
    assert set[str]().union(*(json.loads(cell.canonical_json) for cell in cells)) == set(Cell.model_fields)


def test_a_field_that_came_later_changes_no_id_at_its_default() -> None:
    cell = make_cell()
    assert {name: getattr(cell, name) for name in LATER_FIELDS} == LATER
    planned_before = {key: value for key, value in json.loads(cell.to_json()).items() if key not in LATER}
    assert Cell.model_validate(planned_before).cell_id == cell.cell_id
    assert set(json.loads(cell.canonical_json)) == set(planned_before)


@pytest.mark.parametrize(("one", "other"), [(2, 2.0), (-0.0, 0.0), (0, 0.0), (1e9, 10**9)])
def test_equal_numbers_make_equal_ids(one: float, other: float) -> None:
    assert make_cell(min_seconds=one).cell_id == make_cell(min_seconds=other).cell_id


def test_a_longer_name_is_cut_to_a_dns_label(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MODELS, "a" * 53 + "-x", MODELS["conv6"])
    cell_id = make_cell(model="a" * 53 + "-x").cell_id
    assert cell_id[:-9] == "a" * 53  # no '-' before the one that separates the hash
    assert DNS_LABEL.fullmatch(cell_id)


def test_tenants_beside_the_first_run_the_neighbour() -> None:
    cell = make_cell(device="gpu", tenants=3, neighbour=NEIGHBOUR)
    beside = make_cell(device="gpu", model="resnet18", phase="infer", batch_size=1, input_size=224)
    assert [cell.as_tenant(index) for index in range(3)] == [make_cell(device="gpu"), beside, beside]
    assert make_cell(device="gpu", tenants=4, sharing="mps").as_tenant(3) == make_cell(device="gpu")


@pytest.mark.parametrize(
    ("fields", "slug"),
    [
        ({"tenants": 4}, "conv6-pytorch-gpu-train-fp32-eager-b64-x4"),
        ({"tenants": 2, "sharing": "mps"}, "conv6-pytorch-gpu-train-fp32-eager-b64-x2mps"),
        ({"tenants": 1, "sharing": "mig"}, "conv6-pytorch-gpu-train-fp32-eager-b64-x1mig"),
        ({"tenants": 2, "neighbour": NEIGHBOUR}, "conv6-pytorch-gpu-train-fp32-eager-b64-x2-beside"),
    ],
)
def test_an_id_says_how_many_share_and_by_what(fields: dict[str, Any], slug: str) -> None:
    assert make_cell(device="gpu", **fields).slug == slug
