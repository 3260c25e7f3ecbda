"""Comparisons on one machine and across several: what they are called, and what their intervals rest on."""

import math

import numpy as np
import pytest
from scipy import stats

from bench.schema import Cell, Result
from collector.comparisons import FRAMEWORKS, compare_cells, describe_scope, is_confounded
from collector.results.frames import Row, list_rows
from collector.results.summary import describe_places, summarize_cells
from collector.statistics import divide, measure
from factories import make_cell, make_environment, make_gpu, make_result, present
from measured_runs import Collect

PYTORCH, TENSORFLOW = make_cell(device="gpu"), make_cell(device="gpu", framework="tensorflow")


def make_on(cell: Cell, machine: str, *medians: float, first: int = 1) -> list[Result]:
    """Return a result per median, measured on the host or, for a GPU cell, on host and cards (`host:a,b`)."""
    hostname, _, cards = machine.partition(":")
    gpus = tuple(make_gpu(uuid=f"GPU-{card}") for card in cards.split(",") if card)
    environment = make_environment(hostname=hostname, gpus=gpus)
    return [
        make_result(cell, repeat=number, step_seconds=(median,) * 3, environment=environment)
        for number, median in enumerate(medians, start=first)
    ]


def test_results_and_cells_name_the_machines_that_they_ran_on(collect: Collect) -> None:
    two = make_cell(device="gpu", num_gpus=2)
    results = [*make_on(two, "h1:b,a", 1.0, 1.0), *make_on(two, "h2:c,d", 1.0, first=3)]
    collection = collect(*results, *make_on(make_cell(), "h1", 1.0))
    assert collection.results["gpu_uuid"].dropna().to_list() == ["GPU-a, GPU-b"] * 2 + ["GPU-c, GPU-d"]
    assert collection.results["machine"].dropna().to_list() == ["h1 GPU-a GPU-b"] * 2 + ["h2 GPU-c GPU-d", "h1"]
    summary = summarize_cells(collection)
    assert summary["num_machines"].to_list() == [2, 1]
    assert summary["machines"].to_list() == ["h1 GPU-a GPU-b; h2 GPU-c GPU-d", "h1"]
    assert summary["note"][0] == "ran on 2 machines"


def make_side(machines: str, kind: str | None = None) -> Row:
    """Return where a cell ran: on cards (`h1:a h2:b`), or on hosts."""
    hosts = [machine.partition(":")[0] for machine in machines.split()]
    device = {"device": "gpu" if ":" in machines else "cpu", "num_gpus": 1}
    return device | describe_places(machines.split(), hosts, [kind] * len(hosts))


@pytest.mark.parametrize(
    ("subject", "reference", "scope"),
    [
        (("h1:a",), ("h1:a",), "one card"),
        (("h1:a h1:b",), ("h1:b h1:a",), "2 cards"),
        (("h1:a",), ("h1:b",), "across machines, one card a side, of one host"),
        (("h1:a",), ("h2:a",), "across machines, one card a side"),
        (("h1:a h1:b",), ("h1:c h1:d",), "across machines, 2 cards a side, of one host"),
        (("h1:a h1:b",), ("h1:a",), "across machines, 2 cards and one card, of one host"),
        (("h1:a h2:b",), ("h1:c h2:d",), "across machines, 2 cards a side"),
        (("h1",), ("h1",), "one machine"),
        (("h1:a",), ("h1",), "one card and its host"),
        (("h1:a",), ("h2",), "across machines, one card and one host"),
        (("h1:a", "n1"), ("h2:b", "n1"), "across machines, one card a side, n1"),
        (("h1:a", "n2"), ("h2:b", "n1"), "across machines, one card a side, n2 / n1"),
        (("h1:a",), ("h2:b", "n1"), "across machines, one card a side, unknown / n1"),
    ],
)
def test_a_ratio_says_on_how_many_machines_it_rests(subject: tuple[str], reference: tuple[str], scope: str) -> None:
    sides = make_side(*subject), make_side(*reference)
    assert describe_scope(*sides) == scope
    # Without a second machine on both sides nothing says by how much they differ; a GPU and a CPU do by nature.
    is_across_one = scope.startswith("across machines") and "one card" in scope and "host" not in scope.split(", of")[0]
    assert is_confounded(*sides) is is_across_one


def test_a_ratio_across_two_single_cards_is_named_so_and_has_the_repeats_interval(collect: Collect) -> None:
    over, under = [1.03, 1.04, 1.05], [1.0, 1.01, 1.02]
    collection = collect(*make_on(TENSORFLOW, "h1:b", *over), *make_on(PYTORCH, "h1:a", *under))
    (row,) = list_rows(compare_cells(summarize_cells(collection), FRAMEWORKS))
    assert row["note"] == "across machines: TensorFlow eager on h1 GPU-b; PyTorch eager on h1 GPU-a"
    bounds = stats.ttest_ind(np.log(over), np.log(under), equal_var=False).confidence_interval(0.95)
    assert (row["ratio_low"], row["ratio_high"]) == pytest.approx((math.exp(bounds.low), math.exp(bounds.high)))
    assert row["decision"] == "machines differ"
    assert row["p_value"] is None


def test_with_two_cards_a_side_the_card_is_a_random_effect() -> None:
    over, under = measure([1.3, 1.32, 1.2, 1.25], [*"ccdd"]), measure([1.0, 1.01, 1.05, 1.06], [*"aabb"])
    means = [[np.log(pair).mean() for pair in side] for side in (((1.3, 1.32), (1.2, 1.25)), ((1, 1.01), (1.05, 1.06)))]
    oracle = stats.ttest_ind(*means, equal_var=False)
    bounds = oracle.confidence_interval(0.95)
    assert divide(over, under).p_value == pytest.approx(oracle.pvalue)
    assert present(divide(over, under).interval) == pytest.approx((math.exp(bounds.low), math.exp(bounds.high)))


def test_on_the_same_cards_the_ratio_is_taken_on_each(collect: Collect) -> None:
    over, under = {"h1:a": 1.1, "h1:b": 2.3, "h1:c": 2.9}, {"h1:c": 3.0, "h1:a": 1.0, "h1:b": 2.0}
    results = [
        result
        for cell, sides in ((TENSORFLOW, over), (PYTORCH, under))
        for number, (machine, median) in enumerate(sides.items(), start=1)
        for result in make_on(cell, machine, median, first=number)
    ]
    (row,) = list_rows(compare_cells(summarize_cells(collect(*results)), FRAMEWORKS))
    oracle = stats.ttest_rel(np.log([1.1, 2.3, 2.9]), np.log([1.0, 2.0, 3.0]))
    assert row["p_value"] == pytest.approx(oracle.pvalue)
    assert "the machine is a random effect: the interval is from its ratio on each" in row["note"]
