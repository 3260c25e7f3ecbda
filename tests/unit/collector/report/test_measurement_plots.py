"""The plots of what was measured: what charts say of ratios, and which rows they have."""

from typing import Any

import pandas as pd
import pytest

from collector.report.figure import name_panels
from collector.report.plots.marks import plot_ratios, to_spec


def list_data(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of every data set of a chart."""
    return [row for rows in spec["datasets"].values() for row in rows]


@pytest.mark.parametrize(
    ("low", "high", "finding"), [(1.1, 1.3, "slower"), (0.7, 0.9, "faster"), (0.9, 1.3, "no difference shown")]
)
def test_a_ratio_is_called_different_only_where_its_interval_excludes_1(low: float, high: float, finding: str) -> None:
    ratio = {"ratio": [(low + high) / 2], "ratio_low": [low], "ratio_high": [high]}
    pairs = pd.DataFrame({"panel": ["p"], "row": [0], "name": ["a"], **ratio})
    spec = to_spec(plot_ratios(pairs, better="faster", worse="slower", above_is_better=False, of="new / old"))
    assert {row["finding"] for row in list_data(spec) if "finding" in row} == {finding}


def test_a_pair_without_a_ratio_keeps_its_row_and_one_that_is_not_sound_has_a_cross() -> None:
    nan = float("nan")
    pairs = pd.DataFrame(
        {
            "panel": "p",
            "row": range(4),
            "name": ["sound", "unsound", "one repeat", "not compared"],
            "ratio": [2.0, 2.0, 2.0, nan],
            "ratio_low": [1.9, 1.9, nan, nan],
            "ratio_high": [2.1, 2.1, nan, nan],
            "is_sound": [True, False, True, True],
        }
    )
    spec = to_spec(plot_ratios(pairs, better="faster", worse="slower", above_is_better=False, of="new / old"))
    findings = {row["name"]: row["finding"] for row in list_data(spec) if "finding" in row}
    assert findings["one repeat"] == findings["not compared"] == "one repeat: no interval"
    (cross,) = [layer for layer in spec["layer"] if layer["mark"].get("shape") == "cross"]
    assert cross["transform"] == [{"filter": "isValid(datum.ratio) && !datum.is_sound"}]
    (missing,) = [layer for layer in spec["layer"] if layer["encoding"].get("text") == {"value": "not compared"}]
    assert missing["transform"] == [{"filter": "!isValid(datum.ratio)"}]
    assert [row["name"] for row in list_data(spec) if "name" in row and row["ratio"] is None] == ["not compared"]
    assert [row["name"] for row in list_data(spec) if row.get("is_sound") is False] == ["unsound"]


def test_rows_are_split_into_panels_that_say_what_their_rows_share() -> None:
    rows = pd.DataFrame(
        {
            "model": ["conv6", "conv6", "matmul"],
            "phase": "infer",
            "device": ["cpu", "gpu", "gpu"],
            "input_size": [32, 32, 9],
        }
    )
    labels = [
        "conv6 infer, CPU, batch 8, 32 px",
        "conv6 infer, GPU, batch 8, 32 px",
        "matmul infer, GPU, batch 1, 9 rows",
    ]
    named = name_panels(pd.concat([rows, rows.tail(1)]), [*labels, labels[-1]])
    assert list(named[["panel", "rest", "row"]].itertuples(index=False, name=None)) == [
        ("conv6 infer, CPU, 32 px", "batch 8", 0),
        ("conv6 infer, GPU, 32 px", "batch 8", 0),
        ("matmul infer, GPU, 9 rows", "batch 1", 0),
        ("matmul infer, GPU, 9 rows", "batch 1", 1),
    ]
