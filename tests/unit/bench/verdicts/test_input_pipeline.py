"""input-bound: what steps wait for data just within the bound and just beyond."""

import pytest

from bench.schema import Samples, Verdict
from bench.verdicts import judge_validity
from validity_inputs import list_verdicts, make_inputs


def make_samples(waits: tuple[float, ...] | None) -> Samples:
    return Samples(
        warmup_step_seconds=(0.1,),
        step_seconds=(0.1,) * 10,
        device_step_seconds=None,
        reached_steady=True,
        data_wait_seconds=waits,
        max_queued_batches=None if waits is None else 2,
    )


@pytest.mark.parametrize(
    ("waits", "expected"),
    [
        (None, []),
        ((0.0,) * 10, []),
        ((0.0099,) * 10, []),
        ((0.0101,) * 10, ["input-bound"]),
        ((0.099, *(0.0,) * 9), []),
        # Two workers that deliver together: a long wait in every other step, and none in the median step.
        ((0.03, 0.0) * 5, ["input-bound"]),
    ],
)
def test_a_tenth_of_the_window_spent_waiting_for_data_is_input_bound(
    waits: tuple[float, ...] | None, expected: list[Verdict]
) -> None:
    assert list_verdicts(make_inputs(samples=make_samples(waits))) == expected


def test_the_reason_says_how_long_the_steps_waited() -> None:
    (reason,) = judge_validity(make_inputs(samples=make_samples((0.04,) * 10))).reasons
    assert reason.message == (
        "steps waited for data in 40% of their time (40 ms each), more than 10%: the input pipeline set the pace"
    )


def test_waits_that_were_left_out_are_said_to_be_unchecked() -> None:
    line = "how long steps waited for data not observed"
    left_out = make_samples((0.0,) * 10).model_copy(update={"data_wait_seconds": None})
    assert line in judge_validity(make_inputs(samples=left_out)).unchecked
    assert line not in judge_validity(make_inputs(samples=make_samples((0.0,) * 10))).unchecked
    assert line not in judge_validity(make_inputs(samples=make_samples(None))).unchecked
