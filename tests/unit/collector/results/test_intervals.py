"""The columns of a cell's centre and interval."""

import numpy as np
import pandas as pd
import pytest

from bench.schema import Result
from collector.results.cell_repeats import read_machine_means
from collector.results.frames import list_rows
from collector.results.summary import summarize_cells
from factories import make_cell, make_environment, make_result
from measured_runs import Collect, make_repeats

SPREADS = {1: (1.0, 1.001, 1.002), 2: (2.0, 2.1, 2.2), 4: (4.0, 4.4, 4.1), 8: (8.0, 8.3, 8.1)}


def make_cells() -> list[Result]:
    return [
        result for batch, medians in SPREADS.items() for result in make_repeats(make_cell(batch_size=batch), *medians)
    ]


def test_a_cell_with_one_repeat_or_none_has_no_interval(collect: Collect) -> None:
    single = make_result(make_cell(batch_size=16))
    cells = [*(make_cell(batch_size=size) for size in (1, 2, 4, 8, 16, 32))]
    summary = summarize_cells(collect(*make_cells(), single, cells=cells))
    assert summary["interval_method"].isna().to_list() == [False] * 4 + [True] * 2
    assert summary["num_machines"].to_list() == [1] * 5 + [0]
    assert pd.isna(summary["machine_step_seconds"][5])


def test_the_means_of_machines_are_read_back_exactly(collect: Collect) -> None:
    results = [
        make_result(repeat=number, step_seconds=(seconds,) * 3, environment=make_environment(hostname=host))
        for number, (host, seconds) in enumerate((("b", 0.1), ("a", 0.3), ("b", 0.2)), start=1)
    ]
    (row,) = list_rows(summarize_cells(collect(*results)))
    assert read_machine_means(row) == {
        "b": pytest.approx(float(np.sqrt(0.02))),
        "a": 0.3,
    }
    assert row["hostnames"] == "a; b"
