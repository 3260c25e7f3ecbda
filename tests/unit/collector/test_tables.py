import numpy as np
import pandas as pd
import pytest

from bench.store import Store
from collector.comparisons import compare_devices, compare_frameworks, describe_ratio
from collector.environments import identify_environment
from collector.labels import add_labels
from collector.load import load_run
from collector.presentation import present_devices, present_frameworks, present_step_times, summarize_for_terminal
from collector.statistics import Estimate
from collector.tables import list_failures, summarize_cells
from factories import (
    make_cell,
    make_environment,
    make_failed_result,
    make_gpu,
    make_memory,
    make_phases,
    make_result,
    make_run,
    put_documents,
)

TENSORFLOW = make_environment(versions={"tensorflow": "2.21.0", "keras": "3.13.0"})


@pytest.fixture
def collect(tmp_path):
    """Put documents into a store and load them; planned are the cells of the results unless given."""

    def put_and_load(*results, cells=None, repeats=3):
        run = make_run(cells or list({result.cell_id: result.cell for result in results}.values()), repeats=repeats)
        store = Store.open(f"file://{tmp_path}")
        put_documents(store, run, results)
        return load_run(store, run.run_id)

    return put_and_load


def make_repeats(cell, *medians, **overrides):
    """Repeats of three equal steps each, so that every median is exact."""
    return [
        make_result(cell, repeat=number, step_seconds=(median,) * 3, **overrides)
        for number, median in enumerate(medians, start=1)
    ]


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


def test_tensorflow_is_compared_with_pytorch_on_the_same_workload_and_hardware(collect):
    graph = make_cell(framework="tensorflow", mode="graph")
    collection = collect(
        *make_repeats(make_cell(), 0.1, 0.1, 0.1),
        *make_repeats(graph, 0.112, 0.112, environment=TENSORFLOW),
        *make_repeats(make_cell(batch_size=8), 0.1),
    )
    (row,) = compare_frameworks(summarize_cells(collection)).to_dict("records")
    assert 1.12 == pytest.approx(row["ratio"])
    assert "TensorFlow is 1.12x slower (1.12 to 1.12)" == row["verdict"]
    assert ("graph", "eager") == (row["mode_tensorflow"], row["mode_pytorch"])
    assert ("2.21.0", "2.11.0") == (row["framework_version_tensorflow"], row["framework_version_pytorch"])
    assert "TensorFlow: 2 ok of 3 planned" == row["note"]


def test_every_mode_is_compared(collect):
    cells = [make_cell(framework="tensorflow", mode=mode) for mode in ("eager", "graph")]
    results = [result for cell in [make_cell(), *cells] for result in make_repeats(cell, 0.1)]
    assert ["eager", "graph"] == compare_frameworks(summarize_cells(collect(*results)))["mode_tensorflow"].to_list()


def test_a_different_protocol_does_not_keep_cells_apart(collect):
    longer = make_cell(framework="tensorflow", num_steps=2, num_warmup_steps=2, min_seconds=0.1, max_warmup_seconds=9.0)
    results = [*make_repeats(make_cell(), 0.1, 0.1), *make_repeats(longer, 0.1, 0.1)]
    assert 1 == len(compare_frameworks(summarize_cells(collect(*results))))


@pytest.mark.parametrize(
    "changes", [{"batch_size": 1}, {"input_size": 64}, {"model": "resnet18"}, {"phase": "infer"}, {"seed": 1}]
)
def test_cells_that_do_other_work_are_not_compared(collect, changes):
    results = [*make_repeats(make_cell(), 0.1), *make_repeats(make_cell(framework="tensorflow", **changes), 0.1)]
    assert 0 == len(compare_frameworks(summarize_cells(collect(*results))))


def test_frameworks_on_different_hardware_are_named_and_not_compared(collect):
    other = make_environment(cpu_model="AMD EPYC")
    results = [
        *make_repeats(make_cell(), 0.1),
        *make_repeats(make_cell(framework="tensorflow"), 0.1, environment=other),
    ]
    (row,) = compare_frameworks(summarize_cells(collect(*results))).to_dict("records")
    assert "not compared: the hardware differs" == row["verdict"]
    assert pd.isna(row["ratio"])


