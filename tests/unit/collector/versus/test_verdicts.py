"""A verdict needs evidence either way: for a difference beyond the floor, or for none."""

import math
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.statistics import Estimate, RepeatVariances, estimate_center, estimate_ratio
from collector.versus.noise import NONE, Component
from collector.versus.verdicts import RatioTest, advise, count_repeats, judge

SILENT = Component(log_variance=1e-12, degrees_of_freedom=None)
FLOOR = 0.03


def make_test(
    ratio: float,
    error: float,
    *,
    freedom: float = 4,
    noise: Component = SILENT,
    floor: float = FLOOR,
    share: float = 1,
    shares: tuple[float, float] = (0.5, 0.5),
) -> RatioTest:
    """Return the test of a ratio of three repeats a side, of whose variance the sides have these shares."""
    estimate = Estimate(center=ratio, log_standard_error=error, degrees_of_freedom=freedom)
    one, other = (3 * error**2 * part for part in shares)
    variances = RepeatVariances(one=one, other=other)
    return RatioTest(ratio=estimate, noise=noise, runs_share=share, least_floor=floor, variances=variances)


@pytest.mark.parametrize(
    ("ratio", "error", "decision"),
    [
        (1.10, 0.01, "worse"),
        (0.90, 0.01, "better"),
        (1.00, 0.01, "same"),  # t(4) is 2.78: 0.97 to 1.03
        (1.00, 0.02, "undecided"),
        (1.10, 0.05, "undecided"),
        (1.02, 0.001, "same"),  # a difference without doubt, and below the floor
        (1.025, 0.006, "undecided"),  # as sure, but not that it is below the floor
    ],
)
def test_the_verdict_on_one_ratio(ratio: float, error: float, decision: str) -> None:
    [verdict] = judge([make_test(ratio, error)])
    assert verdict.decision == decision


def test_a_difference_that_identical_runs_show_too_is_no_difference() -> None:
    nights = Component(log_variance=2 * 0.03**2, degrees_of_freedom=None)
    [quiet] = judge([make_test(1.07, 0.001, floor=0.0)])
    [noisy] = judge([make_test(1.07, 0.001, noise=nights, floor=0.0)])
    assert (quiet.decision, noisy.decision) == ("worse", "same")


def test_noise_that_is_hardly_known_makes_a_difference_hard_to_show() -> None:
    known = Component(log_variance=0.01**2, degrees_of_freedom=None)
    guessed = Component(log_variance=0.01**2, degrees_of_freedom=1)
    decisions = [judge([make_test(1.05, 0.001, noise=noise)])[0].decision for noise in (known, guessed)]
    assert decisions == ["worse", "undecided"]


@pytest.mark.parametrize(
    ("own_deviation", "decision"),
    [
        (0.0, "worse"),  # a cell that varies less than the others is not known better than they are
        (0.005, "worse"),
        (0.019, "worse"),  # 2.6 standard deviations, which are known as well as those of all cells
        (0.025, "undecided"),  # stands out: t(1) is 12.7 for 5 %
    ],
)
def test_a_cell_that_varied_more_than_the_others_has_to_differ_by_more(own_deviation: float, decision: str) -> None:
    noise = Component(log_variance=0.01**2, degrees_of_freedom=10)
    own = Component(log_variance=own_deviation**2, degrees_of_freedom=1)
    test = replace(make_test(1.05, 0.001, noise=noise), own=own)
    [verdict, _] = judge([test, make_test(1.0, 0.001)])
    assert verdict.decision == decision


def test_many_ratios_are_adjusted_for_their_number() -> None:
    one = make_test(1.06, 0.015)
    assert judge([one])[0].decision == "worse"
    others = [make_test(1.0, 0.001) for _ in range(9)]
    verdicts = judge([one, *others])
    assert verdicts[0].decision == "undecided"
    assert verdicts[0].p_adjusted == pytest.approx(10 * verdicts[0].p_value)


