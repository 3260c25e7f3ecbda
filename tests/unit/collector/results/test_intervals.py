"""The columns of a cell's centre and interval."""

import numpy as np
import pytest

from collector.results.cell_repeats import read_measured
from collector.results.frames import list_rows
from collector.results.summary import summarize_cells
from factories import make_environment, make_result
from measured_runs import Collect

SPREADS = {1: (1.0, 1.001, 1.002), 2: (2.0, 2.1, 2.2), 4: (4.0, 4.4, 4.1), 8: (8.0, 8.3, 8.1)}


def test_the_means_of_machines_are_read_back_exactly(collect: Collect) -> None:
    results = [
        make_result(repeat=number, step_seconds=(seconds,) * 3, environment=make_environment(hostname=host))
        for number, (host, seconds) in enumerate((("b", 0.1), ("a", 0.3), ("b", 0.2)), start=1)
    ]
    (row,) = list_rows(summarize_cells(collect(*results)))
    assert read_measured(row).means == {
        "b": pytest.approx(float(np.sqrt(0.02))),
        "a": 0.3,
    }
    assert row["hostnames"] == "a; b"
