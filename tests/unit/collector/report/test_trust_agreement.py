"""Whether the repeats of a cell agree, as the lines on trust say it."""

from typing import Any

import pytest

from factories import make_cell, make_environment, make_result
from measured_runs import Collect
from trust_lines import make_two, read_lines

OTHER = make_cell(framework="tensorflow", mode="graph")
MORE = "More repeats would tell which speed is usual"


@pytest.mark.parametrize(
    ("results", "state"),
    [
        (make_two(), "good"),
        (make_two(seconds=(0.1, 0.13)), "beware"),
        (make_two()[:1], "unknown"),
    ],
)
def test_agreement_is_of_repeats_beside_the_spread_of_their_steps(
    collect: Collect, results: list[Any], state: str
) -> None:
    assert read_lines(collect, *results)["Agreement"].state == state


def test_repeats_that_agree_are_said_how_far_the_farthest_of_a_cell_lie_apart(collect: Collect) -> None:
    """A sign that nothing is against it stood beside repeats 23 % apart, whose steps spread as much."""
    near = read_lines(collect, *make_two(seconds=(0.1, 0.104)), *make_two(OTHER))["Agreement"]
    assert near.state == "good"
    assert near.text == (
        "The repeats of all 2 cells agree within the spread of their steps; the farthest lie 4.0 % apart "
        "(conv6 train, PyTorch eager)."
    )
    wide = [
        make_result(make_cell(), repeat=repeat, step_seconds=steps)
        for repeat, steps in enumerate(((0.08, 0.1, 0.15), (0.08, 0.123, 0.15)), start=1)
    ]
    far = read_lines(collect, *wide)["Agreement"]
    assert far.state == "beware"
    assert far.text == (
        "Repeats of one cell lie up to 23.0 % apart (conv6 train, PyTorch eager); in the cell no farther than their "
        "steps spread."
    )


def make_on_hosts(cell: Any, *hosts: str) -> list[Any]:
    return [
        make_result(cell, repeat=repeat, step_seconds=(0.1,) * 3, environment=make_environment(hostname=host))
        for repeat, host in enumerate(hosts, start=1)
    ]


@pytest.mark.parametrize(
    ("others", "seconds", "state", "words"),
    [
        (make_on_hosts(OTHER, "bench-1", "bench-2"), (0.1, 0.1), "unknown", "Of 1 of 2 cells it is not known."),
        (make_two(OTHER)[:1], (0.1, 0.1), "unknown", "Of 1 of 2 cells it is not known."),
        (
            make_on_hosts(OTHER, "bench-1", "bench-2"),
            (0.1, 0.13),
            "beware",
            f"{MORE}; of 1 other it is not known whether they agree.",
        ),
        (make_two(OTHER), (0.1, 0.1), "good", "The repeats of all 2 cells agree within the spread of their steps."),
    ],
)
def test_agreement_is_judged_only_of_cells_with_two_repeats_on_one_machine(
    collect: Collect, others: list[Any], seconds: tuple[float, float], state: str, words: str
) -> None:
    line = read_lines(collect, *make_two(seconds=seconds), *others)["Agreement"]
    assert (line.state, line.text.endswith(words)) == (state, True), line.text


def test_repeats_that_disagree_are_named_with_how_far_they_lie_apart(collect: Collect) -> None:
    line = read_lines(collect, *make_two(seconds=(0.1, 0.13)), *make_two(OTHER))["Agreement"]
    assert line.text == (
        "The repeats of 1 of 2 cells disagree (conv6 train, PyTorch eager, 1 of 2 takes 30 % longer: 100 and 130 ms). "
        f"{MORE}."
    )


def test_of_many_cells_whose_repeats_disagree_the_first_are_named(collect: Collect) -> None:
    cells = [make_cell(batch_size=size) for size in (1, 2, 4, 8)]
    results = [result for cell in cells for result in make_two(cell, seconds=(0.1, 0.13))]
    apart = "PyTorch eager, 1 of 2 takes 30 % longer: 100 and 130 ms"
    assert read_lines(collect, *results)["Agreement"].text == (
        f"The repeats of 4 of 4 cells disagree (conv6 train, batch 1, {apart}; "
        f"conv6 train, batch 2, {apart} and 2 more). {MORE}."
    )


def test_agreement_across_machines_alone_is_not_known(collect: Collect) -> None:
    line = read_lines(collect, *make_on_hosts(make_cell(), "bench-1", "bench-2"))["Agreement"]
    assert line.state == "unknown"
    assert line.text == "Whether repeats of a cell agree is not known: no cell has two on one machine."
