"""The checks of the series of step times: too-short, not-steady, noisy, input-bound, and held back by a quota."""

from random import Random
from statistics import fmean

import pytest

from bench.schema import Samples, Verdict
from bench.verdicts import judge_validity
from bench.verdicts.checks import check_rate, check_rate_drift, find_drift_bound, measure_drift, measure_spread
from factories import make_cpu_use
from validity_inputs import list_verdicts, make_inputs


@pytest.mark.parametrize(
    ("num_steps", "step_seconds", "expected"),
    [
        (10, 0.051, []),
        (10, 0.049, ["too-short"]),
        (9, 0.5, ["too-short"]),
        (6, 0.84, []),
        (6, 0.83, ["too-short"]),
        (5, 60.0, ["too-short"]),
        (1, 0.1, ["too-short", "too-short"]),
    ],
)
def test_a_window_needs_half_a_second_and_ten_steps_or_six_long_ones(
    num_steps: int, step_seconds: float, expected: list[Verdict]
) -> None:
    assert list_verdicts(make_inputs((step_seconds,) * num_steps)) == expected


def test_a_warm_up_that_was_cut_off_is_not_steady() -> None:
    assert list_verdicts(make_inputs(reached_steady=False)) == ["not-steady"]


@pytest.mark.parametrize(("last", "expected"), [(0.1049, []), (0.1051, ["not-steady"]), (0.094, ["not-steady"])])
def test_a_level_that_changes_within_the_window_is_not_steady(last: float, expected: list[Verdict]) -> None:
    assert list_verdicts(make_inputs((0.1,) * 10 + (last,) * 10)) == expected


@pytest.mark.parametrize(
    ("thirds", "expected"),
    [
        # Each third of 12 steps is three blocks of 4. 1.16 is 16% above 1.0.
        (((1.16, 1.16, 1.16), (1.16, 1.0, 1.0), (1.0, 1.0, 1.0)), ["not-steady"]),  # a level that is left
        (((1.16, 1.10, 1.07), (1.03, 1.02, 1.01), (1.0, 1.0, 1.0)), ["not-steady"]),  # a warm-up that goes on
        (((1.0, 1.02, 1.04), (1.06, 1.08, 1.10), (1.12, 1.14, 1.16)), ["not-steady"]),  # heat
        (((1.16, 1.16, 1.0), (1.0, 1.16, 1.0), (1.0, 1.0, 1.16)), []),  # two levels in turns
    ],
)
def test_a_drift_is_told_from_two_levels_in_turns(
    thirds: tuple[tuple[float, ...], ...], expected: list[Verdict]
) -> None:
    steps = tuple(0.1 * level for third in thirds for level in third for _ in range(4))
    assert abs(measure_drift(steps)) > find_drift_bound(steps)
    assert list_verdicts(make_inputs(steps)) == expected


def test_in_few_steps_one_outlier_does_not_hide_a_drift() -> None:
    # Thirds of 3 steps; the first step follows a pause.
    assert list_verdicts(make_inputs((0.13, *(0.1,) * 4, *(0.12,) * 5))) == ["not-steady"]


def test_noise_between_the_steps_widens_the_bound_of_a_drift_but_a_drift_does_not() -> None:
    drifting = tuple(1 + number / 100 for number in range(30))
    # Steps differ by 0.01 of a median of 1.145: far below what widens the bound.
    assert find_drift_bound(drifting) == 0.05
    noisy = (0.9, 1.1) * 15
    # 3 x 1.2533 x sqrt(2) x 1.0483 x 0.2 / 1.0 / sqrt(10) = 0.3525.
    assert find_drift_bound(noisy) == pytest.approx(0.3525, rel=1e-3)


def test_the_spread_is_the_scaled_median_absolute_deviation_over_the_median() -> None:
    # Median 10; deviations 1 0 0 2 90: their median is 1. The factor of five steps is 1.206.
    assert measure_spread((9.0, 10.0, 10.0, 12.0, 100.0)) == pytest.approx(1.206 * 0.14826)


@pytest.mark.parametrize("num_steps", [3, 6, 10, 30])
def test_the_spread_of_few_steps_is_right_on_average(num_steps: int) -> None:
    random = Random(num_steps)
    spreads = [measure_spread([random.gauss(100.0, 5.0) for _ in range(num_steps)]) for _ in range(4000)]
    assert fmean(spreads) == pytest.approx(0.05, rel=0.05)


