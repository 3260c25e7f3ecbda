from functools import partial

import numpy as np
import pandas as pd
import pytest

from collector.labels import add_labels
from collector.results.identity import identify_environment
from collector.tables.presentation import present_step_times, summarize_for_terminal
from collector.tables.summary import list_failures, list_invalid, summarize_cells
from factories import (
    make_cell,
    make_environment,
    make_failed_result,
    make_gpu_use,
    make_memory,
    make_phases,
    make_result,
    make_roofline,
    make_validity,
)
from measured_runs import collect_results, make_repeats


@pytest.fixture
def collect(tmp_path):
    return partial(collect_results, tmp_path)


def test_a_cell_is_summarised_over_its_ok_repeats(collect):
    cell = make_cell(batch_size=10)
    collection = collect(
        make_result(cell, repeat=1, step_seconds=(1.0, 2.0, 3.0), memory=make_memory(peak_rss_bytes=5)),
        make_result(cell, repeat=2, step_seconds=(4.0, 5.0, 9.0), memory=make_memory(peak_rss_bytes=7)),
        make_failed_result(cell, repeat=3),
    )
    (row,) = summarize_cells(collection).to_dict("records")
    assert 3.5 == row["median_step_seconds"]  # of the medians 2 and 5
    assert (2.25, 4.75) == (row["q1_step_seconds"], row["q3_step_seconds"])  # of 1 2 3 4 5 9
    assert (10 * 3 / 6 + 10 * 3 / 18) / 2 == pytest.approx(row["throughput_samples_per_s"])
    assert 7 == row["peak_rss_bytes"]
    assert 12.0 == row["steady_seconds"]  # of the windows 6 and 18
    assert (3, 2, 2, 6) == tuple(row[name] for name in ("num_planned", "num_ok", "num_steady", "num_steps_taken"))
    assert row["interval_low_seconds"] < 3.5 < row["interval_high_seconds"]


def test_phases_are_medians_of_the_repeats(collect):
    results = [
        make_result(repeat=number, phases=make_phases((0.1,) * 3, (0.2, 0.1), import_seconds=seconds))
        for number, seconds in enumerate((1.0, 9.0, 2.0), start=1)
    ]
    assert [2.0] == summarize_cells(collect(*results))["import_seconds"].to_list()


def test_a_cell_without_an_ok_repeat_keeps_its_row_without_figures(collect):
    summary = summarize_cells(collect(make_failed_result(status="oom"), repeats=2))
    assert [(0, 2)] == list(summary[["num_ok", "num_planned"]].itertuples(index=False, name=None))
    assert summary["median_step_seconds"].isna().all()


def test_one_repeat_has_no_interval_and_says_why(collect):
    (row,) = summarize_cells(collect(make_result(), repeats=1)).to_dict("records")
    assert pd.isna(row["interval_low_seconds"])
    assert "one repeat says nothing about the spread between repeats" == row["interval_reason"]
    assert "one repeat: no interval" == row["note"]


def test_different_environments_are_not_summarised_together(collect):
    other = make_environment(num_threads=1)
    results = [*make_repeats(make_cell(), 1.0, 1.0), make_result(repeat=3, step_seconds=(9.0,), environment=other)]
    summary = summarize_cells(collect(*results))
    assert [1.0, 9.0] == summary["median_step_seconds"].to_list()
    assert [2, 1] == summary["num_ok"].to_list()
    assert [identify_environment(make_environment()), identify_environment(other)] == summary[
        "environment_id"
    ].to_list()
    assert all("one of 2" in note for note in summary["note"])


def test_another_host_of_the_same_kind_is_summarised_together(collect):
    results = [
        make_result(repeat=number, environment=make_environment(hostname=f"bench-{number}")) for number in (1, 2, 3)
    ]
    assert [3] == summarize_cells(collect(*results))["num_ok"].to_list()


def test_a_cells_interval_does_not_depend_on_the_other_cells(collect):
    rng = np.random.default_rng(0)
    results = [make_result(repeat=number, step_seconds=rng.lognormal(size=9)) for number in (1, 2, 3)]
    others = make_repeats(make_cell(batch_size=2), 1.0, 2.0, 3.0)
    alone = summarize_cells(collect(*results))
    among = summarize_cells(collect(*others, *results))
    columns = ["interval_low_seconds", "interval_high_seconds"]
    assert alone.loc[0, columns].to_list() == among.loc[1, columns].to_list()


def test_percentiles_appear_when_there_are_steps_enough(collect):
    cell = make_cell(phase="infer")
    few = summarize_cells(collect(make_result(cell, step_seconds=np.arange(1, 20)), repeats=1))
    many = summarize_cells(collect(make_result(cell, step_seconds=np.arange(1.0, 102.0), attempt="a0"), repeats=1))
    assert few[["p95_step_seconds", "p99_step_seconds"]].isna().all(axis=None)
    assert [96.0, 100.0] == pytest.approx(many[["p95_step_seconds", "p99_step_seconds"]].iloc[0].to_list())


def test_a_warmup_that_did_not_become_steady_is_noted(collect):
    results = [make_result(repeat=1, reached_steady=False), make_result(repeat=2)]
    (row,) = summarize_cells(collect(*results, repeats=2)).to_dict("records")
    assert (1, "warm-up of 1 of 2 did not become steady") == (row["num_steady"], row["note"])


def test_failures_list_every_repeat_that_is_not_ok(collect):
    failures = list_failures(collect(make_result(), make_failed_result(repeat=2, status="timeout", message="too long")))
    assert [(2, "timeout", "too long"), (3, "missing", "no result was found")] == list(
        failures[["repeat", "status", "error_message"]].itertuples(index=False, name=None)
    )


