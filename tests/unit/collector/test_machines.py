"""Comparisons on one machine and across several: what they are called, and what their intervals rest on."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from bench.schema import Cell, Result
from collector.comparisons import DEVICES, FRAMEWORKS, Comparison, compare_cells
from collector.results.frames import Row, list_rows
from collector.results.summary import summarize_cells
from collector.statistics import estimate_center, estimate_ratio, measure
from factories import make_cell, make_environment, make_gpu, make_result
from intervals import measure_coverage
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


def compare(collect: Collect, *results: Result, comparison: Comparison = FRAMEWORKS, repeats: int = 4) -> Row:
    """Return the one pair of the results."""
    (row,) = list_rows(compare_cells(summarize_cells(collect(*results, repeats=repeats)), comparison))
    return row


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


@pytest.mark.parametrize(
    ("subjects", "references", "scope"),
    [
        (["h1:a"], ["h1:a"], "one card"),
        (["h1:a", "h1:b"], ["h1:b", "h1:a"], "2 cards"),
        (["h1:a"], ["h1:b"], "across machines, one card a side, of one host"),
        (["h1:a"], ["h2:a"], "across machines, one card a side"),
        (["h1:a", "h1:b"], ["h1:c", "h1:d"], "across machines, 2 cards a side, of one host"),
        (["h1:a", "h1:b"], ["h1:a"], "across machines, 2 cards and one card, of one host"),
        (["h1:a", "h2:b"], ["h1:c", "h2:d"], "across machines, 2 cards a side"),
    ],
)
def test_a_ratio_says_on_how_many_cards_it_rests(
    collect: Collect, subjects: list[str], references: list[str], scope: str
) -> None:
    results = [
        result
        for cell, machines in ((TENSORFLOW, subjects), (PYTORCH, references))
        for number, machine in enumerate(machines)
        for result in make_on(cell, machine, 1.0, 1.1, first=1 + 2 * number)
    ]
    assert compare(collect, *results)["scope"] == scope


@pytest.mark.parametrize(
    ("types", "scope"),
    [
        (("n1-standard-8", "n1-standard-8"), "across machines, one card a side, n1-standard-8"),
        (("n1-standard-8", "n1-standard-4"), "across machines, one card a side, n1-standard-4 / n1-standard-8"),
        (("n1-standard-8", None), "across machines, one card a side, unknown / n1-standard-8"),
        ((None, None), "across machines, one card a side"),
    ],
)
def test_a_ratio_names_the_machine_types_of_a_clusters_nodes(
    collect: Collect, types: tuple[str | None, str | None], scope: str
) -> None:
    collection = collect(*make_on(PYTORCH, "h1:a", 1.0, 1.1), *make_on(TENSORFLOW, "h2:b", 1.0, 1.1), repeats=2)
    by_host = dict(zip(("h1", "h2"), types, strict=True))
    placed = collection.results.assign(instance_type=collection.results["hostname"].map(by_host).astype("str"))
    (row,) = list_rows(compare_cells(summarize_cells(replace(collection, results=placed)), FRAMEWORKS))
    assert row["scope"] == scope


def test_a_cpu_is_a_machine_and_a_gpu_over_its_hosts_cpu_is_one_card_and_its_host(collect: Collect) -> None:
    cpu = make_on(make_cell(), "h1", 1.0, 1.1)
    frameworks = compare(collect, *cpu, *make_on(make_cell(framework="tensorflow"), "h1", 1.0, 1.1))
    assert frameworks["scope"] == "one machine"
    assert compare(collect, *cpu, *make_on(PYTORCH, "h1:a", 0.1, 0.2), comparison=DEVICES)["scope"] == (
        "one card and its host"
    )


def test_a_ratio_across_two_single_cards_is_named_so_and_has_the_repeats_interval(collect: Collect) -> None:
    over, under = [1.03, 1.04, 1.05], [1.0, 1.01, 1.02]
    row = compare(collect, *make_on(TENSORFLOW, "h1:b", *over), *make_on(PYTORCH, "h1:a", *under), repeats=3)
    assert row["note"] == "across machines: TensorFlow on h1 GPU-b; PyTorch on h1 GPU-a"
    bounds = stats.ttest_ind(np.log(over), np.log(under), equal_var=False).confidence_interval(0.95)
    assert (row["ratio_low"], row["ratio_high"]) == pytest.approx((math.exp(bounds.low), math.exp(bounds.high)))
    assert row["decision"] == "machines differ"
    assert math.isnan(row["p_value"])


def test_with_two_cards_a_side_the_card_is_a_random_effect(collect: Collect) -> None:
    over, under = {"h1:c": (1.3, 1.32), "h1:d": (1.2, 1.25)}, {"h1:a": (1.0, 1.01), "h1:b": (1.05, 1.06)}
    results = [
        result
        for cell, sides in ((TENSORFLOW, over), (PYTORCH, under))
        for number, (machine, medians) in enumerate(sides.items())
        for result in make_on(cell, machine, *medians, first=1 + 2 * number)
    ]
    row = compare(collect, *results)
    means = [[np.log(medians).mean() for medians in sides.values()] for sides in (over, under)]
    oracle = stats.ttest_ind(*means, equal_var=False)
    assert row["p_value"] == pytest.approx(oracle.pvalue)
    bounds = oracle.confidence_interval(0.95)
    assert (row["ratio_low"], row["ratio_high"]) == pytest.approx((math.exp(bounds.low), math.exp(bounds.high)))
    assert row["note"].endswith("the machine is a random effect: the interval is from the mean of each")


def test_on_the_same_cards_the_ratio_is_taken_on_each(collect: Collect) -> None:
    over, under = {"h1:a": 1.1, "h1:b": 2.3, "h1:c": 2.9}, {"h1:c": 3.0, "h1:a": 1.0, "h1:b": 2.0}
    results = [
        result
        for cell, sides in ((TENSORFLOW, over), (PYTORCH, under))
        for number, (machine, median) in enumerate(sides.items(), start=1)
        for result in make_on(cell, machine, median, first=number)
    ]
    row = compare(collect, *results, repeats=3)
    oracle = stats.ttest_rel(np.log([1.1, 2.3, 2.9]), np.log([1.0, 2.0, 3.0]))
    assert row["p_value"] == pytest.approx(oracle.pvalue)
    assert "the machine is a random effect: the interval is from its ratio on each" in row["note"]


def test_the_interval_from_the_cards_holds_the_ratio_of_the_kind_where_that_from_the_repeats_does_not() -> None:
    """Two cards a side that differ by 3 % as a rule; the whole table is that of benchmarks/interval_coverage.py."""
    rng = np.random.default_rng(5)
    cards = 0.03 / math.sqrt(2) * rng.standard_normal((1000, 2, 2, 1))
    times = np.exp(cards + 0.01 * rng.standard_normal((1000, 2, 2, 3))).reshape(1000, 2, 6)
    names = ["a"] * 3 + ["b"] * 3
    from_cards = [estimate_ratio(*(measure(list(side), names).estimate for side in pair)) for pair in times]
    from_repeats = [estimate_ratio(*(estimate_center(list(side)) for side in pair)) for pair in times]
    assert measure_coverage(from_cards) > 0.94
    assert measure_coverage(from_repeats) < 0.8
