"""The columns of the heat map are what varies in the run: programs and devices, tenants beside them, or what else."""

from itertools import product
from typing import Any

import pandas as pd
import pytest

from collector.report.page_cells import FIELD_TITLES, MAX_COLUMNS, choose_columns, find_varying

SHARED = {"tenants": [1, 2, 4, 8], "sharing": ["time-slicing", "mps"]}


def make_cells(**values: list[Any]) -> pd.DataFrame:
    """Return a cell for each combination of the values; in all other fields they agree."""
    rows = [dict(zip(values, chosen, strict=True)) for chosen in product(*values.values())]
    return pd.DataFrame([dict.fromkeys(FIELD_TITLES, "same") | row for row in rows])


def choose(cells: pd.DataFrame) -> tuple[str, ...]:
    """Return the columns of the heat map of these cells."""
    return choose_columns(cells, find_varying(cells))


@pytest.mark.parametrize(
    ("values", "columns"),
    [
        ({"framework": ["pytorch", "jax"], "device": ["cpu", "gpu"], "batch_size": [1, 8]}, ("framework", "device")),
        (SHARED, ("tenants", "sharing")),
        ({"framework": ["pytorch", "jax"], **SHARED}, ("framework", "tenants", "sharing")),
        ({"framework": ["pytorch", "tensorflow", "jax"], **SHARED}, ("framework",)),  # 24 columns are too many
        ({"model": ["conv6", "vgg16"], "batch_size": [1, 8, 64]}, ("batch_size",)),
        ({"batch_size": [1, 8], "num_gpus": [1, 2]}, ("num_gpus",)),
        ({"batch_size": list(range(MAX_COLUMNS + 1)), "input_size": [32, 224]}, ("input_size",)),
        ({"model": ["conv6", "vgg16"]}, ()),
    ],
)
def test_columns_are_what_varies(values: dict[str, list[Any]], columns: tuple[str, ...]) -> None:
    assert choose(make_cells(**values)) == columns


def test_how_long_was_measured_tells_only_cells_apart_that_are_otherwise_the_same() -> None:
    assert choose(make_cells(num_steps=[8, 30])) == ("num_steps",)
    each_its_own = make_cells(phase=["train", "infer"]).assign(num_steps=[8, 30])
    assert choose(each_its_own) == ()


def test_a_model_without_classes_does_not_differ_in_them() -> None:
    classes = pd.Series([10, pd.NA], dtype="Int64")
    assert choose(make_cells(model=["conv6", "cyclegan"]).assign(num_classes=classes)) == ()
    assert choose(make_cells(num_classes=[10, 1000])) == ("num_classes",)
