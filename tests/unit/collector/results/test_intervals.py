"""The columns of a cell's centre and interval, moderated ones too."""

import numpy as np
import pandas as pd
import pytest

from bench.schema import Result
from collector.moderation import moderate_estimates
from collector.results.frames import list_rows
from collector.results.intervals import read_estimate, read_machine_means
from collector.results.summary import summarize_cells
from collector.statistics import estimate_center
from factories import make_cell, make_environment, make_result
from measured_runs import Collect, make_repeats
from shared_runs import make_tenants_result

SPREADS = {1: (1.0, 1.001, 1.002), 2: (2.0, 2.1, 2.2), 4: (4.0, 4.4, 4.1), 8: (8.0, 8.3, 8.1)}


def make_cells() -> list[Result]:
    return [
        result for batch, medians in SPREADS.items() for result in make_repeats(make_cell(batch_size=batch), *medians)
    ]


def test_without_being_asked_for_intervals_are_not_moderated(collect: Collect) -> None:
    summary = summarize_cells(collect(*make_cells()))
    estimates = [estimate_center(list(medians)) for medians in SPREADS.values()]
    assert summary["log_standard_error"].to_list() == [e.log_standard_error for e in estimates]
    assert set(summary["interval_method"]) == {"Student's t, 3 repeats"}


def test_moderated_intervals_are_those_of_the_runs_cells_together(collect: Collect) -> None:
    summary = summarize_cells(collect(*make_cells()), moderated=True)
    moderated = moderate_estimates([estimate_center(list(medians)) for medians in SPREADS.values()])
    intervals = summary[["interval_low_seconds", "interval_high_seconds"]].itertuples(index=False, name=None)
    assert list(intervals) == [e.interval for e in moderated]
    assert [read_estimate(row) for row in list_rows(summary)] == moderated
    assert set(summary["interval_method"]) == {"moderated Student's t, 3 repeats"}


def test_machines_and_repeats_are_moderated_apart(collect: Collect) -> None:
    spread = [
        make_result(
            make_cell(batch_size=16),
            repeat=number,
            step_seconds=(seconds,) * 3,
            environment=make_environment(hostname=f"bench-{number}"),
        )
        for number, seconds in enumerate((1.0, 1.5, 2.0), start=1)
    ]
    alone = summarize_cells(collect(*make_cells()), moderated=True)
    among = summarize_cells(collect(*make_cells(), *spread), moderated=True)
    assert among["log_standard_error"].to_list()[:4] == alone["log_standard_error"].to_list()
    assert among["interval_method"].to_list()[4] == "Student's t, 3 machines"


def test_cells_that_share_their_device_are_moderated_apart(collect: Collect) -> None:
    shared = [
        make_tenants_result(make_cell(batch_size=batch, tenants=2), [seconds] * 3, [seconds] * 3, repeat=number)
        for batch in (1, 2, 4)
        for number, seconds in enumerate((0.1, 0.15, 0.2 + 0.1 * batch), start=1)
    ]
    alone = summarize_cells(collect(*make_cells()), moderated=True)
    among = summarize_cells(collect(*make_cells(), *shared), moderated=True)
    assert among["log_standard_error"].to_list()[:4] == alone["log_standard_error"].to_list()
    assert set(among["interval_method"]) == {"moderated Student's t, 3 repeats"}


def test_a_cell_with_one_repeat_or_none_has_no_interval_moderated_or_not(collect: Collect) -> None:
    single = make_result(make_cell(batch_size=16))
    cells = [*(make_cell(batch_size=size) for size in (1, 2, 4, 8, 16, 32))]
    summary = summarize_cells(collect(*make_cells(), single, cells=cells), moderated=True)
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
