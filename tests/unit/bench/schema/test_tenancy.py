"""Cells with tenants, and the documents by which the tenants of a repeat meet."""

from typing import Any

import pytest
from pydantic import ValidationError

from bench.schema import Neighbour, Tenancy
from factories import make_cell, make_result
from tenancies import make_failed_record, make_record, make_shared_result, make_tenancy

NEIGHBOUR = Neighbour(
    model="resnet18", phase="infer", batch_size=1, precision="fp32", mode="eager", input_size=224, num_classes=10
)


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


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"tenants": 0}, "tenants"),
        ({"tenants": 65}, "tenants"),
        ({"sharing": "mps"}, "sharing: 'mps' is for GPUs"),
        ({"device": "gpu", "num_gpus": 2, "tenants": 2}, "num_gpus: is 1 where a GPU is shared"),
        ({"device": "gpu", "num_gpus": 2, "sharing": "mig"}, "num_gpus: is 1 where a GPU is shared"),
        ({"tenants": 2, "sustain_seconds": 1.0}, "sustain_seconds: steps of several tenants do not run on"),
        ({"neighbour": NEIGHBOUR}, "neighbour: takes 2 tenants or more"),
        (
            {"tenants": 2, "neighbour": NEIGHBOUR.model_copy(update={"model": "conv7"})},
            "neighbour: model: 'conv7' is unknown",
        ),
        (
            {"tenants": 2, "neighbour": NEIGHBOUR.model_copy(update={"mode": "graph"})},
            "neighbour: mode: 'graph' is not a mode of pytorch",
        ),
    ],
)
def test_a_cell_that_cannot_be_shared_so_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        make_cell(**fields)


def test_a_window_set_beforehand_may_have_fewer_steps_than_asked_for() -> None:
    cell = make_cell(tenants=2, num_steps=30)
    assert make_shared_result(cell=cell).cell.num_steps == 30
    with pytest.raises(ValidationError, match="3 values, the cell asks for at least 30"):
        make_result(make_cell(num_steps=30))


@pytest.mark.parametrize(
    "tenancy",
    [
        None,
        make_tenancy(make_record(0)),
        make_tenancy(make_record(0), make_failed_record(1)),
        make_tenancy(window_seconds=None),
    ],
)
def test_a_result_that_says_ok_has_every_tenant(tenancy: Tenancy | None) -> None:
    with pytest.raises(ValidationError, match="has a common window, and each of its tenants ended 'ok'"):
        make_result(make_cell(tenants=2), tenancy=tenancy)
