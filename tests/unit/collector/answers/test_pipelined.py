"""How ratios of frameworks differ where steps are not waited for one by one."""

from collections.abc import Mapping

import pytest

from answered_runs import GPU_PYTORCH, GPU_TENSORFLOW, answer, make_spread, select_texts
from bench.schema import PipelinedWindow, Result
from factories import make_cell
from measured_runs import Collect

SIDES = {"pytorch": (make_cell(device="gpu"), GPU_PYTORCH)}
SIDES["tensorflow"] = (make_cell(device="gpu", framework="tensorflow", mode="graph"), GPU_TENSORFLOW)


def make_pair(waited: Mapping[str, float], pipelined: Mapping[str, float]) -> list[Result]:
    """Return repeats of both frameworks with the seconds of a step that is waited for, and of one that is not."""
    return [
        result
        for name, (cell, environment) in SIDES.items()
        for result in make_spread(
            cell,
            waited[name],
            environment,
            pipelined=PipelinedWindow(num_steps=100, seconds=100 * pipelined[name]) if name in pipelined else None,
        )
    ]


def find_texts(collect: Collect, waited: Mapping[str, float], pipelined: Mapping[str, float]) -> list[str]:
    return select_texts(answer(collect, make_pair(waited, pipelined)), "pipelined")


def test_the_ratio_of_pipelined_steps_stands_beside_that_of_steps_waited_for(collect: Collect) -> None:
    # 0.15 over 0.1 is 50 % longer, 0.12 over 0.1 is 20 %: the one ratio is a fifth below the other.
    texts = find_texts(collect, {"pytorch": 0.1, "tensorflow": 0.15}, {"pytorch": 0.1, "tensorflow": 0.12})
    assert texts == [
        "Back to back, as people train, the ratios of 1 pair of frameworks differ by up to 20.0 % from those above: "
        "conv6 train, TensorFlow graph takes 20.0 % longer than PyTorch eager, not 50.0 % longer. "
        "These have no interval."
    ]


def test_sides_that_change_places_are_named(collect: Collect) -> None:
    (text,) = find_texts(collect, {"pytorch": 0.1, "tensorflow": 0.105}, {"pytorch": 0.1, "tensorflow": 0.08})
    assert text.endswith(
        " In 1 the other side is ahead: conv6 train, PyTorch eager takes 25.0 % longer than TensorFlow graph. "
        "These have no interval."
    )


def test_a_tie_that_turns_is_said_to_be_one(collect: Collect) -> None:
    (text,) = find_texts(collect, {"pytorch": 0.1, "tensorflow": 0.1005}, {"pytorch": 0.1, "tensorflow": 0.08})
    assert "PyTorch eager takes 25.0 % longer than TensorFlow graph (above, no difference shown). These" in text


@pytest.mark.parametrize(
    "pipelined",
    [{"pytorch": 0.1, "tensorflow": 0.149}, {"pytorch": 0.1}, {}],
    ids=("alike", "one side alone", "not measured"),
)
def test_nothing_is_said_where_the_ratios_are_alike_or_not_known(
    collect: Collect, pipelined: Mapping[str, float]
) -> None:
    assert find_texts(collect, {"pytorch": 0.1, "tensorflow": 0.15}, pipelined) == []
