"""Which framework, device, mode and precision is faster: said where the data carry it, and nowhere else."""

import pytest

from answered_runs import (
    GPU_PYTORCH,
    GPU_TENSORFLOW,
    TENSORFLOW,
    answer,
    make_framework_pair,
    make_spread,
    select_texts,
)
from bench.schema import Result
from factories import make_cell, make_environment, make_failed_result, make_gpu, make_result, make_validity
from measured_runs import Collect, make_repeats
from shared_runs import make_tenants_result

FRAMEWORK_RULES = ("frameworks-over-all", "fastest")


def test_one_pair_is_said_with_its_interval_and_what_it_rests_on(collect: Collect) -> None:
    # Standard error of each side's log: 0.010000 / sqrt(3); of the ratio 0.0081652, with 4 degrees of freedom, of which
    # the 97.5 % quantile is 2.7764: 1.5 * exp(-/+ 0.02267).
    (text,) = select_texts(answer(collect, make_framework_pair(1.5)), "fastest")
    assert text == (
        "conv6 train, CPU, batch 64, 32 px: PyTorch eager (100.0 ms), then TensorFlow graph (150.0 ms), which takes "
        "50.0 % longer (46.6 to 53.4). On one machine, 3 repeats."
    )


def test_over_all_work_comparisons_are_counted_and_the_ends_have_intervals_that_hold_together(collect: Collect) -> None:
    # Of 3 ratios together, each is missed by 5 % / 3: the quantile of 4 degrees of freedom at 1 - 0.05 / 6 is 3.9608,
    # so the intervals are a factor of exp(0.03234) = 1.0329 to either side.
    results = [
        *make_framework_pair(1.5),
        *make_framework_pair(1.0, model="vgg16", input_size=32),
        *make_framework_pair(0.5, phase="infer"),
    ]
    answers = answer(collect, results)
    (text,) = select_texts(answers, "frameworks-over-all")
    assert text == (
        "TensorFlow graph against PyTorch eager: TensorFlow graph takes 50.0 % longer (45.2 to 54.9) in conv6 train; "
        "PyTorch eager takes 2.00 times as long (1.94 to 2.07) in conv6 infer; no difference shown in vgg16 train."
    )
    assert next(one for one in answers if one.text == text).basis == (
        "On one machine, 3 repeats; intervals 95 % together for 3 ratios of frameworks."
    )


def test_one_kind_of_work_has_its_row_of_the_fastest_and_no_sentence_over_all(collect: Collect) -> None:
    assert select_texts(answer(collect, make_framework_pair(1.5)), "frameworks-over-all") == []
    results = [*make_framework_pair(1.5), *make_framework_pair(1.5, phase="infer")]
    assert len(select_texts(answer(collect, results), "frameworks-over-all")) == 1


def test_a_ratio_whose_interval_holds_1_together_with_the_others_shows_no_difference(collect: Collect) -> None:
    # A log ratio of 0.0245 is 3.00 standard errors: p = 0.040. Alone it differs; of four, 0.0125 is asked for, however
    # much the others differ.
    assert "PyTorch eager (100.0 ms), then TensorFlow graph" in str(
        select_texts(answer(collect, make_framework_pair(1.0248)), "fastest")
    )
    results = [
        *make_framework_pair(1.5),
        *make_framework_pair(1.0248, phase="infer"),
        *make_framework_pair(1.6, model="vgg16", input_size=32),
        *make_framework_pair(1.7, model="vgg16", input_size=32, phase="infer"),
    ]
    answers = answer(collect, results)
    (text,) = select_texts(answers, "frameworks-over-all")
    assert "TensorFlow graph takes longer in 3 of 4 comparisons, from 50.0 % longer (" in text
    assert text.endswith("; no difference shown in conv6 infer.")
    assert "conv6 infer" in next(one for one in select_texts(answers, "fastest") if "no difference shown" in one)


