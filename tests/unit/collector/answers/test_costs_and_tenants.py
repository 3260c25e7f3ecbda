"""What work costs and what tenants share, in sentences, and where nothing is said of either."""

import pytest

from answered_runs import GPU_PYTORCH, GPU_TENSORFLOW, answer, make_framework_pair, make_spread, select_texts
from bench.schema import Result
from collector.analysis import analyze_run
from collector.answers.cheapest import list_cheapest
from collector.answers.cheapest_rules import make_cheapest_table
from factories import RUN_ID, make_cell, make_environment, make_gpu, make_validity
from measured_runs import Collect, make_repeats
from price_tables import make_price, make_price_table
from shared_runs import make_gpu_cell, make_tenants_result

PRICES = make_price_table(make_price("plain", 0.001, cpu="Xeon 2.20GHz"), make_price("card", 0.01, gpu="T4"))
BOTH = [*make_spread(make_cell(device="gpu"), 0.0064, GPU_PYTORCH), *make_spread(make_cell(), 0.128)]


def test_costs_are_ratios_of_times_at_prices_without_error(collect: Collect) -> None:
    # The GPU is 20 times faster and 10 times dearer, so the CPU costs twice as much. 1,000 samples are 15.625 steps:
    # 0.1 s on the GPU at 0.01 a second, and 2 s on the CPU at 0.001. Of two costs together, t(2) at 1 - 0.05 / 4 is
    # 6.2053, so each is known to a factor of exp(6.2053 * 0.010000 / sqrt(3)) = 1.0365.
    answers = answer(collect, BOTH, prices=PRICES)
    (ratio,), (span,) = (select_texts(answers, rule) for rule in ("device-costs", "cost-span"))
    assert ratio == (
        "Cost of the same samples: the GPU is cheaper; CPU over GPU cost ratio 2.00 (1.96 to 2.05) for conv6 train, "
        "batch 64, 32 px, PyTorch eager. Prices: X north card (T4) at 36.0 EUR an hour (on demand, 2026-01-01); X "
        "north plain at 3.60 EUR an hour (on demand, 2026-01-01)."
    )
    # The speedup and the costs rest on the same card and its host. The intervals of two costs hold together; a single
    # ratio needs no word on others.
    assert select_texts(answers, "how-sure") == [
        "All ratios above: on one card and its host, 3 repeats a side. The intervals of 2 "
        "costs all hold the truth in 95 % of cases; these are not tested."
    ]
    assert span.startswith(
        "EUR for 1,000 samples, the cheapest of each work, without start-up (import, build, first step): conv6 train "
        "0.00100 (0.000965 to 0.00104): GPU, batch 64, fp32, PyTorch eager, start-up "
    )
    assert " s. The intervals hold for all 2 costs together; in the table each alone. Prices: X north card" in span


def test_the_cheapest_of_each_work_is_said_of_four_works(collect: Collect) -> None:
    works = [(model, phase) for model in ("conv6", "vgg16", "resnet18") for phase in ("train", "infer")]
    results = [
        result
        for model, phase in works
        for batch_size, seconds in ((64, 0.1), (128, 0.15))
        for result in make_spread(make_gpu_cell(model=model, phase=phase, batch_size=batch_size), seconds, GPU_PYTORCH)
    ]
    (text,) = select_texts(answer(collect, results, prices=PRICES), "cost-span")
    assert text.count("batch 128") == 4
    assert "batch 64" not in text
    assert "; 2 more. The intervals " in text


def test_the_cheapest_of_each_work_has_a_row_with_what_the_sentence_says(collect: Collect) -> None:
    table = make_cheapest_table(
        analyze_run(collect(*BOTH, *make_spread(make_cell(phase="infer"), 0.064)), prices=PRICES)
    )
    assert table is not None
    train, infer = (dict(zip(table.headings, row, strict=True)) for row in table.format_rows())
    # Of three costs together, t(2) at 1 - 0.05 / 6 is 7.6488: a factor of exp(7.6488 * 0.010000 / sqrt(3)) = 1.0452.
    assert train.pop("start-up, not in it, s") == infer.pop("start-up, not in it, s")
    assert train == {
        "work": "conv6 train",
        "cheapest": "PyTorch eager",
        "on": "GPU",
        "precision": "fp32",
        "batch": "64",
        "1,000 samples, EUR": "0.00100",
        "95 % interval, EUR": "0.000957 to 0.00105",
        "cells priced": "2",
        "at": "X north card (T4) at 36.0 EUR an hour (on demand, 2026-01-01)",
    }
    assert (infer["work"], infer["on"], infer["1,000 samples, EUR"]) == ("conv6 infer", "CPU", "0.00100")
    assert infer["at"].startswith("X north plain at 3.60 EUR")


