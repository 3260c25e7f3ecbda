"""The plots of what was measured: what charts say of ratios and step times, and which rows they have."""

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from collector.report.figure import name_panels
from collector.report.plots.measurements import (
    MAX_CIRCLES,
    plot_durations,
    plot_ratios,
    plot_step_times,
)
from collector.report.plots.style import AnyChart, to_spec
from collector.tables.durations import DURATION_TITLES


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


@pytest.mark.parametrize(("low", "num_rules"), [(0.2, 1), (float("nan"), 0)])
def test_step_times_are_drawn_in_ms_and_a_missing_interval_is_not_drawn(low: float, num_rules: int) -> None:
    rows = pd.DataFrame(
        {
            "cell_id": ["a"],
            "workload": ["conv6 train"],
            "num_sound": [1],
            "variant": ["PyTorch eager"],
            "framework": ["pytorch"],
            "center_step_seconds": [0.25],
            "interval_low_seconds": [low],
            "interval_high_seconds": [low + 0.1],
        }
    )
    repeats = rows[["cell_id", "workload", "variant", "framework", "center_step_seconds"]].assign(repeat=1)
    spec = to_spec(plot_step_times(rows, repeats))
    assert {row["median"] for row in list_data(spec) if "median" in row} == {250.0}
    assert sum(layer["mark"]["type"] == "rule" for layer in spec["layer"]) == num_rules


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


NUM_MANY = 6000
MANY_ROWS = pd.DataFrame(
    {
        "name": [f"row {number}" for number in range(NUM_MANY)],
        "row": range(NUM_MANY),
        "cell_id": [f"cell-{number}" for number in range(NUM_MANY)],
        "workload": "conv6 train",
        "panel": "conv6 train",
        "rest": [f"row {number}" for number in range(NUM_MANY)],
        "num_sound": 1,
        "ratio": 1.0,
        "ratio_low": 0.9,
        "ratio_high": 1.1,
        "label": [f"row {number}" for number in range(NUM_MANY)],
        **dict.fromkeys(DURATION_TITLES, 1.0),
        "variant": [f"row {number}" for number in range(NUM_MANY)],
        "framework": "pytorch",
        "center_step_seconds": 0.1,
        "interval_low_seconds": 0.09,
        "interval_high_seconds": 0.11,
        "repeat": 1,
    }
)


@pytest.mark.parametrize(
    "plot",
    [
        lambda rows: plot_ratios(rows, better="faster", worse="slower", above_is_better=True, of="old / new"),
        plot_durations,
        lambda rows: plot_step_times(rows, rows),
    ],
    ids=["ratios", "phases", "step times"],
)
def test_a_plot_of_more_rows_than_altair_allows_is_drawn(plot: Callable[[pd.DataFrame], AnyChart]) -> None:
    assert len(list_data(to_spec(plot(MANY_ROWS)))) >= NUM_MANY


def test_rows_are_numbered_in_their_panels_and_say_of_which_cell_they_are() -> None:
    rows = MANY_ROWS.head(3).assign(workload=["conv6 train", "vgg16 train", "conv6 train"], num_sound=[1, 0, 1])
    repeats = rows[["cell_id", "workload", "variant", "framework", "center_step_seconds", "repeat"]]
    names = [row for row in list_data(to_spec(plot_step_times(rows, repeats))) if "name" in row]
    found = {(row["panel"], row["row"], row["cell_id"], row["name"]) for row in names}
    assert found == {
        ("conv6 train", 0, "cell-0", "row 0"),
        ("conv6 train", 1, "cell-2", "row 2"),
        ("vgg16 train", 0, "cell-1", "row 1 (no repeat under sound conditions)"),
    }


def test_of_many_repeats_a_row_of_step_times_shows_the_fastest_and_the_slowest_among_few_circles() -> None:
    rows = MANY_ROWS.head(1)
    repeats = pd.DataFrame(
        {
            "cell_id": "cell-0",
            "workload": "conv6 train",
            "variant": "row 0",
            "framework": "pytorch",
            "repeat": range(1, NUM_MANY + 1),
            "center_step_seconds": [number / 1000 for number in range(1, NUM_MANY + 1)],
        }
    )
    circles = [row["median"] for row in list_data(to_spec(plot_step_times(rows, repeats))) if "repeat" in row]
    assert len(circles) == MAX_CIRCLES
    assert (min(circles), max(circles)) == (1.0, float(NUM_MANY))