@pytest.mark.parametrize(
    "results",
    [
        make_framework_pair(1.01),
        [*make_repeats(make_cell(), 0.1), *make_repeats(make_cell(framework="tensorflow"), 0.2)],
        [*make_spread(make_cell(), 0.1), *make_repeats(make_cell(framework="tensorflow"), 0.2)],
        [*make_spread(make_cell(), 0.1), make_failed_result(make_cell(framework="tensorflow"), status="oom")],
        [
            *make_spread(make_cell(), 0.1),
            *make_spread(make_cell(framework="tensorflow"), 0.2, validity=make_validity("contaminated")),
        ],
        [
            *make_spread(make_cell(), 0.1),
            *make_spread(make_cell(framework="tensorflow"), 0.2, make_environment(hostname="bench-2")),
        ],
        [*make_spread(make_cell(), 0.1), *make_spread(make_cell(framework="tensorflow", batch_size=8), 0.2)],
        [
            make_tenants_result(make_cell(tenants=2), [seconds] * 3, [0.1] * 3, repeat=repeat)
            for seconds, repeat in ((0.099, 1), (0.1, 2), (0.101, 3))
        ]
        + [
            make_tenants_result(
                make_cell(framework="tensorflow", tenants=2), [2 * seconds] * 3, [0.2] * 3, repeat=repeat
            )
            for seconds, repeat in ((0.099, 1), (0.1, 2), (0.101, 3))
        ],
    ],
    ids=(
        "the interval crosses 1",
        "one repeat",
        "one repeat on one side",
        "a side failed",
        "unsound cells only",
        "different machines",
        "different work",
        "devices that were shared",
    ),
)
def test_nothing_is_said_of_frameworks_where(collect: Collect, results: list[Result]) -> None:
    answers = answer(collect, results, include_invalid=True)
    found = [one for one in answers if one.rule in FRAMEWORK_RULES]
    assert [one.text for one in found if "no difference shown" not in one.text] == []


