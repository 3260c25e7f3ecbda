"""Which differences the planned repeats will show, by the spread of earlier ones, before anything is measured."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bench.schema import Cell, PlannedCell, Run
from bench.store import Store
from collector.analysis import analyze_run
from collector.ratio_words import count_tested
from collector.results.load import load_run
from collector.statistics import RepeatVariances, count_repeats_to_show, find_power, find_shown_difference
from factories import make_cell, make_environment, make_result, make_run
from runner.estimates import describe_expected_precision, read_alike_runs
from two_runs import EVEN, put_run

EAGER, COMPILED = make_cell(batch_size=8), make_cell(batch_size=8, mode="compiled")


def plan(*cells: Cell, repeats: int = 3) -> Run:
    run = make_run(cells)
    planned = tuple(PlannedCell(cell=cell, repeats=repeats, timeout_seconds=600.0) for cell in cells)
    return run.model_copy(update={"cells": planned})


def describe(directory: Path, *cells: Cell, repeats: int = 3) -> list[str]:
    store = Store.open(f"file://{directory}")
    return list(
        describe_expected_precision(store, read_alike_runs(store, lambda _: True), plan(*cells, repeats=repeats))
    )


def find_variance(medians: Sequence[float]) -> RepeatVariances:
    logs = [math.log(value) for value in medians]
    variance = sum((log - sum(logs) / len(logs)) ** 2 for log in logs) / (len(logs) - 1)
    return RepeatVariances(one=variance, other=variance)


def test_the_spread_of_near_cells_says_what_will_be_shown(tmp_path: Path) -> None:
    near = {make_cell(input_size=size): EVEN for size in (32, 64, 96)}
    put_run(tmp_path, "a", {**near, make_cell(model="vgg16"): (0.1, 0.2, 0.3)})
    [line] = describe(tmp_path, EAGER, COMPILED)
    variances = find_variance(EVEN)
    shown = find_shown_difference(variances, 3, 1)
    assert shown is not None
    deviation = 100 * math.expm1(math.sqrt(variances.one))
    assert f"differed by {deviation:.2g} % here before (standard deviation, of 3 cells)" in line
    assert f"3 repeats a side show a difference of {100 * math.expm1(shown):.2g} % in most cases" in line
    assert f"10 % takes {count_repeats_to_show(math.log(1.1), variances, 1)} repeats (" in line
    assert math.isclose(find_power(shown, *variances.expect_variance(3), 1), 0.8, abs_tol=0.01)


def test_the_spread_between_machines_is_not_that_of_repeats(tmp_path: Path) -> None:
    on_machines = [
        make_result(
            repeat=number,
            step_seconds=(seconds,) * 3,
            run_id="a",
            environment=make_environment(hostname=f"bench-{number}"),
        )
        for number, seconds in enumerate((0.1, 0.11, 0.12), start=1)
    ]
    put_run(tmp_path, "a", {}, *on_machines)
    assert describe(tmp_path, EAGER, COMPILED) == []
    put_run(tmp_path, "b", {make_cell(): EVEN})
    [line] = describe(tmp_path, EAGER, COMPILED)
    assert "(standard deviation, of 1 cell)" in line


PROGRAMS = (
    ("pytorch", "eager"),
    ("pytorch", "compiled"),
    ("tensorflow", "eager"),
    ("tensorflow", "graph"),
    ("tensorflow", "compiled"),
    ("jax", "compiled"),
)


def make_programs(**fields: Any) -> list[Cell]:
    return [make_cell(framework=framework, mode=mode, **fields) for framework, mode in PROGRAMS]


@pytest.mark.parametrize(
    ("kinds", "number"),
    [
        ([{}], 8),
        ([{"phase": "train"}, {"phase": "infer"}], 16),
        ([{"phase": phase, "device": device} for phase in ("train", "infer") for device in ("cpu", "gpu")], 32),
    ],
)
def test_as_many_ratios_are_adjusted_together_as_the_largest_table_of_the_report_has(
    tmp_path: Path, kinds: list[dict[str, str]], number: int
) -> None:
    cells = [cell for kind in kinds for cell in make_programs(**kind)]
    put_run(tmp_path, "a", dict.fromkeys(cells, EVEN))
    tables = analyze_run(load_run(Store.open(f"file://{tmp_path}"), "a")).comparisons.values()
    assert max(map(count_tested, tables)) == number
    lines = describe(tmp_path, *cells)
    assert len(lines) == len({cell.device for cell in cells})
    assert all(f", {number} ratios judged together" in line for line in lines)


def test_nothing_is_said_where_nothing_is_known_or_compared(tmp_path: Path) -> None:
    put_run(tmp_path, "a", {make_cell(model="vgg16"): EVEN})
    assert describe(tmp_path, EAGER, COMPILED) == []
    put_run(tmp_path, "b", {make_cell(): EVEN})
    assert describe(tmp_path, EAGER) == []
    assert describe(tmp_path, EAGER, COMPILED, repeats=1) == []