def test_what_is_not_told_from_the_cheapest_is_named_beside_it(collect: Collect) -> None:
    """A table of the fastest that calls two programs a tie stood above one that called the first the cheapest."""
    graph = {"framework": "tensorflow", "mode": "graph"}
    results = [
        *make_spread(make_gpu_cell(), 0.1, GPU_PYTORCH),
        *make_spread(make_gpu_cell(**graph), 0.101, GPU_TENSORFLOW),
        *make_spread(make_gpu_cell(batch_size=128), 0.201, GPU_PYTORCH),
        *make_spread(make_gpu_cell(phase="infer"), 0.1, GPU_PYTORCH),
        *make_spread(make_gpu_cell(phase="infer", **graph), 0.2, GPU_TENSORFLOW),
    ]
    table = make_cheapest_table(analyze_run(collect(*results), prices=PRICES))
    assert table is not None
    assert list(zip(table.rows["programs"], table.rows["num_cells"], strict=True)) == [
        ("PyTorch eager, not told from PyTorch eager (batch 128) and TensorFlow graph", "3"),
        ("PyTorch eager", "2"),
    ]
    (text,) = select_texts(answer(collect, results, prices=PRICES), "cost-span")
    assert "PyTorch eager, not told from PyTorch eager (batch 128) and TensorFlow graph" in text


def test_a_pair_has_one_verdict_whether_times_or_costs_are_compared(collect: Collect) -> None:
    """Intervals of many costs together overlap where the two times are shown to differ."""
    graph = {"framework": "tensorflow", "mode": "graph"}
    others = [one for size in range(2, 30) for one in make_spread(make_gpu_cell(batch_size=size), 9.0, GPU_PYTORCH)]
    results = [
        *make_spread(make_gpu_cell(), 0.1, GPU_PYTORCH),
        *make_spread(make_gpu_cell(**graph), 0.12, GPU_TENSORFLOW),
        *others,
    ]
    priced = list_cheapest(analyze_run(collect(*results), prices=PRICES))
    (one,) = priced.cheapest
    assert (one.first.row["variant"], one.tied, one.num_cells) == ("PyTorch eager", (), 30)
    ends = one.first.cost.find_joint_interval(priced.num_costs)
    assert ends is not None
    # Both intervals are as wide, by a factor to either side: they overlap although one takes 20 % longer.
    assert (ends[1] / one.first.cost.center) ** 2 > 1.2


def test_another_size_of_the_input_is_another_work_of_which_the_cheapest_is_said(collect: Collect) -> None:
    results = [
        *make_spread(make_gpu_cell(input_size=32), 0.01, GPU_PYTORCH),
        *make_spread(make_gpu_cell(input_size=224), 0.1, GPU_PYTORCH),
        *make_spread(make_gpu_cell(input_size=224, num_classes=1000), 0.2, GPU_PYTORCH),
        *make_spread(make_gpu_cell(model="vgg16", input_size=224), 0.3, GPU_PYTORCH),
    ]
    (text,) = select_texts(answer(collect, results, prices=PRICES), "cost-span")
    for work in ("conv6 train (32 px, 10 classes) 0.00", "conv6 train (224 px, 10 classes) 0.0"):
        assert work in text
    assert "conv6 train (224 px, 1000 classes) 0.0" in text
    assert "vgg16 train 0.0" in text


def test_the_cheapest_may_be_a_cell_that_ran_in_several_environments(collect: Collect) -> None:
    # Three repeats on each of two cards, of which one is faster; the other program takes longer on both.
    other = make_environment(gpus=(make_gpu(driver_version="560.1"),))
    slow = make_gpu_cell(framework="tensorflow", mode="graph")
    repeats = [
        *make_spread(make_gpu_cell(), 0.1, GPU_PYTORCH),
        *[found.model_copy(update={"repeat": found.repeat + 3}) for found in make_spread(make_gpu_cell(), 0.08, other)],
    ]
    (text,) = select_texts(
        answer(collect, [*repeats, *make_spread(slow, 0.2, GPU_PYTORCH)], prices=PRICES, repeats=6), "cost-span"
    )
    assert "TensorFlow" not in text
    assert "conv6 train 0.0125 (" in text  # 15.625 steps of 0.08 s at 0.01 a second
    assert "all 3 costs" in text