def test_machines_that_both_sides_share_are_in_the_interval(collect: Collect) -> None:
    hosts = [make_environment(hostname=f"bench-{number}") for number in (1, 2, 3)]
    graph = make_cell(framework="tensorflow", mode="graph")
    results = [
        result
        for number, host in enumerate(hosts, start=1)
        for cell, seconds in ((make_cell(), 0.1), (graph, 0.2 * (1 + number / 1000)))
        for result in make_repeats(cell, seconds, environment=host)
    ]
    numbered = [result.model_copy(update={"repeat": 1 + index // 2}) for index, result in enumerate(results)]
    (text,) = select_texts(answer(collect, numbered), "fastest")
    # On each machine the ratio is 2 * (1 + number / 1000): 2.004, known to 4.3027 * 0.000998 / sqrt(3) = 0.25 %.
    assert "TensorFlow graph (200.4 ms), which takes 2.00 times as long (1.999 to 2.009)" in text
    assert "On 3 machines, 3 repeats." in text


def test_a_gpu_is_held_against_the_cpu_of_its_host_and_both_are_named(collect: Collect) -> None:
    results = [
        *make_spread(make_cell(device="gpu"), 0.01, GPU_PYTORCH),
        *make_spread(make_cell(device="cpu"), 0.2),
    ]
    (text,) = select_texts(answer(collect, results), "devices")
    assert text == (
        "Tesla T4 against Intel(R) Xeon(R) CPU @ 2.20GHz, 2 threads, training: CPU takes 20.0 times as long (19.6 to "
        "20.5) in conv6 train, PyTorch eager. On one card and its host, 3 repeats."
    )


def test_modes_and_precisions_are_said_by_program(collect: Collect) -> None:
    cells = {0.1: {}, 0.05: {"mode": "compiled"}, 0.025: {"precision": "bf16"}}
    gpus = [
        result
        for seconds, fields in cells.items()
        for result in make_spread(make_cell(device="gpu", **fields), seconds, GPU_PYTORCH)
    ]
    answers = answer(collect, gpus)
    (mode,), (precision,) = (select_texts(answers, rule) for rule in ("modes", "precisions"))
    assert mode.startswith("PyTorch, training: compiled against eager: eager takes 2.00 times as long (")
    assert precision.startswith(
        "PyTorch eager, training: bf16 against fp32 without TF32: fp32 takes 4.00 times as long ("
    )


def test_all_batches_are_said_and_the_largest_is_held_against_the_next_smaller(collect: Collect) -> None:
    """Nobody chooses between the largest batch and the smallest: the choice is whether one more step is worth it."""
    times = {8: 0.1, 16: 0.9, 64: 2.0}
    results = [result for size, time in times.items() for result in make_spread(make_cell(batch_size=size), time)]
    (text,) = select_texts(answer(collect, results), "batches")
    assert text.startswith(
        "conv6 train, PyTorch eager: 80.00 samples/s at batch 8, 17.78 at 16, 32.00 at 64: "
        "batch 64 gives 80.0 % more than batch 16 ("
    )
    assert text.endswith("). No larger one was run. On one machine, 3 repeats.")


def test_a_rate_that_is_hardly_known_has_its_interval_beside_it(collect: Collect) -> None:
    """A rate that two repeats tell from 153 to 2,150 stood there with four digits and nothing else."""
    wide = [
        make_result(make_cell(batch_size=8), repeat=number, step_seconds=(0.1 * factor,) * 3)
        for number, factor in enumerate((0.9, 1.0, 1 / 0.9), start=1)
    ]
    (text,) = select_texts(answer(collect, [*wide, *make_spread(make_cell(), 0.1)]), "batches")
    # The logs are 0 and +-0.10536, t(2) is 4.3027: the factor is exp(4.3027 * 0.10536 / sqrt(3)) = 1.2992.
    assert "PyTorch eager: 80.00 samples/s (61.58 to 103.9, 3 repeats) at batch 8, 640.0 at 64: " in text


def test_a_batch_that_gives_less_than_the_next_smaller_is_said_to(collect: Collect) -> None:
    results = [*make_spread(make_cell(batch_size=8), 0.1), *make_spread(make_cell(batch_size=16), 0.8)]
    (text,) = select_texts(answer(collect, results), "batches")
    assert ": batch 8 gives 4.00 times as many as batch 16 (" in text


def test_a_last_step_that_shows_nothing_is_said_to_beside_an_earlier_one_that_does(collect: Collect) -> None:
    times = {8: 0.1, 16: 0.1, 32: 0.2}
    results = [result for size, time in times.items() for result in make_spread(make_cell(batch_size=size), time)]
    (text,) = select_texts(answer(collect, results), "batches")
    assert ", 160.0 at 32: no difference shown between batch 32 and batch 16. " in text


def test_a_larger_batch_without_a_figure_is_named(collect: Collect) -> None:
    series = [*make_spread(make_cell(batch_size=8), 0.1), *make_spread(make_cell(batch_size=16), 0.1)]
    (text,) = select_texts(answer(collect, [*series, *make_repeats(make_cell(batch_size=512), 0.1)]), "batches")
    assert " Batch 512 of it has no interval." in text
    assert "larger one" not in text


def test_of_many_batches_the_smallest_and_the_largest_are_named(collect: Collect) -> None:
    sizes = [2**power for power in range(8)]
    results = [result for size in sizes for result in make_spread(make_cell(batch_size=size), 0.1)]
    (text,) = select_texts(answer(collect, results), "batches")
    assert "10.00 samples/s at batch 1, 3 more between, 160.0 at 16, 320.0 at 32, 640.0 at 64, 1,280 at 128: " in text


def test_work_with_one_batch_is_named_as_not_varied(collect: Collect) -> None:
    series = [*make_spread(make_cell(batch_size=8), 0.1), *make_spread(make_cell(), 0.4)]
    answers = answer(collect, [*series, *make_spread(make_cell(phase="infer"), 0.1)])
    (text,) = select_texts(answers, "batches")
    assert text.startswith("conv6 train, ")
    (others,) = select_texts(answers, "one-kind")
    assert "one batch of conv6 infer: how others compare is not known." in others


@pytest.mark.parametrize(
    "other",
    [
        make_spread(make_cell(batch_size=8), 0.0125),
        make_repeats(make_cell(batch_size=8), 0.1),
        make_spread(make_cell(batch_size=8), 0.1, make_environment(hostname="bench-2")),
        make_spread(make_cell(batch_size=8), 0.1, validity=make_validity("throttled")),
        make_spread(make_cell(batch_size=8, framework="tensorflow"), 0.1, TENSORFLOW),
    ],
    ids=("the same rate", "one repeat", "another machine", "unsound", "another framework"),
)
def test_nothing_is_said_of_batches_where_the_smaller_one_has(collect: Collect, other: list[Result]) -> None:
    assert select_texts(answer(collect, [*make_spread(make_cell(), 0.1), *other]), "batches") == []


def test_scaling_is_said_with_its_interval(collect: Collect) -> None:
    two = make_environment(gpus=(make_gpu(), make_gpu(uuid="GPU-5c1e2f6a-0000-0000-0000-000000000002")))
    results = [
        *make_spread(make_cell(device="gpu", batch_size=64), 0.1, GPU_PYTORCH),
        *make_spread(make_cell(device="gpu", batch_size=128, num_gpus=2), 0.125, two),
    ]
    (text,) = select_texts(answer(collect, results), "scaling")
    assert text == (
        "2 GPUs at the same batch per GPU reach, of as many times the throughput of one, 80.0 % (78.2 to 81.8) for "
        "conv6 train, GPU, batch 64 per GPU, 32 px, PyTorch eager. On one machine, 3 repeats."
    )


@pytest.mark.parametrize(("seconds", "is_doubted"), [(0.1, False), (0.09, True)])
def test_more_than_as_many_gpus_can_give_is_said_to_have_another_reason(
    collect: Collect, seconds: float, is_doubted: bool
) -> None:
    two = make_environment(gpus=(make_gpu(), make_gpu(uuid="GPU-5c1e2f6a-0000-0000-0000-000000000002")))
    results = [
        *make_spread(make_cell(device="gpu", batch_size=64), 0.1, GPU_PYTORCH),
        *make_spread(make_cell(device="gpu", batch_size=128, num_gpus=2), seconds, two),
    ]
    (text,) = select_texts(answer(collect, results), "scaling")
    doubt = " That is more than the number of GPUs explains: something else differed between the cells."
    assert (doubt in text) == is_doubted


def test_ratios_of_one_card_each_are_not_said_to_be_of_one_card(collect: Collect) -> None:
    results = [
        result
        for uuid, work in (
            ("GPU-1", {"phase": "train"}),
            ("GPU-2", {"phase": "infer"}),
            ("GPU-1", {"model": "vgg16", "input_size": 32}),
        )
        for framework, mode, seconds in (("pytorch", "eager", 0.1), ("tensorflow", "graph", 0.2))
        for result in make_spread(
            make_cell(device="gpu", framework=framework, mode=mode, **work),
            seconds,
            (GPU_PYTORCH if framework == "pytorch" else GPU_TENSORFLOW).model_copy(
                update={"gpus": (make_gpu(uuid=uuid),)}
            ),
        )
    ]
    answers = answer(collect, results)
    (text,) = select_texts(answers, "frameworks-over-all")
    assert text.endswith(" On one card each, not the same for all, 3 repeats.")
    # Two of the three kinds of work ran on one card, the third on another one: it is not said to be the same.
    texts = select_texts(answers, "fastest")
    own = " On one card, 3 repeats; not the same machines as in the note below."
    assert [text.endswith(own) for text in texts] == [False, True, False]
    assert not any("On one card" in text for text in (texts[0], texts[2]))
    (certainty,) = select_texts(answers, "how-sure")
    assert certainty.startswith("Ratios above that do not say otherwise: on one card, 3 repeats a side. A difference ")