def test_tables_for_people_are_in_ms_and_gib(collect):
    frame = summarize_for_terminal(collect(*make_repeats(make_cell(), 0.1, 0.1, 0.1)))
    assert {
        "cell": "conv6 train, CPU, batch 64, 32 px, PyTorch eager",
        "step time, ms": "100",
        "95 % interval, ms": "100 to 100",
        "IQR of steps, ms": "100 to 100",
        "samples/s": "640",
        "peak RSS, GiB": "1.00",
        "repeats ok": "3 of 3",
        "verdict": "valid",
        "note": "",
    } == frame.iloc[0].to_dict()


def test_a_cell_that_failed_is_in_the_terminals_table_with_dashes(collect):
    row = summarize_for_terminal(collect(make_failed_result(), repeats=1)).iloc[0]
    assert ("–", "–", "0 of 1") == (row["step time, ms"], row["95 % interval, ms"], row["repeats ok"])


def test_training_has_step_times_and_inference_has_latencies(collect):
    cells = [make_cell(), make_cell(phase="infer")]
    summary = add_labels(summarize_cells(collect(*(make_result(cell) for cell in cells), repeats=1)))
    train, infer = present_step_times(summary, "train").frame, present_step_times(summary, "infer").frame
    assert ["step time, ms"] == [name for name in train if "time" in name and "steps" not in name]
    assert ["latency p50, ms", "p95, ms", "p99, ms"] == [name for name in infer if "p5" in name or "p9" in name]


def test_labels_tell_cells_apart_by_what_varies(collect):
    cells = [make_cell(), make_cell(seed=1), make_cell(num_steps=2)]
    labels = add_labels(summarize_cells(collect(*(make_result(cell) for cell in cells), repeats=1)))["label"]
    assert "conv6 train, CPU, batch 64, 32 px, seed 1, 1 steps, PyTorch eager" == labels[1]
    assert 3 == labels.nunique()


def test_models_are_named_by_what_their_size_counts_and_by_their_gpus(collect):
    cells = [
        make_cell(model="matmul", phase="infer", batch_size=1, input_size=100, num_classes=None),
        make_cell(model="text-classifier", input_size=128, num_classes=2, framework="jax", mode="compiled"),
        make_cell(device="gpu"),
        make_cell(device="gpu", num_gpus=2),
    ]
    labels = add_labels(summarize_cells(collect(*(make_result(cell) for cell in cells), repeats=1)))["label"]
    assert [
        "matmul infer, CPU, batch 1, 100 rows, PyTorch eager",
        "text-classifier train, CPU, batch 64, 128 tokens, JAX compiled",
        "conv6 train, GPU, batch 64, 32 px, PyTorch eager",
        "conv6 train, GPU, batch 64, 32 px, 2 GPUs, PyTorch eager",
    ] == labels.to_list()


def test_figures_come_from_the_valid_repeats_where_there_are_any(collect):
    results = make_repeats(make_cell(), 1.0, 3.0, 9.0)
    results[2] = make_repeats(make_cell(), 1.0, 3.0, 9.0, validity=make_validity("noisy"))[2]
    (row,) = summarize_cells(collect(*results)).to_dict("records")
    assert 2.0 == row["median_step_seconds"]
    assert (3, 2, 2, "1 noisy") == tuple(row[name] for name in ("num_ok", "num_valid", "num_counted", "faults"))
    assert "figures from 2 valid of 3 ok" == row["note"]


def test_without_a_valid_repeat_figures_come_from_the_ok_ones_and_the_row_says_so(collect):
    verdicts = ("throttled", "noisy", "noisy")
    results = [
        make_result(repeat=number, step_seconds=(seconds,) * 3, validity=make_validity(verdict))
        for number, seconds, verdict in zip((1, 2, 3), (1.0, 3.0, 9.0), verdicts, strict=True)
    ]
    collection = collect(*results)
    (row,) = summarize_cells(collection).to_dict("records")
    assert (3.0, 0, "1 throttled, 2 noisy") == (row["median_step_seconds"], row["num_valid"], row["faults"])
    assert "no valid repeat: figures from all 3 ok" == row["note"]
    shown = summarize_for_terminal(collection).iloc[0]
    assert "0 of 3 valid; 1 throttled, 2 noisy" == shown["verdict"]


def test_repeats_that_are_not_valid_are_listed_with_their_reasons(collect):
    results = [make_result(repeat=1), make_result(repeat=2, validity=make_validity("throttled", "noisy"))]
    rows = list_invalid(collect(*results))
    assert [(2, "throttled", "made up to be throttled; made up to be noisy")] == list(
        rows[["repeat", "verdict", "verdict_reasons"]].itertuples(index=False, name=None)
    )


def test_conditions_are_medians_and_peaks_of_the_repeats_that_count(collect):
    cell = make_cell(device="gpu")
    results = [
        make_result(
            cell,
            repeat=number,
            roofline=make_roofline(share_of_peak=share),
            gpu_use=(make_gpu_use(energy_joules=joules, temperature_celsius=(50, heat, 55)),),
        )
        for number, share, joules, heat in ((1, 0.1, 90.0, 70), (2, 0.4, 180.0, 60), (3, 0.2, 150.0, 65))
    ]
    (row,) = summarize_cells(collect(*results)).to_dict("records")
    assert (0.2, 50.0, 70) == (row["share_of_peak"], row["gpu_mean_power_watts"], row["gpu_max_temperature_celsius"])