COMPONENTS = st.builds(
    Component,
    log_variance=st.floats(-14, -3).map(math.exp),
    degrees_of_freedom=st.none() | st.floats(1, 30),
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
        assert (verdict.decision == "worse") is (low > 1 and is_beyond)
        assert (verdict.decision == "better") is (high < 1 and is_beyond)


@pytest.mark.parametrize("shares", [(0.5, 0.5), (1.0, 0.0)])
@pytest.mark.parametrize(("ratio", "floor"), [(1.08, 0.0), (1.2, 0.0), (1.0, 0.05)])
def test_so_many_repeats_decide_in_four_of_five_cases(ratio: float, floor: float, shares: tuple[float, float]) -> None:
    test = make_test(ratio, 0.04 if floor == 0 else 0.02, floor=floor, shares=shares)
    number = count_repeats(test, 4)
    assert number is not None
    assert advise(test, 4) == f"about {number} repeats a side would decide it"
    # The same repeats drawn anew, judged by the code of the command: as one of four, the others without a difference.
    decided = {count: _count_decided(test, count, ratio) for count in (number - 1, number)}
    assert decided[number - 1] < 0.87
    assert 0.73 < decided[number]


def _count_decided(test: RatioTest, count: int, ratio: float, num_cases: int = 600) -> float:
    random = Random(f"{count} {ratio}")
    assert test.variances is not None
    deviations = [math.sqrt(variance) for variance in (test.variances.one, test.variances.other)]

    def draw(center: float, deviation: float) -> Estimate:
        return estimate_center([center * math.exp(random.gauss(0, deviation)) for _ in range(count)])

    drawn = [
        replace(test, ratio=estimate_ratio(draw(ratio, deviations[0]), draw(1.0, deviations[1])))
        for _ in range(num_cases)
    ]
    others = [replace(test, ratio=Estimate(center=1.0, log_standard_error=0.01, degrees_of_freedom=4))] * 3
    return sum(judge([one, *others])[0].decision != "undecided" for one in drawn) / num_cases


def test_a_ratio_further_from_one_takes_fewer_repeats_though_its_interval_is_wider() -> None:
    wide, narrow = make_test(0.82, 0.08, floor=0.0), make_test(0.95, 0.04, floor=0.0)
    numbers = [count_repeats(test, 1) for test in (wide, narrow)]
    assert None not in numbers
    assert numbers == sorted(numbers, key=lambda number: number or 0)


def test_no_number_of_repeats_overcomes_the_noise_of_runs() -> None:
    nights = Component(log_variance=0.03**2, degrees_of_freedom=None)
    test = make_test(1.065, 0.01, noise=nights)
    assert count_repeats(test, 10) is None
    assert advise(test, 10).startswith("even 50 repeats a side would not decide it, as identical runs vary too much")


@pytest.mark.parametrize(("ratio", "floor", "bound"), [(1.0299, FLOOR, "the floor"), (1.002, 0.0, "1")])
def test_a_ratio_that_is_near_what_it_is_held_against_is_left_open(ratio: float, floor: float, bound: str) -> None:
    assert advise(make_test(ratio, 0.02, floor=floor, noise=NONE), 1).endswith(f"so near is the ratio to {bound}")


def test_where_machines_are_the_observations_more_repeats_are_not_advised() -> None:
    test = replace(make_test(1.05, 0.05), variances=None)
    assert advise(test, 1) == "more machines of each side would decide it"


def test_runs_decide_where_sides_have_several() -> None:
    assert advise(make_test(1.0, 0.05, share=0.0), 1) == "more runs of each side would decide it"
    nights = Component(log_variance=0.03**2, degrees_of_freedom=None)
    assert judge([make_test(1.08, 0.01, noise=nights, floor=0.0, share=0.0)])[0].p_value < 0.01
    assert math.isclose(make_test(1.08, 0.01, noise=nights, share=0.0).excess, 0.0)


def test_nothing_is_the_same_where_identical_runs_differ_by_half() -> None:
    wild = Component(log_variance=0.25**2, degrees_of_freedom=None)
    test = make_test(1.0, 0.001, noise=wild)
    assert judge([test])[0].decision == "undecided"
    assert advise(test, 1).startswith("identical runs differ too much")
    assert judge([make_test(1.0, 0.001, noise=wild, floor=0.7)])[0].decision == "same"