def test_the_cheapest_of_the_cells_that_were_priced_is_said_to_be_that(
    collect: Collect, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("collector.analysis", "collector.answers.cheapest_rules"):
        monkeypatch.setattr(f"{module}.MAX_PRICED_CELLS", 1)
    (text,) = select_texts(answer(collect, BOTH, prices=PRICES), "cost-span")
    assert "the cheapest of each work among the first 1 of 2 cells, without start-up" in text


def test_nothing_is_said_of_costs_without_prices(collect: Collect) -> None:
    assert make_cheapest_table(analyze_run(collect(*BOTH))) is None
    answers = answer(collect, BOTH)
    assert not {"device-costs", "cost-span", "no-price"} & {one.rule for one in answers}
    (text,) = select_texts(answers, "no-prices")
    assert f"benchmatrix cost {RUN_ID} computes them" in text
    assert "cheapest" not in text  # a machine without the GPU would do for the cell on the CPU


def test_on_one_kind_of_machine_the_fastest_is_the_cheapest_at_any_price(collect: Collect) -> None:
    (text,) = select_texts(answer(collect, make_framework_pair(2.0)), "no-prices")
    assert text.endswith(
        " On one kind of machine, as here, the fastest for a sample is also the cheapest, start-up aside."
    )


def test_a_cell_without_a_price_is_named_as_unknown_and_no_ratio_is_said(collect: Collect) -> None:
    answers = answer(collect, BOTH, prices=make_price_table(make_price("card", 0.01, gpu="T4")))
    assert select_texts(answers, "device-costs") == []
    (text,) = select_texts(answers, "no-price")
    assert text.startswith("What cells cost is not known of 1 cell: ")
    # The card costs 36 EUR an hour and is 20 times as fast as the CPU.
    assert text.endswith(
        " The CPU is the cheaper answer where a node of it costs less than 1.80 EUR an hour (conv6 train, 32 px, fp32)."
    )


def test_a_gpu_without_a_price_has_no_price_below_which_the_cpu_is_the_cheaper_answer(collect: Collect) -> None:
    prices = make_price_table(make_price("plain", 0.001, cpu="Xeon 2.20GHz"))
    (text,) = select_texts(answer(collect, BOTH, prices=prices), "no-price")
    assert "cheaper answer" not in text


def share(seconds: float) -> list[Result]:
    """Return three repeats of two tenants by MPS whose steps take so long, 1 % apart."""
    cell = make_gpu_cell(tenants=2, sharing="mps")
    return [
        make_tenants_result(cell, [seconds * factor], [seconds * factor], repeat=number)
        for number, factor in enumerate((0.99, 1.0, 1.01), start=1)
    ]


def test_tenants_together_are_held_against_one_alone(collect: Collect) -> None:
    (text,) = select_texts(answer(collect, [*make_spread(make_gpu_cell(), 0.1), *share(0.16)]), "tenants")
    assert text == (
        "2 tenants by MPS together: more than one alone; throughput ratio 1.250 (1.222 to 1.279) for conv6 train, GPU, "
        "batch 64, 32 px, 2 tenants by MPS, PyTorch eager. Least even repeat: Jain's index 1.00 (conv6 train, GPU, "
        "batch 64, 32 px, 2 tenants by MPS, PyTorch eager). On one card, 3 repeats."
    )


def test_repeats_of_tenants_and_of_one_alone_are_both_named(collect: Collect) -> None:
    results = [*make_spread(make_gpu_cell(), 0.1)[:2], *share(0.16)]
    (text,) = select_texts(answer(collect, results), "tenants")
    assert text.endswith(" On one card, 2 to 3 repeats.")


def test_tenants_on_another_card_than_one_alone_are_unknown_though_they_differ(collect: Collect) -> None:
    other = make_environment(hostname="b", gpus=(make_gpu(),))
    answers = answer(collect, [*make_spread(make_gpu_cell(), 0.1, other), *share(0.16)])
    (text,) = select_texts(answers, "tenants-not-compared")
    assert text == (
        "1 of 1 tested cell with tenants was not on the machine of one alone: no sentence here rests on it, as the "
        "difference of machines is in the ratio."
    )


@pytest.mark.parametrize(
    "results",
    [
        [*make_spread(make_gpu_cell(), 0.1), *share(0.2)],
        [*make_repeats(make_gpu_cell(), 0.1), *share(0.16)],
        [*make_spread(make_gpu_cell(), 0.1, validity=make_validity("contaminated")), *share(0.16)],
        [*make_spread(make_gpu_cell(), 0.1, make_environment(hostname="b", gpus=(make_gpu(),))), *share(0.16)],
        share(0.16),
    ],
    ids=("no difference", "one repeat alone", "unsound alone", "alone on another card", "no cell alone"),
)
def test_nothing_is_said_of_tenants_where_the_data_do_not_carry_it(collect: Collect, results: list[Result]) -> None:
    assert select_texts(answer(collect, results, include_invalid=True), "tenants") == []


def test_tenants_that_were_not_tested_are_unknown(collect: Collect) -> None:
    (text,) = select_texts(answer(collect, share(0.16)), "tenants-not-compared")
    assert text == "1 of 1 cell with tenants was not tested: 1 as the run has no cell that is the cell alone."
