"""Pairs of cells: which are compared, what comes of it, and why others are not."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from bench.schema import Cell, Result
from collector.audit.claims import explain_missing_intervals
from collector.comparisons import (
    DEVICES,
    FRAMEWORKS,
    MODES,
    PRECISIONS,
    STRONG_SCALING,
    WEAK_SCALING,
    Comparison,
    compare_cells,
)
from collector.results.frames import Row, list_rows
from collector.results.summary import summarize_cells, summarize_collections
from factories import make_cell, make_environment, make_failed_result, make_gpu, make_result, make_validity
from measured_runs import TENSORFLOW, Collect, collect_results, make_repeats

OTHER_CPU = make_environment(cpu_model="AMD EPYC")
EAGER, TF = make_cell(), make_cell(framework="tensorflow")
GPU = make_cell(device="gpu")
TF_MODES = ("eager", "graph", "unfused", "fused-norm", "compiled")
NO_CLASSES: dict[str, Any] = {"model": "matmul", "phase": "infer", "batch_size": 1, "num_classes": None}


def compare(collect: Collect, comparison: Comparison, *results: Result, **options: Any) -> list[Row]:
    return list_rows(compare_cells(summarize_cells(collect(*results, **options)), comparison))


def test_tensorflow_is_compared_with_pytorch_on_the_same_workload_and_hardware(collect: Collect) -> None:
    graph = make_cell(framework="tensorflow", mode="graph")
    results = [*make_repeats(EAGER, 0.1, 0.1, 0.1), *make_repeats(graph, 0.112, 0.112, environment=TENSORFLOW)]
    (row,) = compare(collect, FRAMEWORKS, *results, *make_repeats(make_cell(batch_size=8), 0.1))
    assert row["ratio"] == pytest.approx(1.12)
    assert (row["decision"], row["subject"], row["reference"]) == ("slower", "TensorFlow graph", "PyTorch eager")
    assert (row["mode_subject"], row["mode_reference"]) == ("graph", "eager")
    assert (row["framework_version_subject"], row["framework_version_reference"]) == ("2.21.0", "2.11.0")
    assert row["note"] == "TensorFlow graph: 2 ok of 3 planned"


@pytest.mark.parametrize(
    ("comparison", "cells", "number"),
    [
        (FRAMEWORKS, (EAGER, make_cell(framework="tensorflow", num_steps=2, max_warmup_seconds=9.0)), 1),
        (FRAMEWORKS, (EAGER, make_cell(framework="tensorflow", batch_size=1)), 0),
        (FRAMEWORKS, (EAGER, make_cell(framework="tensorflow", phase="infer")), 0),
        (FRAMEWORKS, (EAGER, make_cell(framework="tensorflow", seed=1)), 0),
        (DEVICES, (EAGER, make_cell(framework="tensorflow", device="gpu")), 0),
        (DEVICES, (make_cell(**NO_CLASSES), make_cell(device="gpu", **NO_CLASSES)), 1),
        (MODES, [make_cell(model="resnet18", framework="tensorflow", mode=mode) for mode in TF_MODES], 5),
    ],
)  # fmt: skip
def test_cells_are_compared_that_differ_in_one_thing_and_in_how_long_was_measured(
    collect: Collect, comparison: Comparison, cells: tuple[Cell, ...], number: int
) -> None:
    assert len(compare(collect, comparison, *(make_repeats(cell, 0.1)[0] for cell in cells))) == number


@pytest.mark.parametrize(
    ("of_tensorflow", "decision", "reason"),
    [
        (make_repeats(TF, 0.2, 0.2, environment=OTHER_CPU), "not compared", "the hardware differs"),
        ([make_failed_result(TF, status="oom")], "not compared", "no ok repeat of TensorFlow eager"),
        ([make_result(TF, step_seconds=(0.9,) * 3)], "one repeat", None),
        (
            make_repeats(TF, 0.2, 0.2, validity=make_validity("throttled")),
            "left out",
            "no repeat of TensorFlow eager was measured under sound conditions",
        ),
        (make_repeats(TF, 0.2, 0.2, validity=make_validity("noisy")), "slower", None),
        (make_repeats(TF, 0.2, 0.2, validity=make_validity("not-steady")), "slower", None),
    ],
)
def test_a_pair_without_a_verdict_says_why(
    collect: Collect, of_tensorflow: list[Result], decision: str, reason: str | None
) -> None:
    pairs = compare_cells(summarize_cells(collect(*make_repeats(EAGER, 0.1, 0.1), *of_tensorflow)), FRAMEWORKS)
    (row,) = list_rows(pairs)
    assert row["decision"] == decision
    if reason is not None:
        assert row["reason"] == reason
        assert pd.isna(row["ratio"])
        assert explain_missing_intervals(pairs) == f"{decision}: {reason} (1 of 1 pairs)"
    else:
        assert row["ratio"] == pytest.approx(9.0 if decision == "one repeat" else 2.0)


def test_frameworks_are_compared_where_they_share_hardware_and_only_there(collect: Collect) -> None:
    results = [make_result(repeat=1), make_result(repeat=2, environment=OTHER_CPU), *make_repeats(TF, 0.2, 0.2)]
    (row,) = compare(collect, FRAMEWORKS, *results)
    assert row["ratio"] == pytest.approx(2.0)
    assert row["cpu_model_subject"] == "Intel(R) Xeon(R) CPU @ 2.20GHz"


@pytest.mark.parametrize(
    ("comparison", "cells", "names"),
    [
        (DEVICES, (EAGER, GPU), ("GPU", "CPU")),
        (MODES, (GPU, make_cell(device="gpu", mode="compiled")), ("compiled", "eager")),
        (PRECISIONS, (GPU, make_cell(device="gpu", precision="bf16")), ("bf16", "fp32")),
    ],
)
def test_a_gain_is_the_slower_time_over_the_faster(
    collect: Collect, comparison: Comparison, cells: tuple[Cell, Cell], names: tuple[str, str]
) -> None:
    environment = make_environment(gpus=(make_gpu(name="NVIDIA H100"),), num_threads=16)
    results = [
        result
        for cell, seconds in zip(cells, (0.4, 0.1), strict=True)
        for result in make_repeats(cell, *(seconds,) * 3, environment=environment)
    ]
    (row,) = compare(collect, comparison, *results)
    assert (row["ratio"], row["decision"]) == (pytest.approx(4.0), "faster")
    assert (row["subject"], row["reference"]) == names
    assert (row["num_threads_reference"], row["gpu_name_subject"]) == (16, "NVIDIA H100")


def make_gpus(number: int, batch: int, *seconds: float, **fields: Any) -> list[Result]:
    """Return repeats of a cell on so many GPUs; `fields`: of the cell, and `cuda_graph`, a setting."""
    settings = {name: fields.pop(name) for name in ("cuda_graph",) if name in fields}
    environment = make_environment(gpus=(make_gpu(),) * number, settings=settings)
    cell = make_cell(device="gpu", num_gpus=number, batch_size=batch, **fields)
    return make_repeats(cell, *seconds, environment=environment)


@pytest.mark.parametrize(
    ("comparison", "ratio", "sides"),
    [
        # 4 * 64 / 0.125 = 2048 of 4 * 640 = 2560 samples/s; 64 / 0.05 = 1280 of them
        (WEAK_SCALING, 0.8, ("4 GPUs, batch 256", "1 GPU, batch 64")),
        (STRONG_SCALING, 0.5, ("4 GPUs", "1 GPU")),
    ],
)
def test_efficiency_is_throughput_over_that_of_as_many_single_gpus(
    collect: Collect, comparison: Comparison, ratio: float, sides: tuple[str, str]
) -> None:
    results = [*make_gpus(1, 64, 0.1, 0.1), *make_gpus(4, 256, 0.125, 0.125), *make_gpus(4, 64, 0.05, 0.05)]
    (row,) = compare(collect, comparison, *results)
    assert row["ratio"] == pytest.approx(ratio)
    assert (row["decision"], (row["subject"], row["reference"])) == ("not tested", sides)


@pytest.mark.parametrize(
    ("one", "four", "note"),
    [
        ({"cuda_graph": True}, {"cuda_graph": False}, "one CUDA graph on 1 GPU, none on 4 GPUs"),
        ({"cuda_graph": False}, {"cuda_graph": True}, "one CUDA graph on 4 GPUs, none on 1 GPU"),
        ({"cuda_graph": True}, {"cuda_graph": True}, ""),
        *(
            (fields, fields, f"XLA compiles the whole step on 1 GPU, {part} on 4 GPUs")
            for phase, part in (("train", "only losses and gradients"), ("infer", "each GPU's part"))
            for fields in [{"framework": "tensorflow", "phase": phase}]
        ),
    ],
)
def test_scaling_says_where_the_sides_are_other_programs(
    collect: Collect, one: dict[str, Any], four: dict[str, Any], note: str
) -> None:
    results = [
        *make_gpus(1, 64, 0.1, 0.1, mode="compiled", **one),
        *make_gpus(4, 64, 0.1, 0.1, mode="compiled", **four),
    ]
    (row,) = compare(collect, STRONG_SCALING, *results, repeats=2)
    assert row["note"] == (f"other programs: {note}" if note else "")


@pytest.mark.parametrize("version", ["2.11.0+cu128", "2.12.0"])
def test_devices_are_compared_across_runs_of_one_version_whatever_its_build(tmp_path: Path, version: str) -> None:
    environment = make_environment(gpus=(make_gpu(),), versions={"torch": version, "numpy": "2.3.5"})
    runs = [
        collect_results(tmp_path, *make_repeats(cell, *(time,) * 2, run_id=run_id, **options), run_id=run_id)
        for run_id, cell, time, options in (("cpu", EAGER, 0.4, {}), ("gpu", GPU, 0.1, {"environment": environment}))
    ]
    (row,) = list_rows(compare_cells(summarize_collections(runs), DEVICES))
    assert row["note"].endswith("of two runs, gpu and cpu")
    if version == "2.12.0":
        assert row["reason"] == "the framework's versions differ, 2.12.0 and 2.11.0"
    else:
        assert row["ratio"] == pytest.approx(4.0)


def test_a_pair_within_a_run_is_preferred_to_the_same_pair_across_runs(tmp_path: Path) -> None:
    runs = [
        collect_results(tmp_path, *(make_repeats(cell, 0.1, run_id=run_id)[0] for cell in (EAGER, TF)), run_id=run_id)
        for run_id in ("one", "two")
    ]
    rows = compare_cells(summarize_collections(runs), FRAMEWORKS)
    assert list(rows["run_id_subject"]) == list(rows["run_id_reference"]) == ["one", "two"]