def test_frameworks_are_compared_where_they_share_hardware_and_only_there(collect):
    other = make_environment(cpu_model="AMD EPYC")
    results = [
        make_result(repeat=1),
        make_result(repeat=2, environment=other),
        *make_repeats(make_cell(framework="tensorflow"), 0.2, 0.2),
    ]
    (row,) = compare_frameworks(summarize_cells(collect(*results))).to_dict("records")
    assert 2.0 == pytest.approx(row["ratio"])
    assert "Intel(R) Xeon(R) CPU @ 2.20GHz" == row["cpu_model"]


def test_a_pair_with_a_side_that_failed_says_so(collect):
    results = [*make_repeats(make_cell(), 0.1), make_failed_result(make_cell(framework="tensorflow"), status="oom")]
    (row,) = compare_frameworks(summarize_cells(collect(*results, repeats=1))).to_dict("records")
    assert "not compared: no ok repeat of TensorFlow" == row["verdict"]


def test_the_speedup_is_cpu_time_over_gpu_time_and_names_both(collect):
    environment = make_environment(gpu=make_gpu(name="NVIDIA H100"), num_threads=16)
    results = [
        *make_repeats(make_cell(), 0.4, 0.4, 0.4),
        *make_repeats(make_cell(device="gpu"), 0.01, 0.01, 0.01, environment=environment),
    ]
    (row,) = compare_devices(summarize_cells(collect(*results))).to_dict("records")
    assert 40.0 == pytest.approx(row["ratio"])
    assert "NVIDIA H100 is 40.0x faster (40.0 to 40.0)" == row["verdict"]
    assert (2, "NVIDIA H100") == (row["num_threads"], row["gpu_name"])


def test_devices_are_compared_within_one_framework_and_mode(collect):
    results = [*make_repeats(make_cell(), 0.4), *make_repeats(make_cell(device="gpu", framework="tensorflow"), 0.01)]
    assert 0 == len(compare_devices(summarize_cells(collect(*results))))


@pytest.mark.parametrize(
    ("center", "error", "verdict"),
    [
        # Student's t at 4 degrees of freedom and 97.5 %: 2.776445; exp(2.776445 * 0.02) = 1.0571
        (1.12, 0.02, "TensorFlow is 1.12x slower (1.06 to 1.18)"),
        (1 / 1.12, 0.02, "TensorFlow is 1.12x faster (1.06 to 1.18)"),
        (1.05, 0.02, "no difference shown"),
        (0.95, 0.02, "no difference shown"),
    ],
)
def test_a_verdict_is_given_only_where_the_interval_excludes_1(center, error, verdict):
    ratio = Estimate(center=center, log_standard_error=error, degrees_of_freedom=4)
    assert verdict == describe_ratio(ratio, subject="TensorFlow")


def test_without_an_interval_there_is_no_verdict(collect):
    results = [*make_repeats(make_cell(), 0.1), *make_repeats(make_cell(framework="tensorflow"), 0.9)]
    (row,) = compare_frameworks(summarize_cells(collect(*results, repeats=1))).to_dict("records")
    assert "no verdict: one repeat, no interval" == row["verdict"]
    assert 9.0 == pytest.approx(row["ratio"])


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


def test_comparisons_for_people_hold_ratio_verdict_and_hardware(collect):
    results = [
        *make_repeats(make_cell(), 0.4, 0.4),
        *make_repeats(make_cell(framework="tensorflow"), 0.5, 0.5),
        *make_repeats(make_cell(device="gpu"), 0.01, 0.01),
    ]
    summary = summarize_cells(collect(*results, repeats=2))
    frameworks = present_frameworks(compare_frameworks(summary)).frame.iloc[0]
    devices = present_devices(compare_devices(summary)).frame.iloc[0]
    assert "Intel(R) Xeon(R) CPU @ 2.20GHz, 2 threads" == frameworks["hardware"]
    assert ("1.25", "400", "500") == tuple(frameworks[["TensorFlow / PyTorch", "PyTorch, ms", "TensorFlow, ms"]])
    assert ("40.0", "Tesla T4") == tuple(devices[["CPU / GPU", "GPU"]])


def test_labels_tell_cells_apart_by_what_varies(collect):
    cells = [make_cell(), make_cell(seed=1), make_cell(num_steps=2)]
    labels = add_labels(summarize_cells(collect(*(make_result(cell) for cell in cells), repeats=1)))["label"]
    assert "conv6 train, CPU, batch 64, 32 px, seed 1, 1 steps, PyTorch eager" == labels[1]
    assert 3 == labels.nunique()
