"""The columns of the heat map are what varies in the run: programs and devices, tenants beside them, or what else."""

import math
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from collector.analysis import analyze_run
from collector.report.page_cells import (
    FIELD_TITLES,
    MAX_COLUMNS,
    choose_columns,
    list_page_cells,
    list_unshown_pairs,
)
from factories import RUN_ID, make_cell
from measured_runs import collect_results, make_repeats

SHARED = {"tenants": [1, 2, 4, 8], "sharing": ["time-slicing", "mps"]}


def make_cells(**values: list[Any]) -> pd.DataFrame:
    """Return a cell for each combination of the values; in all other fields they agree."""
    rows = [dict(zip(values, chosen, strict=True)) for chosen in product(*values.values())]
    return pd.DataFrame([dict.fromkeys(FIELD_TITLES, "same") | row for row in rows])


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
    assert choose_columns(make_cells(**values)) == columns


def test_a_pair_that_only_its_own_interval_tells_apart_is_listed_as_not_shown(tmp_path: Path) -> None:
    # Two repeats a side, each exp(0.01) beside their mean: Welch's degrees of freedom are 2, for which
    # p = 1 - t / sqrt(t ** 2 + 2), 0.04 at t = 4.849. Beside another pair it is 0.08.
    spread, shift = math.exp(0.01), math.exp(4.849 * 0.01 * math.sqrt(2))
    results = []
    for phase, factor in (("train", shift), ("infer", 1.0)):
        eager, compiled = (make_cell(phase=phase, mode=mode) for mode in ("eager", "compiled"))
        results += make_repeats(eager, 0.1 / spread, 0.1 * spread)
        results += make_repeats(compiled, 0.1 * factor / spread, 0.1 * factor * spread)
    analysis = analyze_run(collect_results(tmp_path, *results, repeats=2, run_id=RUN_ID))
    cells = list_page_cells(analysis)
    pairs = [sorted(cells.loc[pair, "label"]) for pair in list_unshown_pairs(analysis)]
    assert [["train" in label for label in pair] for pair in pairs] == [[True, True]]
    assert analysis.comparisons["modes"]["p_value"].min() == pytest.approx(0.04, abs=1e-4)
