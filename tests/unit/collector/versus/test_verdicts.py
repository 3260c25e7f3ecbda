"""A verdict needs evidence either way: for a difference beyond the floor, or for none."""

import math
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.power import TTestIndPower

from collector.statistics import Estimate, estimate_center, estimate_ratio
from collector.versus.sides import NONE, Component
from collector.versus.verdicts import RatioTest, advise, count_repeats, judge
from collector.versus.words import explain

FLOOR = 0.03


def know(deviation: float, freedom: float | None = None) -> Component:
    """Return noise of this standard deviation of the log, known with so many degrees of freedom."""
    return Component(log_variance=deviation**2, degrees_of_freedom=freedom)


SILENT = know(1e-6)
NIGHTS = know(0.03)


def make_test(
    ratio: float,
    error: float,
    *,
    freedom: float = 4,
    noise: Component = SILENT,
    own: Component = NONE,
    floor: float = FLOOR,
    share: float = 1,
    shares: tuple[float, float] | None = (0.5, 0.5),
) -> RatioTest:
    """Return the test of a ratio of three repeats a side, of whose variance the sides have these shares."""
    estimate = Estimate(center=ratio, log_standard_error=error, degrees_of_freedom=freedom)
    variances = shares and tuple(3 * error**2 * share for share in shares)
    return RatioTest(ratio=estimate, noise=noise, runs_share=share, least_floor=floor, variances=variances, own=own)


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        (make_test(1.10, 0.01), "above"),
        (make_test(0.90, 0.01), "below"),
        (make_test(1.00, 0.01), "same"),  # t(4) is 2.78: 0.97 to 1.03
        (make_test(1.00, 0.02), "undecided"),
        (make_test(1.10, 0.05), "undecided"),
        (make_test(1.02, 0.001), "same"),  # a difference without doubt, and below the floor
        (make_test(1.025, 0.006), "undecided"),  # as sure, but not that it is below the floor
        # Identical runs show such a difference too.
        (make_test(1.07, 0.001, floor=0.0), "above"),
        (make_test(1.07, 0.001, floor=0.0, noise=know(0.03 * math.sqrt(2))), "same"),
        # By how much they differ is hardly known.
        (make_test(1.05, 0.001, noise=know(0.01)), "above"),
        (make_test(1.05, 0.001, noise=know(0.01, 1)), "undecided"),
        # Several runs a side show it themselves.
        (make_test(1.10, 0.01, noise=know(0.03, 1), floor=0.0), "undecided"),
        (make_test(1.10, 0.01, noise=know(0.03, 1), floor=0.0, share=0.0), "above"),
        # Nothing is the same where they differ by half, unless the user says so.
        (make_test(1.0, 0.001, noise=know(0.25)), "undecided"),
        (make_test(1.0, 0.001, noise=know(0.25), floor=0.7), "same"),
    ],
)
def test_the_verdict_on_one_ratio(test: RatioTest, expected: str) -> None:
    [verdict] = judge([test])
    assert verdict.verdict == expected


@pytest.mark.parametrize(
    ("own_deviation", "expected"),
    [
        (0.0, "above"),  # a cell that varies less than the others is not known better than they are
        (0.005, "above"),
        (0.019, "above"),  # 2.6 standard deviations, which are known as well as those of all cells
        (0.025, "undecided"),  # stands out: t(1) is 12.7 for 5 %
    ],
)
def test_a_cell_that_varied_more_than_the_others_has_to_differ_by_more(own_deviation: float, expected: str) -> None:
    test = make_test(1.05, 0.001, noise=know(0.01, 10), own=know(own_deviation, 1))
    [verdict, _] = judge([test, make_test(1.0, 0.001)])
    assert verdict.verdict == expected


def test_many_ratios_are_adjusted_for_their_number() -> None:
    one = make_test(1.06, 0.015)
    assert judge([one])[0].verdict == "above"
    others = [make_test(1.0, 0.001) for _ in range(9)]
    verdicts = judge([one, *others])
    assert verdicts[0].verdict == "undecided"
    assert verdicts[0].p_adjusted == pytest.approx(10 * verdicts[0].p_value)


