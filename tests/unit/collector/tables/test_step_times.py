"""The tables of step times and latencies."""

import pytest

from bench.schema import PipelinedWindow, Samples
from collector.analysis import analyze_run
from collector.tables.cells import describe_validity, make_inference_table, make_training_table
from factories import make_cell, make_result
from measured_runs import Collect


def test_training_has_step_times_and_inference_has_latencies(collect: Collect) -> None:
    cells = [make_cell(), make_cell(phase="infer")]
    analysis = analyze_run(collect(*(make_result(cell) for cell in cells), repeats=1))
    training, inference = make_training_table(analysis), make_inference_table(analysis)
    assert training is not None
    assert inference is not None
    assert [name for name in training.headings if "time" in name and "steps" not in name] == ["step time, ms"]
    assert [name for name in inference.headings if name.startswith(("step time", "p9"))] == [
        "step time, ms",
        "p95, ms",
        "p99, ms",
    ]


@pytest.mark.parametrize(
    ("num_ok", "num_sound", "verdicts", "text"),
    [
        (3, 3, "", "valid"),
        (3, 3, "2 not-steady", "3 of 3 count; 2 not-steady"),
        (3, 2, "1 throttled, 1 noisy", "2 of 3 count; 1 throttled, 1 noisy"),
        (2, 0, "2 throttled", "none of 2 sound; 2 throttled"),
        (0, 0, "", "–"),
    ],
)
def test_the_verdict_of_a_row_says_how_many_count(num_ok: int, num_sound: int, verdicts: str, text: str) -> None:
    assert describe_validity(num_ok, num_sound, verdicts) == text


def test_pipelined_steps_are_shown_where_they_differ_by_more_than_two_percent(collect: Collect) -> None:
    # Steps of 100 ms, 64 samples each.
    alike, faster = (
        analyze_run(collect(make_result(attempt=name, pipelined=PipelinedWindow(num_steps=100, seconds=s)), repeats=1))
        for name, s in (("a1", 9.81), ("a0", 8.0))
    )
    table, other = make_training_table(faster), make_training_table(alike)
    assert table is not None
    assert other is not None
    shown = dict(zip(table.headings, table.format_rows()[0], strict=True))
    assert (shown["step time, ms"], shown["pipelined step, ms"]) == ("100.0", "80.00")
    assert (shown["samples/s"], shown["pipelined, samples/s"]) == ("640.0", "800.0")
    assert "one synchronisation at the end" in table.remark
    assert not any("pipelined" in heading for heading in other.headings)
    assert other.remark == ""


def test_the_share_of_time_spent_waiting_for_data_is_shown_where_it_is_known(collect: Collect) -> None:
    samples = Samples(
        warmup_step_seconds=(0.2, 0.1),
        step_seconds=(0.1, 0.1, 0.1),
        device_step_seconds=None,
        reached_steady=True,
        data_wait_seconds=(0.0, 0.015, 0.0),
        max_queued_batches=2,
    )
    table = make_training_table(analyze_run(collect(make_result(samples=samples), repeats=1)))
    assert table is not None
    shown = dict(zip(table.headings, table.format_rows()[0], strict=True))
    assert shown["waiting for data, %"] == "5.00"
