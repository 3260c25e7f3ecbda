"""Over all work, each ratio of few has a row, and of many the ends: which side is faster, and by how much."""

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
from collector.analysis import analyze_run
from collector.answers.faster_table import MAX_FOLLOWED, MAX_GROUPS, MAX_ROWS, make_faster_table
from factories import make_cell
from measured_runs import Collect, make_repeats


def read_rows(collect: Collect, results: list[Result]) -> list[tuple[str, ...]]:
    """Return the texts of the table."""
    table = make_faster_table(analyze_run(collect(*results)))
    return [] if table is None else table.format_rows()


def test_each_ratio_has_a_row_those_of_one_faster_side_together(collect: Collect) -> None:
    # The quantile of 4 degrees of freedom at 1 - 0.05 / 8 is 4.3147, and the standard error of a log ratio 0.0081652:
    # a factor of exp(0.035230) = 1.03586 to either side.
    results = [
        *make_framework_pair(1.5),
        *make_framework_pair(1.0, model="resnet18", input_size=32),
        *make_framework_pair(0.8, model="vgg16", input_size=32),
        *make_framework_pair(3.0, phase="infer"),
    ]
    pair = "TensorFlow graph against PyTorch eager"
    assert read_rows(collect, results) == [
        (pair, "conv6 train", "PyTorch eager", "TensorFlow graph: 50.0 % longer", "44.8 to 55.4 %"),
        (pair, "conv6 infer", "PyTorch eager", "TensorFlow graph: 3.00 times as long", "2.90 to 3.11"),
        (pair, "vgg16 train", "TensorFlow graph", "PyTorch eager: 25.0 % longer", "20.7 to 29.5 %"),
        (pair, "resnet18 train", "no difference shown", "measured alike", "–"),
    ]


@pytest.mark.parametrize(("ratio", "slower"), [(1.02, "TensorFlow graph"), (1 / 1.02, "PyTorch eager")])
def test_what_was_measured_without_a_difference_names_the_side_that_the_interval_is_of(
    collect: Collect, ratio: float, slower: str
) -> None:
    # The quantile of 4 degrees of freedom at 1 - 0.05 / 4 is 3.4954: a factor of exp(0.028541) to either side.
    rows = read_rows(collect, [*make_framework_pair(1.5), *make_framework_pair(ratio, phase="infer")])
    assert rows[-1][2:] == (
        "no difference shown",
        f"{slower}: 2.0 % longer",
        "−0.9 to 5.0 %",
    )


def test_a_row_follows_the_cells_of_its_own_ratio(collect: Collect) -> None:
    results = [*make_framework_pair(1.5), *make_framework_pair(3.0, phase="infer")]
    table = make_faster_table(analyze_run(collect(*results)))
    assert table is not None
    ids = {result.cell_id for result in results}
    first, second = (set(text.split()) for text in table.rows["cell_id"])
    assert (len(first), len(second), first | second) == (2, 2, ids)


def test_of_many_ratios_the_least_and_the_most_of_each_side_have_a_row(collect: Collect) -> None:
    slower = [one for size in range(1, MAX_ROWS + 1) for one in make_framework_pair(1 + size / 10, batch_size=size)]
    level = [one for size in (71, 72, 73, 74) for one in make_framework_pair(1.0, batch_size=size)]
    rows = read_rows(collect, slower + level + make_framework_pair(0.5, phase="infer"))
    assert [row[1:4] for row in rows] == [
        ("least: conv6 train, batch 1", "PyTorch eager (6 of 11: training)", "TensorFlow graph: 10.0 % longer"),
        ("most: conv6 train, batch 6", "PyTorch eager (6 of 11: training)", "TensorFlow graph: 60.0 % longer"),
        ("conv6 infer", "TensorFlow graph (1 of 11: inference)", "PyTorch eager: 2.00 times as long"),
        (
            "conv6 train, batch 71; conv6 train, batch 72; conv6 train, batch 73; 1 more",
            "no difference shown (4 of 11: training)",
            "",
        ),
    ]