COMPONENTS = st.builds(
    Component, log_variance=st.floats(-14, -3).map(math.exp), degrees_of_freedom=st.none() | st.floats(1, 30)
)
TESTS = st.builds(
    make_test,
    st.floats(-0.4, 0.4).map(math.exp),
    st.floats(-8, -1).map(math.exp),
    freedom=st.floats(1, 20),
    noise=COMPONENTS | st.just(NONE),
    floor=st.sampled_from([0.0, FLOOR]),
    share=st.sampled_from([0.0, 0.5, 1.0]),
)


@given(tests=st.lists(TESTS, min_size=1, max_size=10))
def test_b_differs_exactly_where_the_interval_that_is_shown_excludes_1_beyond_the_floor(tests: list[RatioTest]) -> None:
    for test, verdict in zip(tests, judge(tests), strict=True):
        low, high = verdict.joint_low, verdict.joint_high
        assert (low, high) == test.with_noise.find_joint_interval(len(tests))
        is_beyond = abs(math.log(test.ratio.center)) > test.log_floor
        assert (verdict.verdict == "above") is (low > 1 and is_beyond)
        assert (verdict.verdict == "below") is (high < 1 and is_beyond)


@pytest.mark.parametrize("shares", [(0.5, 0.5), (1.0, 0.0)])
@pytest.mark.parametrize(("ratio", "floor"), [(1.08, 0.0), (1.0, 0.05)])
def test_so_many_repeats_decide_in_four_of_five_cases(ratio: float, floor: float, shares: tuple[float, float]) -> None:
    test = make_test(ratio, 0.04 if floor == 0 else 0.02, floor=floor, shares=shares)
    number = count_repeats(test, 4)
    assert number is not None
    assert explain(advise(test, 4)) == f"about {number} repeats a side would decide it"
    # The same repeats drawn anew, judged by the code of the command: as one of four, the others without a difference.
    decided = {count: _count_decided(test, count, ratio) for count in (number - 1, number)}
    assert decided[number - 1] < 0.87
    assert 0.73 < decided[number]


def test_the_number_of_repeats_is_that_of_another_library_for_a_power_of_four_fifths() -> None:
    # The log ratio is 0.6 standard deviations of one repeat, whose variance is half of three squared errors.
    number = count_repeats(make_test(math.exp(0.6 * 0.01 * math.sqrt(1.5)), 0.01, noise=NONE, floor=0.0), 1)
    assert number == math.ceil(TTestIndPower().solve_power(0.6, power=0.8, alpha=0.05))


def _count_decided(test: RatioTest, count: int, ratio: float, num_cases: int = 600) -> float:
    random = Random(f"{count} {ratio}")
    assert test.variances is not None
    deviations = [math.sqrt(variance) for variance in test.variances]

    def draw(center: float, deviation: float) -> Estimate:
        return estimate_center([center * math.exp(random.gauss(0, deviation)) for _ in range(count)])

    drawn = [
        replace(test, ratio=estimate_ratio(draw(ratio, deviations[0]), draw(1.0, deviations[1])))
        for _ in range(num_cases)
    ]
    others = [replace(test, ratio=Estimate(center=1.0, log_standard_error=0.01, degrees_of_freedom=4))] * 3
    return sum(judge([one, *others])[0].verdict != "undecided" for one in drawn) / num_cases


def test_a_ratio_further_from_one_takes_fewer_repeats_though_its_interval_is_wider() -> None:
    wide, narrow = make_test(0.82, 0.08, floor=0.0), make_test(0.95, 0.04, floor=0.0)
    numbers = [count_repeats(test, 1) for test in (wide, narrow)]
    assert None not in numbers
    assert numbers == sorted(numbers, key=lambda number: number or 0)


def test_where_repeats_do_not_decide_it_is_said_what_would() -> None:
    advices = {
        "even 50 repeats a side would not decide it, as identical runs vary too much; several runs would": make_test(
            1.065, 0.01, noise=NIGHTS
        ),
        "even 50 repeats a side would not decide it, so near is the ratio to the floor": make_test(1.0299, 0.02),
        "even 50 repeats a side would not decide it, so near is the ratio to 1": make_test(
            1.002, 0.02, floor=0.0, noise=NONE
        ),
        "more machines of each side would decide it": make_test(1.05, 0.05, shares=None),
        "more runs of each side would decide it": make_test(1.0, 0.05, share=0.0),
        "identical runs differ too much for any answer: a machine that is left alone would decide it": make_test(
            1.0, 0.001, noise=know(0.25)
        ),
    }
    assert [explain(advise(test, 1)) for test in advices.values()] == [*advices]
