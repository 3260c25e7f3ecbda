"""What was measured is said once, and the names of cells leave out what follows from it."""

from typing import Any

import pytest

from answered_runs import GPU_PYTORCH, GPU_TENSORFLOW, make_spread
from bench.schema import Cell
from collector.analysis import Analysis, analyze_run
from collector.answers.measured import MAX_VALUES, describe_measured, find_short_names
from factories import make_cell, make_failed_result
from measured_runs import Collect
from shared_runs import make_gpu_cell, make_tenants_result

GPU: dict[str, Any] = {"device": "gpu"}
CYCLEGAN: dict[str, Any] = {"model": "cyclegan", "batch_size": 1, "input_size": 256, "num_classes": None}


def analyze(collect: Collect, *cells: Cell) -> Analysis:
    results = [
        result
        for cell in cells
        for result in make_spread(cell, 0.1, GPU_PYTORCH if cell.framework == "pytorch" else GPU_TENSORFLOW)
    ]
    return analyze_run(collect(*results))


def test_work_programs_precisions_and_data_are_said_once(collect: Collect) -> None:
    analysis = analyze(
        collect,
        make_cell(**GPU),
        make_cell(model="vgg16", input_size=32, framework="tensorflow", mode="graph", **GPU),
        make_cell(**CYCLEGAN, precision="bf16", **GPU),
        make_cell(phase="infer", batch_size=1, framework="jax", mode="compiled", **GPU),
        make_cell(phase="infer", batch_size=8, framework="jax", mode="compiled", **GPU),
    )
    assert describe_measured(analysis) == (
        "Training of conv6 and vgg16 (batch 64, 32 px, 10 classes) and cyclegan (batch 1, 256 px); inference of conv6 "
        "(batches 1 and 8, 32 px, 10 classes); fp32 and bf16, synthetic data, on the GPU. PyTorch eager; through "
        "Keras: TensorFlow graph; JAX compiled. Not every program ran every model."
    )


def test_what_only_some_models_ran_with_is_said_beside_the_lists_of_all(collect: Collect) -> None:
    """The lists read as if each model had run in each precision and on each device."""
    other = {"model": "vgg16", "input_size": 32}
    analysis = analyze(
        collect,
        make_cell(**GPU),
        make_cell(**other, **GPU),
        make_cell(precision="bf16", **GPU),
        make_cell(),
        make_cell(**other, framework="jax", mode="compiled", **GPU),
    )
    assert describe_measured(analysis).endswith(
        "PyTorch eager; through Keras: JAX compiled. Of conv6 alone: CPU and bf16 (PyTorch eager). Of vgg16 alone: "
        "JAX compiled."
    )


def test_nothing_is_said_of_models_that_all_ran_with_all(collect: Collect) -> None:
    models, precisions = ("conv6", "vgg16"), ("fp32", "bf16")
    cells = [make_cell(model=model, input_size=32, precision=one, **GPU) for model in models for one in precisions]
    assert describe_measured(analyze(collect, *cells)).endswith("on the GPU. PyTorch eager.")


def test_a_cell_without_a_figure_was_not_measured(collect: Collect) -> None:
    failed = make_failed_result(make_cell(phase="infer"))
    assert "inference" not in describe_measured(analyze_run(collect(*make_spread(make_cell(), 0.1), failed)))
    assert describe_measured(analyze_run(collect(failed))) == ""


def test_many_batches_are_named_by_their_ends(collect: Collect) -> None:
    sizes = range(1, MAX_VALUES + 2)
    analysis = analyze(collect, *(make_cell(batch_size=size, **GPU) for size in sizes))
    assert f"(batches 1 to {sizes[-1]} ({len(sizes)} values), 32 px, 10 classes)" in describe_measured(analysis)


def test_tenants_and_several_devices_are_named(collect: Collect) -> None:
    shared = make_gpu_cell(tenants=2, sharing="mps")
    tenants = [
        make_tenants_result(shared, [0.1] * 3, [0.1] * 3, repeat=number, environment=GPU_PYTORCH)
        for number in (1, 2, 3)
    ]
    text = describe_measured(analyze_run(collect(*tenants, *make_spread(make_cell(), 0.2))))
    assert "on the CPU and GPU, 2 tenants of a device (MPS)." in text


@pytest.mark.parametrize(
    ("others", "short"),
    [
        ((), "conv6 train, PyTorch eager"),
        (({"batch_size": 1},), "conv6 train, batch 64, PyTorch eager"),
        (({"batch_size": 1, "phase": "infer"},), "conv6 train, PyTorch eager"),
        (({"input_size": 224},), "conv6 train, 32 px, PyTorch eager"),
        (({"device": "cpu"},), "conv6 train, GPU, PyTorch eager"),
    ],
    ids=("one cell", "two batches", "another batch in another phase", "two sizes", "two devices"),
)
def test_a_name_leaves_out_what_all_cells_of_its_work_share(
    collect: Collect, others: tuple[dict[str, Any], ...], short: str
) -> None:
    analysis = analyze(collect, make_cell(**GPU), *(make_cell(**{**GPU, **fields}) for fields in others))
    assert find_short_names(analysis).shorten("conv6 train, GPU, batch 64, 32 px, PyTorch eager") == short
