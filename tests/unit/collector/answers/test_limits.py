"""Memory and rooflines in sentences, and what larger batches are worth as a table."""

from typing import Any

from answered_runs import GPU_PYTORCH, GPU_TENSORFLOW, answer, make_spread, select_texts
from bench.schema import Environment, Result
from collector.analysis import analyze_run
from collector.answers.batch_rules import make_batches_table
from collector.tables.roofline import describe_limit
from factories import make_cell, make_gpu_use, make_memory, make_roofline
from measured_runs import Collect
from shared_runs import make_gpu_cell, make_tenants_result


def test_cells_below_half_of_their_nearest_roof_have_no_limit(collect: Collect) -> None:
    shares = {"vgg16": 0.9, "conv6": 0.5, "resnet18": 0.03}
    results = [
        result
        for model, share in shares.items()
        for result in make_spread(
            make_cell(model=model, input_size=32, device="gpu"),
            0.1,
            GPU_PYTORCH,
            roofline=make_roofline(share_of_roofline=share),
        )
    ]
    (text,) = select_texts(answer(collect, results), "roofline")
    assert text == (
        "2 of 3 cells reach 50 % or more of the roof that the device's peaks set, here arithmetic "
        "(operations counted as direct convolutions). What limits the other cell is not known; the "
        "least, resnet18 train, PyTorch eager, reaches 3.00 % of its roof."
    )
    assert [describe_limit("arithmetic", share) for share in shares.values()] == [
        "arithmetic",
        "arithmetic",
        "not known",
    ]


GIB = 2**30


def make_repeats_with(environment: Environment, tensors: float, used: float, **fields: Any) -> list[Result]:
    """Return repeats of a cell on a card with so many GiB for tensors, and in use on the device."""
    return make_spread(
        make_cell(device="gpu", **fields),
        0.1,
        environment,
        memory=make_memory(peak_memory_allocated_bytes=round(tensors * GIB)),
        gpu_use=(make_gpu_use(memory_used_peak_bytes=round(used * GIB)),),
    )


def test_what_was_most_in_use_is_said_first_and_beside_it_the_tensors_of_the_same_work(collect: Collect) -> None:
    results = [
        *make_repeats_with(GPU_PYTORCH, 1, 2, model="conv6"),
        *make_repeats_with(GPU_PYTORCH, 4, 6, model="vgg16", input_size=32),
        *make_repeats_with(GPU_TENSORFLOW, 3, 13, model="vgg16", input_size=32, framework="tensorflow", mode="graph"),
    ]
    (text,) = select_texts(answer(collect, results), "memory")
    assert text == (
        "Most in use on the GPU: vgg16 train: TensorFlow graph 13.0 GiB (tensors 3.00 GiB) and PyTorch eager 6.00 GiB "
        "(tensors 4.00 GiB). In use includes what driver, libraries and framework keep."
    )


def test_a_program_on_a_shared_card_is_not_a_second_one(collect: Collect) -> None:
    """One tenant under MPS, or on a slice, stood beside the same program alone, under the same name."""
    results = [*make_repeats_with(GPU_PYTORCH, 4, 6), *make_repeats_with(GPU_PYTORCH, 4, 7, sharing="mps")]
    (text,) = select_texts(answer(collect, results), "memory")
    assert "PyTorch eager 6.00 GiB (tensors 4.00 GiB)." in text


def test_what_other_tenants_take_is_no_unknown_limit(collect: Collect) -> None:
    alone = make_spread(make_gpu_cell(), 0.1, GPU_PYTORCH, roofline=make_roofline(share_of_roofline=0.6))
    shared = [
        make_tenants_result(
            make_gpu_cell(tenants=8, sharing="mps"),
            *[[0.8] * 3] * 8,
            repeat=number,
            environment=GPU_PYTORCH,
            roofline=make_roofline(share_of_roofline=0.075),
        )
        for number in (1, 2, 3)
    ]
    (text,) = select_texts(answer(collect, [*alone, *shared]), "roofline")
    assert text == (
        "1 of 1 cell reaches 50 % or more of the roof that the device's peaks set, here arithmetic "
        "(operations counted as direct convolutions)."
    )
    assert select_texts(answer(collect, shared), "roofline") == []


def test_samples_per_second_of_a_series_are_those_of_its_step_times(collect: Collect) -> None:
    # 8 / 0.1 s = 80 and 64 / 0.4 s = 160 samples a second: 2 times as many, known to exp(0.02267) = 1.02293.
    results = [
        *make_spread(make_cell(batch_size=8, device="gpu"), 0.1, GPU_PYTORCH),
        *make_spread(make_cell(batch_size=64, device="gpu"), 0.4, GPU_PYTORCH),
    ]
    table = make_batches_table(analyze_run(collect(*results)))
    assert table is not None
    ((name, smallest, largest, ratio, interval, verdict),) = table.format_rows()
    assert name.startswith("conv6 train, GPU, batch 64 over 8, ")
    assert (smallest, largest, ratio, interval) == ("80.00", "160.0", "2.00", "1.96 to 2.05")
    assert verdict == "more samples per second"
