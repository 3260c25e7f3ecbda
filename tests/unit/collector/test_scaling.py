"""Comparisons of several GPUs with one."""

from typing import Any

import pytest

from bench.registry import Phase
from bench.schema import Framework, Result
from collector.comparisons import (
    STRONG_SCALING,
    WEAK_SCALING,
    compare_cells,
)
from collector.results.summary import summarize_cells
from factories import make_cell, make_environment, make_gpu
from measured_runs import Collect, make_repeats


def make_gpus(number: int, batch: int, *seconds: float) -> list[Result]:
    cell = make_cell(device="gpu", num_gpus=number, batch_size=batch)
    return make_repeats(cell, *seconds, environment=make_environment(gpus=(make_gpu(),) * number))


def test_weak_scaling_is_at_the_same_batch_per_gpu(collect: Collect) -> None:
    results = [*make_gpus(1, 64, 0.1, 0.1), *make_gpus(4, 256, 0.125, 0.125), *make_gpus(4, 64, 0.1, 0.1)]
    (row,) = compare_cells(summarize_cells(collect(*results)), WEAK_SCALING).to_dict("records")
    assert row["ratio"] == pytest.approx(0.8)  # 4 * 64 / 0.125 = 2048 of 4 * 640 = 2560 samples/s
    assert row["decision"] == "not tested"
    assert (row["subject"], row["reference"], row["batch_per_gpu"]) == ("4 GPUs, batch 256", "1 GPU, batch 64", 64)


def test_strong_scaling_is_at_the_same_global_batch(collect: Collect) -> None:
    results = [*make_gpus(1, 64, 0.1, 0.1), *make_gpus(4, 64, 0.05, 0.05), *make_gpus(4, 256, 0.1, 0.1)]
    (row,) = compare_cells(summarize_cells(collect(*results)), STRONG_SCALING).to_dict("records")
    assert row["ratio"] == pytest.approx(0.5)  # 64 / 0.05 = 1280 of 4 * 640 = 2560 samples/s
    assert (row["subject"], row["reference"], row["batch_size"]) == ("4 GPUs", "1 GPU", 64)


def make_compiled_gpus(
    number: int, *, phase: Phase = "train", framework: Framework = "pytorch", **settings: Any
) -> list[Result]:
    cell = make_cell(device="gpu", mode="compiled", framework=framework, phase=phase, num_gpus=number)
    environment = make_environment(gpus=(make_gpu(),) * number, settings=settings)
    return make_repeats(cell, 0.1, 0.1, environment=environment)


@pytest.mark.parametrize(
    ("graphs", "expected"),
    [
        ((True, False), "other programs: one CUDA graph on 1 GPU, none on 4 GPUs"),
        ((False, True), "other programs: one CUDA graph on 4 GPUs, none on 1 GPU"),
        ((True, True), ""),
    ],
)
def test_scaling_says_where_only_one_side_is_a_cuda_graph(
    collect: Collect, graphs: tuple[bool, bool], expected: str
) -> None:
    results = [*make_compiled_gpus(1, cuda_graph=graphs[0]), *make_compiled_gpus(4, cuda_graph=graphs[1])]
    (row,) = compare_cells(summarize_cells(collect(*results, repeats=2)), STRONG_SCALING).to_dict("records")
    assert row["note"] == expected


@pytest.mark.parametrize(("phase", "compiled"), [("train", "only losses and gradients"), ("infer", "each GPU's part")])
def test_scaling_says_what_xla_compiles_of_tensorflow_on_several_gpus(
    collect: Collect, phase: Phase, compiled: str
) -> None:
    results = [result for n in (1, 4) for result in make_compiled_gpus(n, framework="tensorflow", phase=phase)]
    (row,) = compare_cells(summarize_cells(collect(*results, repeats=2)), STRONG_SCALING).to_dict("records")
    assert row["note"] == f"other programs: XLA compiles the whole step on 1 GPU, {compiled} on 4 GPUs"
