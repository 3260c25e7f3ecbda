"""Memory and rooflines in sentences, and what larger batches are worth as a table."""

from answered_runs import GPU_PYTORCH, answer, make_spread, select_texts
from collector.analysis import analyze_run
from collector.answers.batch_rules import make_batches_table
from collector.tables.roofline import describe_limit
from factories import make_cell, make_roofline
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
        "2 of 3 cells reach at least 50 % of what their nearest roof allows (arithmetic), operations counted as direct "
        "convolutions. What limits the others is not known; resnet18 train, GPU, batch 64, 32 px, PyTorch eager "
        "reaches 3.00 %."
    )
    assert [describe_limit("arithmetic", share) for share in shares.values()] == [
        "arithmetic",
        "arithmetic",
        "not known",
    ]


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
        "1 of 1 cell reach at least 50 % of what their nearest roof allows (arithmetic), operations counted as direct "
        "convolutions."
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
    assert (smallest, largest, ratio, interval) == ("80.0", "160", "2.00", "1.96 to 2.05")
    assert verdict == "more samples per second"