@pytest.mark.parametrize(("spread", "expected"), [(0.00647, []), (0.00648, ["noisy"])])
def test_steps_that_spread_by_a_tenth_are_noisy(spread: float, expected: list[Verdict]) -> None:
    # Half of the steps at 0.1 - s, half at 0.1 + s: the deviation is s. Times 1.4826 and, of 20 steps, 20 / 19.2 it is
    # a tenth of the median at s = 0.006475.
    assert list_verdicts(make_inputs((0.1 - spread, 0.1 + spread) * 10)) == expected


def test_single_outliers_are_no_noise() -> None:
    assert list_verdicts(make_inputs((0.1,) * 15 + (0.9,) + (0.1,) * 4)) == []


def test_two_levels_are_noted_and_are_no_reason_by_themselves() -> None:
    steps = ((0.100,) * 6 + (0.112,) * 3) * 4
    samples = Samples(
        warmup_step_seconds=(0.1,),
        step_seconds=steps,
        reached_steady=True,
        summarized_by="mean",
    )
    validity = judge_validity(make_inputs(steps, samples=samples))
    assert validity.verdict == "valid"
    assert validity.notes == ("steps on two levels, 67% near 100 ms and 33% near 112 ms: the mean of the steps counts",)


def test_a_warm_up_that_ended_before_the_queue_was_used_up_says_so() -> None:
    samples = Samples(
        warmup_step_seconds=(0.1,) * 63,
        step_seconds=(0.1,) * 10,
        reached_steady=False,
        data_wait_seconds=(0.0,) * 10,
        max_queued_batches=32,
    )
    (reason,) = judge_validity(make_inputs(samples=samples)).reasons
    assert reason.message == (
        "the warm-up ended at its time limit, before it had taken twice the 32 batches that the input pipeline can "
        "hold ready (63 steps)"
    )


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([0.1, 0.3] * 45, []),  # in turns: they spread by half of their median
        # Nine blocks of ten steps, of 0.1 and 0.3 s in turns: they differ by 0.2 s from one to the next. The deviation
        # is 0.2 / root 2 of a mean of 0.189, 75 %, and that of the mean of nine blocks a third of it.
        ([0.1 + 0.2 * (block % 2) for block in range(9) for _ in range(10)], ["noisy"]),
        # Each block takes 3 % longer than the one before: the deviation is 3 % / root 2 of the mean, three standard
        # errors of the difference of thirds 5 %; the last third takes 18 % longer than the first.
        ([0.1 * (1 + 0.03 * block) for block in range(9) for _ in range(10)], ["not-steady"]),
        ([0.1 * (1 + 0.03 * block) for block in reversed(range(9)) for _ in range(10)], ["not-steady"]),
        ([0.1 * (1 + 0.005 * block) for block in range(9) for _ in range(10)], []),
        ([0.1, 0.5] * 4, []),  # too few to tell
        ([Random(seed).gauss(0.1, 0.01) for seed in range(90)], []),  # independent, with a spread of a tenth
    ],
)
def test_the_rate_of_a_tenant_is_judged_by_nine_blocks_of_steps(steps: list[float], expected: list[Verdict]) -> None:
    inputs = make_inputs(tuple(steps))
    checks = (("noisy", check_rate), ("not-steady", check_rate_drift))
    assert [verdict for verdict, check in checks if list(check(inputs))] == expected


def make_samples(waits: tuple[float, ...] | None) -> Samples:
    return Samples(
        warmup_step_seconds=(0.1,),
        step_seconds=(0.1,) * 10,
        reached_steady=True,
        data_wait_seconds=waits,
        max_queued_batches=None if waits is None else 2,
    )


@pytest.mark.parametrize(
    ("waits", "expected"),
    [
        (None, []),
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


def test_waits_that_were_left_out_are_said_to_be_unchecked() -> None:
    left_out = make_samples((0.0,) * 10).model_copy(update={"data_wait_seconds": None})
    assert "how long steps waited for data not observed" in judge_validity(make_inputs(samples=left_out)).unchecked


@pytest.mark.parametrize(("throttled_seconds", "expected"), [(0.09, []), (0.11, ["throttled"])])
def test_threads_that_the_quota_stops_for_a_twentieth_of_their_time_are_throttled(
    throttled_seconds: float, expected: list[Verdict]
) -> None:
    # Two threads in a window of 1 s have 2 s; that every period was cut is not what counts.
    use = make_cpu_use(
        window_seconds=1.0, num_periods=10, num_throttled_periods=10, throttled_seconds=throttled_seconds
    )
    assert list_verdicts(make_inputs(cpu_use=use)) == expected
