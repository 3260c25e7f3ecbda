"""Summaries of cells, and the lists of repeats that are invalid or failed."""

import math

import pandas as pd
import pytest

from bench.schema import SustainedRun, Verdict
from collector.analysis import analyze_run
from collector.results.hosts import identify_environment
from collector.results.summary import list_invalid, summarize_cells
from collector.tables.cells import make_invalid_table
from factories import (
    make_cell,
    make_environment,
    make_failed_result,
    make_gpu_use,
    make_memory,
    make_result,
    make_validity,
)
from measured_runs import Collect, make_repeats


def test_a_cell_is_summarised_over_its_ok_repeats(collect: Collect) -> None:
    cell = make_cell(batch_size=10)
    collection = collect(
        make_result(cell, repeat=1, step_seconds=(1.0, 2.0, 3.0), memory=make_memory(peak_rss_bytes=5)),
        make_result(cell, repeat=2, step_seconds=(4.0, 5.0, 9.0), memory=make_memory(peak_rss_bytes=7)),
        make_failed_result(cell, repeat=3),
    )
    (row,) = summarize_cells(collection).to_dict("records")
    assert row["center_step_seconds"] == pytest.approx(math.sqrt(10))  # of the medians 2 and 5
    assert (row["q1_step_seconds"], row["q3_step_seconds"]) == (2.25, 4.75)  # of 1 2 3 4 5 9
    assert row["throughput_samples_per_s"] == pytest.approx(10 / math.sqrt(10))  # the batch over the step time
    assert row["window_samples_per_s"] == pytest.approx(math.sqrt(30 / 6 * 30 / 18))  # three steps in 6 s, and in 18
    assert row["peak_rss_bytes"] == 7
    assert row["steady_seconds"] == 12.0  # of the windows 6 and 18
    assert tuple(row[name] for name in ("num_planned", "num_ok", "num_steady", "num_steps_taken")) == (3, 2, 2, 6)
    # The logs' standard deviation is log(5 / 2) / sqrt(2); Student's t at 1 degree of freedom and 97.5 % is 12.70620.
    half_width = 12.70620 * math.log(2.5) / 2
    interval = (row["interval_low_seconds"], row["interval_high_seconds"])
    assert interval == pytest.approx(
        (math.sqrt(10) * math.exp(-half_width), math.sqrt(10) * math.exp(half_width)), 1e-5
    )


def test_a_cell_without_an_ok_repeat_keeps_its_row_without_figures(collect: Collect) -> None:
    summary = summarize_cells(collect(make_failed_result(status="oom"), repeats=2))
    assert list(summary[["num_ok", "num_planned"]].itertuples(index=False, name=None)) == [(0, 2)]
    assert summary["center_step_seconds"].isna().all()


def test_one_repeat_has_no_interval_and_says_why(collect: Collect) -> None:
    (row,) = summarize_cells(collect(make_result(), repeats=1)).to_dict("records")
    assert pd.isna(row["interval_low_seconds"])
    assert row["note"] == "one repeat counts: no interval"


def test_different_environments_are_not_summarised_together(collect: Collect) -> None:
    other = make_environment(num_threads=1)
    results = [
        *make_repeats(make_cell(), 1.0, 1.0),
        make_result(repeat=3, step_seconds=(9.0, 9.0, 9.0), environment=other),
    ]
    summary = summarize_cells(collect(*results))
    assert summary["center_step_seconds"].to_list() == [1.0, 9.0]
    assert summary["num_ok"].to_list() == [2, 1]
    assert summary["environment_id"].to_list() == [
        identify_environment(make_environment()),
        identify_environment(other),
    ]
    assert all("one of 2" in note for note in summary["note"])


def test_percentiles_appear_when_there_are_steps_enough(collect: Collect) -> None:
    cell = make_cell(phase="infer")
    drifting = make_validity("not-steady", "noisy")
    few = summarize_cells(collect(make_result(cell, step_seconds=range(1, 20), validity=drifting), repeats=1))
    result = make_result(cell, step_seconds=range(1, 102), attempt="a0", validity=drifting)
    many = summarize_cells(collect(result, repeats=1))
    assert few[["p95_step_seconds", "p99_step_seconds"]].isna().all(axis=None)
    assert many[["p95_step_seconds", "p99_step_seconds"]].iloc[0].to_list() == pytest.approx([96.0, 100.0])