def test_a_row_of_many_cells_stays_whatever_the_page_is_filtered_by(collect: Collect) -> None:
    pairs = [make_framework_pair(1.5, batch_size=size) for size in range(1, MAX_FOLLOWED // 2 + 2)]

    def list_ids(number: int) -> list[str]:
        table = make_faster_table(analyze_run(collect(*(one for pair in pairs[:number] for one in pair))))
        assert table is not None
        return list(table.rows["cell_id"])

    assert [len(text.split()) for text in list_ids(MAX_FOLLOWED // 2)] == [MAX_FOLLOWED]
    assert list_ids(MAX_FOLLOWED // 2 + 1) == [""]


def test_a_row_says_how_many_repeats_count_in_its_own_ratios(collect: Collect) -> None:
    """Two repeats in one kind of work had been said of the whole comparison."""
    graph = make_cell(framework="tensorflow", mode="graph", phase="infer")
    two = make_spread(make_cell(phase="infer"), 0.1) + make_repeats(graph, 0.05, 0.05, environment=TENSORFLOW)
    rows = read_rows(collect, [*make_framework_pair(1.5), *two])
    assert [(row[2], row[5]) for row in rows] == [
        ("PyTorch eager", "3"),
        ("TensorFlow graph", "2 and 3"),
    ]


def make_modes(*, compiled: float) -> list[Result]:
    """Return TensorFlow in three modes and PyTorch in one, on a GPU."""
    modes = {"eager": 0.4, "graph": 0.1, "compiled": compiled}
    results = make_spread(make_cell(device="gpu"), 0.1, GPU_PYTORCH)
    for mode, seconds in modes.items():
        cell = make_cell(device="gpu", framework="tensorflow", mode=mode)
        results += make_spread(cell, seconds, GPU_TENSORFLOW)
    return results


def test_what_isolates_xla_stands_first_among_modes_and_a_mode_that_nobody_planned_is_named(collect: Collect) -> None:
    rows = read_rows(collect, make_modes(compiled=0.05))
    assert [row[0] for row in rows] == [
        "TensorFlow, training: compiled against graph, XLA alone",
        "TensorFlow, training: graph against eager",
        "TensorFlow, training: compiled against eager",
        "PyTorch compiled (torch.compile)",
    ]
    assert rows[0][2] == "compiled"
    assert rows[-1][1:] == ("", "not planned", "", "")
    first, *others = select_texts(answer(collect, make_modes(compiled=0.05)), "modes")
    assert " Not planned: PyTorch compiled (torch.compile)." in first
    assert not any("Not planned" in text for text in others)
    # Said there, it is not said again among what is not known.
    assert not any(
        "torch.compile" in text for text in select_texts(answer(collect, make_modes(compiled=0.05)), "not-planned")
    )


def test_a_single_pair_of_frameworks_is_left_to_the_table_of_the_fastest(collect: Collect) -> None:
    assert read_rows(collect, make_framework_pair(1.5)) == []


PROGRAMS = (
    *(("pytorch", mode) for mode in ("eager", "compiled")),
    *(("tensorflow", mode) for mode in ("eager", "graph", "compiled")),
    ("jax", "compiled"),
)


def test_the_table_is_bounded_and_says_of_how_many(collect: Collect) -> None:
    results = [
        result
        for phase in ("train", "infer")
        for framework, mode in PROGRAMS
        for precision, seconds in (("fp32", 0.4), ("tf32", 0.2), ("fp16", 0.1), ("bf16", 0.1))
        for result in make_spread(
            make_cell(device="gpu", phase=phase, framework=framework, mode=mode, precision=precision),
            seconds,
            GPU_PYTORCH,
        )
    ]
    table = make_faster_table(analyze_run(collect(*results)))
    assert table is not None
    assert table.rows["compared"].nunique() == MAX_GROUPS
    # Three precisions beside fp32, of six programs in two phases; their programs and modes do not differ.
    assert table.alike == "on one card unless a row says otherwise"
    assert table.remark == f"The first {MAX_GROUPS} of 36 comparisons of two sides."
