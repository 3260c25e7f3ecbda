"""Pairs of work that was measured in very many environments or with very many protocols: their number is bounded."""

from collections.abc import Iterable

import pandas as pd

from bench.schema import Result
from collector.comparisons import DEVICES, FRAMEWORKS, MAX_ROWS_OF_WORK, compare_cells
from collector.results.summary import summarize_cells
from factories import make_cell, make_environment, make_gpu
from measured_runs import Collect, make_repeats

NUM_ENVIRONMENTS = MAX_ROWS_OF_WORK + 10
FEW = "50 of 60 cells and environments with this work are compared"


def test_a_setting_that_differs_in_each_repeat_makes_no_pair_of_each_with_each(collect: Collect) -> None:
    results = [*_vary_settings("pytorch"), *_vary_settings("tensorflow")]
    pairs = compare_cells(summarize_cells(collect(*results, repeats=NUM_ENVIRONMENTS)), FRAMEWORKS)
    assert len(pairs) == MAX_ROWS_OF_WORK**2
    assert pairs["note"].str.contains(f"; {FEW}; PyTorch: ").all()
    assert pairs["note"].str.contains(f"PyTorch: .*; {FEW}$").all()


def test_both_sides_of_many_machines_keep_the_same_hardware(collect: Collect) -> None:
    results = [
        result.model_copy(update={"environment": make_environment(cpu_model=f"model {number}")})
        for framework in ("pytorch", "tensorflow")
        for number, result in enumerate(make_repeats(make_cell(framework=framework), *(0.1,) * NUM_ENVIRONMENTS))
    ]
    pairs = compare_cells(summarize_cells(collect(*results, repeats=NUM_ENVIRONMENTS)), FRAMEWORKS)
    assert len(pairs) == MAX_ROWS_OF_WORK
    assert pairs["cpu_model_subject"].to_list() == pairs["cpu_model_reference"].to_list()
    assert pairs["ratio"].notna().all()


def test_one_side_alone_may_have_many_environments(collect: Collect) -> None:
    """Its rows are limited, and those of the other side are not said to be."""
    gpu = make_repeats(make_cell(device="gpu"), 0.01, environment=make_environment(gpus=(make_gpu(),)))
    pairs = compare_cells(summarize_cells(collect(*_vary_settings("pytorch"), *gpu, repeats=60)), DEVICES)
    assert len(pairs) == MAX_ROWS_OF_WORK
    assert pairs["note"].str.contains(FEW).all()
    assert not pairs["note"].str.contains(f"T4: [^;]*{FEW}").any()


def test_protocols_that_differ_make_no_pair_of_each_with_each(collect: Collect) -> None:
    cells = [
        make_cell(framework=framework, max_warmup_seconds=float(number))
        for framework in ("pytorch", "tensorflow")
        for number in range(1, NUM_ENVIRONMENTS + 1)
    ]
    pairs = compare_cells(
        _summarize(collect, (result for cell in cells for result in make_repeats(cell, 0.1))), FRAMEWORKS
    )
    assert len(pairs) == MAX_ROWS_OF_WORK**2


def test_those_with_the_most_sound_repeats_are_kept(collect: Collect) -> None:
    often = make_cell(max_warmup_seconds=float(NUM_ENVIRONMENTS))
    cells = [make_cell(max_warmup_seconds=float(number)) for number in range(1, NUM_ENVIRONMENTS)]
    results = [result for cell in cells for result in make_repeats(cell, 0.1)]
    other = make_repeats(make_cell(framework="tensorflow"), 0.1)
    pairs = compare_cells(_summarize(collect, [*results, *make_repeats(often, 0.1, 0.1), *other]), FRAMEWORKS)
    assert len(pairs) == MAX_ROWS_OF_WORK
    assert often.cell_id in pairs["cell_id_reference"].to_list()


def test_as_many_as_the_limit_are_all_compared(collect: Collect) -> None:
    cells = [make_cell(max_warmup_seconds=float(number)) for number in range(1, MAX_ROWS_OF_WORK + 1)]
    results = [result for cell in cells for result in make_repeats(cell, 0.1)]
    pairs = compare_cells(
        _summarize(collect, [*results, *make_repeats(make_cell(framework="tensorflow"), 0.1)]), FRAMEWORKS
    )
    assert len(pairs) == MAX_ROWS_OF_WORK
    assert not pairs["note"].str.contains("are compared").any()


def _vary_settings(framework: str) -> list[Result]:
    cell = make_cell(framework=framework)
    return [
        result.model_copy(update={"environment": make_environment(settings={"cache": f"/tmp/{framework}-{number}"})})
        for number, result in enumerate(make_repeats(cell, *(0.1,) * NUM_ENVIRONMENTS))
    ]


def _summarize(collect: Collect, results: Iterable[Result]) -> pd.DataFrame:
    return summarize_cells(collect(*results))
