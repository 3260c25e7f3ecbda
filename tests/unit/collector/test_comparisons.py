"""Pairs of cells: which are compared, what comes of it, and why others are not."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from bench.schema import Result, Validity, Verdict
from collector.audit.claims import explain_missing_intervals
from collector.comparisons import (
    DEVICES,
    FRAMEWORKS,
    MODES,
    PRECISIONS,
    Comparison,
    compare_cells,
)
from collector.results.collection import Collection
from collector.results.summary import summarize_cells, summarize_collections
from factories import make_cell, make_environment, make_failed_result, make_gpu, make_result, make_validity
from measured_runs import Collect, collect_results, make_repeats

TENSORFLOW = make_environment(versions={"tensorflow": "2.21.0", "keras": "3.13.0"})


def test_tensorflow_is_compared_with_pytorch_on_the_same_workload_and_hardware(collect: Collect) -> None:
    graph = make_cell(framework="tensorflow", mode="graph")
    collection = collect(
        *make_repeats(make_cell(), 0.1, 0.1, 0.1),
        *make_repeats(graph, 0.112, 0.112, environment=TENSORFLOW),
        *make_repeats(make_cell(batch_size=8), 0.1),
    )
    (row,) = compare_cells(summarize_cells(collection), FRAMEWORKS).to_dict("records")
    assert row["ratio"] == pytest.approx(1.12)
    assert (row["decision"], row["subject"], row["reference"]) == ("slower", "TensorFlow graph", "PyTorch eager")
    assert (row["mode_subject"], row["mode_reference"]) == ("graph", "eager")
    assert (row["framework_version_subject"], row["framework_version_reference"]) == ("2.21.0", "2.11.0")
    assert row["note"] == "TensorFlow: 2 ok of 3 planned"


def test_a_different_protocol_does_not_keep_cells_apart(collect: Collect) -> None:
    longer = make_cell(framework="tensorflow", num_steps=2, num_warmup_steps=2, min_seconds=0.1, max_warmup_seconds=9.0)
    results = [*make_repeats(make_cell(), 0.1, 0.1), *make_repeats(longer, 0.1, 0.1)]
    assert len(compare_cells(summarize_cells(collect(*results)), FRAMEWORKS)) == 1


@pytest.mark.parametrize(
    "changes", [{"batch_size": 1}, {"input_size": 64}, {"model": "resnet18"}, {"phase": "infer"}, {"seed": 1}]
)
def test_cells_that_do_other_work_are_not_compared(collect: Collect, changes: dict[str, Any]) -> None:
    results = [*make_repeats(make_cell(), 0.1), *make_repeats(make_cell(framework="tensorflow", **changes), 0.1)]
    assert len(compare_cells(summarize_cells(collect(*results)), FRAMEWORKS)) == 0


def test_frameworks_on_different_hardware_are_named_and_not_compared(collect: Collect) -> None:
    other = make_environment(cpu_model="AMD EPYC")
    results = [
        *make_repeats(make_cell(), 0.1),
        *make_repeats(make_cell(framework="tensorflow"), 0.1, environment=other),
    ]
    (row,) = compare_cells(summarize_cells(collect(*results)), FRAMEWORKS).to_dict("records")
    assert (row["decision"], row["reason"]) == ("not compared", "the hardware differs")
    assert pd.isna(row["ratio"])


def test_frameworks_are_compared_where_they_share_hardware_and_only_there(collect: Collect) -> None:
    other = make_environment(cpu_model="AMD EPYC")
    results = [
        make_result(repeat=1),
        make_result(repeat=2, environment=other),
        *make_repeats(make_cell(framework="tensorflow"), 0.2, 0.2),
    ]
    (row,) = compare_cells(summarize_cells(collect(*results)), FRAMEWORKS).to_dict("records")
    assert row["ratio"] == pytest.approx(2.0)
    assert row["cpu_model_subject"] == "Intel(R) Xeon(R) CPU @ 2.20GHz"


def test_a_pair_with_a_side_that_failed_says_so(collect: Collect) -> None:
    results = [*make_repeats(make_cell(), 0.1), make_failed_result(make_cell(framework="tensorflow"), status="oom")]
    (row,) = compare_cells(summarize_cells(collect(*results, repeats=1)), FRAMEWORKS).to_dict("records")
    assert (row["decision"], row["reason"]) == ("not compared", "no ok repeat of TensorFlow")


def test_the_speedup_is_cpu_time_over_gpu_time_and_names_both(collect: Collect) -> None:
    environment = make_environment(gpus=(make_gpu(name="NVIDIA H100"),), num_threads=16)
    results = [
        *make_repeats(make_cell(), 0.4, 0.4, 0.4),
        *make_repeats(make_cell(device="gpu"), 0.01, 0.01, 0.01, environment=environment),
    ]
    (row,) = compare_cells(summarize_cells(collect(*results)), DEVICES).to_dict("records")
    assert row["ratio"] == pytest.approx(40.0)
    assert row["decision"] == "faster"
    assert (row["num_threads_reference"], row["gpu_name_subject"]) == (2, "NVIDIA H100")


def test_devices_are_compared_within_one_framework_and_mode(collect: Collect) -> None:
    results = [*make_repeats(make_cell(), 0.4), *make_repeats(make_cell(device="gpu", framework="tensorflow"), 0.01)]
    assert len(compare_cells(summarize_cells(collect(*results)), DEVICES)) == 0


def test_without_an_interval_there_is_no_verdict(collect: Collect) -> None:
    results = [*make_repeats(make_cell(), 0.1), *make_repeats(make_cell(framework="tensorflow"), 0.9)]
    (row,) = compare_cells(summarize_cells(collect(*results, repeats=1)), FRAMEWORKS).to_dict("records")
    assert row["decision"] == "one repeat"
    assert row["ratio"] == pytest.approx(9.0)


@pytest.mark.parametrize(
    ("comparison", "changes"), [(MODES, {"mode": "compiled"}), (PRECISIONS, {"precision": "bf16"})]
)
def test_mode_and_precision_are_worth_the_slower_time_over_the_faster(
    collect: Collect, comparison: Comparison, changes: dict[str, Any]
) -> None:
    plain, changed = make_cell(device="gpu"), make_cell(device="gpu", **changes)
    results = [*make_repeats(plain, 0.4, 0.4, 0.4), *make_repeats(changed, 0.1, 0.1, 0.1)]
    (row,) = compare_cells(summarize_cells(collect(*results)), comparison).to_dict("records")
    assert (row["ratio"], row["decision"]) == (pytest.approx(4.0), "faster")


def test_tensorflows_modes_make_the_pairs_that_differ_in_one_thing(collect: Collect) -> None:
    modes = ("eager", "graph", "unfused", "fused-norm", "compiled")
    cells = [make_cell(model="resnet18", framework="tensorflow", mode=mode) for mode in modes]
    results = [result for cell in cells for result in make_repeats(cell, 0.1)]
    rows = compare_cells(summarize_cells(collect(*results)), MODES)
    assert set(rows[["subject", "reference"]].itertuples(index=False, name=None)) == {
        ("graph", "eager"),
        ("compiled", "eager"),
        ("compiled", "graph"),
        ("graph", "unfused"),
        ("fused-norm", "graph"),
    }


def test_a_side_whose_clocks_nobody_saw_is_compared_and_the_note_says_so(collect: Collect) -> None:
    unseen = Validity(verdict="valid", reasons=(), unchecked=("clocks of the GPU not observed",))
    results = [
        *make_repeats(make_cell(device="gpu"), 0.1, 0.1),
        *make_repeats(make_cell(device="gpu", framework="tensorflow"), 0.2, 0.2, validity=unseen),
    ]
    (row,) = compare_cells(summarize_cells(collect(*results, repeats=2)), FRAMEWORKS).to_dict("records")
    assert (row["ratio"], row["note"]) == (pytest.approx(2.0), "TensorFlow: clocks of the GPU not observed")


def test_models_without_classes_are_paired(collect: Collect) -> None:
    cells = [
        make_cell(model="matmul", phase="infer", batch_size=1, num_classes=None, device=device)
        for device in ("cpu", "gpu")
    ]
    results = [result for cell in cells for result in make_repeats(cell, 0.1)]
    assert len(compare_cells(summarize_cells(collect(*results)), DEVICES)) == 1


def make_throttled_pair() -> list[Result]:
    throttled = make_repeats(make_cell(framework="tensorflow"), 0.2, 0.2, validity=make_validity("throttled"))
    return [*make_repeats(make_cell(), 0.1, 0.1), *throttled]


def test_a_side_measured_under_faulty_conditions_leaves_the_pair_out_and_says_why(collect: Collect) -> None:
    pairs = compare_cells(summarize_cells(collect(*make_throttled_pair(), repeats=2)), FRAMEWORKS)
    (row,) = pairs.to_dict("records")
    assert pd.isna(row["ratio"])
    reason = "no repeat of TensorFlow was measured under sound conditions"
    assert (row["decision"], row["reason"]) == ("left out", reason)
    assert explain_missing_intervals(pairs) == f"left out: {reason} (1 of 1 pairs)"


@pytest.mark.parametrize("verdict", ["noisy", "not-steady"])
def test_no_pair_is_left_out_for_how_its_steps_came_out(collect: Collect, verdict: Verdict) -> None:
    uneven = make_repeats(make_cell(framework="tensorflow"), 0.2, 0.2, validity=make_validity(verdict))
    summary = summarize_cells(collect(*make_repeats(make_cell(), 0.1, 0.1), *uneven, repeats=2))
    (row,) = compare_cells(summary, FRAMEWORKS).to_dict("records")
    assert row["ratio"] == pytest.approx(2.0)


def collect_apart(tmp_path: Path, *, gpu_version: str = "2.11.0+cu128") -> list[Collection]:
    """A run on the CPU and a run on the GPU of one host."""
    environment = make_environment(gpus=(make_gpu(),), versions={"torch": gpu_version, "numpy": "2.3.5"})
    runs = {
        "cpu-run": make_repeats(make_cell(), 0.4, 0.4, run_id="cpu-run"),
        "gpu-run": make_repeats(make_cell(device="gpu"), 0.1, 0.1, run_id="gpu-run", environment=environment),
    }
    return [collect_results(tmp_path, *results, run_id=run_id) for run_id, results in runs.items()]


def test_devices_are_compared_across_runs(tmp_path: Path) -> None:
    (row,) = compare_cells(summarize_collections(collect_apart(tmp_path)), DEVICES).to_dict("records")
    assert row["ratio"] == pytest.approx(4.0)
    assert row["note"].endswith("of two runs, gpu-run and cpu-run")


def test_devices_are_not_compared_across_versions_of_the_framework(tmp_path: Path) -> None:
    summary = summarize_collections(collect_apart(tmp_path, gpu_version="2.12.0"))
    (row,) = compare_cells(summary, DEVICES).to_dict("records")
    assert row["reason"] == "the framework's versions differ, 2.12.0 and 2.11.0"


def test_a_pair_within_a_run_is_preferred_to_the_same_pair_across_runs(tmp_path: Path) -> None:
    cells = (make_cell(), make_cell(framework="tensorflow"))
    runs = [
        collect_results(
            tmp_path, *(result for cell in cells for result in make_repeats(cell, 0.1, run_id=run_id)), run_id=run_id
        )
        for run_id in ("one", "two")
    ]
    rows = compare_cells(summarize_collections(runs), FRAMEWORKS)
    assert list(rows[["run_id_subject", "run_id_reference"]].itertuples(index=False, name=None)) == [
        ("one", "one"),
        ("two", "two"),
    ]