@pytest.mark.parametrize(
    ("verdict", "center", "num_counted", "note"),
    [
        *((name, math.sqrt(3), 2, "figures from 2 of 3 ok") for name in ("contaminated", "throttled", "too-short")),
        *((name, 3.0, 3, "repeats disagree: ") for name in ("noisy", "not-steady")),
    ],
)
def test_a_repeat_is_left_out_for_its_conditions_and_never_for_its_outcome(
    collect: Collect, verdict: Verdict, center: float, num_counted: int, note: str
) -> None:
    results = make_repeats(make_cell(), 1.0, 3.0, 9.0)
    results[2] = make_repeats(make_cell(), 1.0, 3.0, 9.0, validity=make_validity(verdict))[2]
    (row,) = summarize_cells(collect(*results)).to_dict("records")
    assert row["center_step_seconds"] == pytest.approx(center)
    counts = tuple(row[name] for name in ("num_ok", "num_valid", "num_counted", "faults"))
    assert counts == (3, 2, num_counted, f"1 {verdict}")
    assert row["note"].startswith(note)


def test_without_a_valid_repeat_figures_come_from_the_ok_ones_and_the_row_says_so(collect: Collect) -> None:
    verdicts: tuple[Verdict, ...] = ("throttled", "too-short", "too-short")
    results = [
        make_result(repeat=number, step_seconds=(seconds,) * 3, validity=make_validity(verdict))
        for number, seconds, verdict in zip((1, 2, 3), (1.0, 3.0, 9.0), verdicts, strict=True)
    ]
    (row,) = summarize_cells(collect(*results)).to_dict("records")
    assert row["center_step_seconds"] == pytest.approx(3.0)
    assert (row["num_valid"], row["faults"]) == (0, "2 too-short, 1 throttled")
    assert row["note"].startswith("no repeat under sound conditions: figures from all 3 ok")


@pytest.mark.parametrize(("slowest", "expected"), [(1511, False), (1510, True)])
def test_repeats_whose_clocks_differ_by_a_twentieth_are_named(collect: Collect, slowest: int, expected: bool) -> None:
    # 95% of 1590 MHz are 1510.5 MHz.
    cell = make_cell(device="gpu")
    clocks = enumerate((1590, slowest, 1580), start=1)
    results = [
        make_result(cell, repeat=repeat, gpu_use=(make_gpu_use(sm_clock_mhz=(clock,) * 3),)) for repeat, clock in clocks
    ]
    (row,) = summarize_cells(collect(*results)).to_dict("records")
    assert row["gpu_sm_clock_spread"] == pytest.approx(1 - slowest / 1590)
    assert row["note"] == ("SM clocks of the repeats differ by 5 %" if expected else "")


def test_a_speed_that_most_repeats_never_reached_flat_has_no_time_of_settling(collect: Collect) -> None:
    for flat, expected in (((20.0, None, None), None), ((20.0, 30.0, None), 30.0)):
        results = [
            make_result(
                repeat=number,
                sustained=SustainedRun(window_step_seconds=(0.1, 0.1), seconds=60.0, flat_after_seconds=seconds),
            )
            for number, seconds in enumerate(flat, start=1)
        ]
        (row,) = summarize_cells(collect(*results)).to_dict("records")
        assert (None if pd.isna(row["flat_after_seconds"]) else row["flat_after_seconds"]) == expected


def test_repeats_that_are_not_valid_are_listed_with_their_reasons_and_whether_they_count(collect: Collect) -> None:
    other = make_cell(batch_size=1)
    results = [
        make_result(repeat=1),
        make_result(repeat=2, validity=make_validity("throttled", "noisy")),
        make_result(repeat=3, validity=make_validity("not-steady")),
        make_result(other, repeat=1, validity=make_validity("too-short")),
    ]
    collection = collect(*results)
    rows = list_invalid(collection)
    names = ["repeat", "verdict", "verdict_reasons", "counts"]
    assert list(rows[names].itertuples(index=False, name=None)) == [
        (2, "throttled", "made up to be throttled; made up to be noisy", "no"),
        (3, "not-steady", "made up to be not-steady", "yes"),
        (1, "too-short", "made up to be too-short", "for lack of sound ones"),
    ]
    assert [row[1:3] for row in make_invalid_table(analyze_run(collection)).format_rows()] == [("2", "throttled")]
