"""Streams of jobs: means, spreads and working hours as stated, and the same for every policy."""

from typing import Any

import numpy as np
import pytest

from access_scenarios import make_group
from collector.access.job_streams import JobStream, compute_offered_hours
from collector.access.working_time import WorkingTime

NUM_DRAWN = 20_000
SEED = (1, 2, 3)


def make_stream(seed: tuple[int, ...] = SEED, **given: Any) -> JobStream:
    group = make_group(**given)
    return JobStream(group, WorkingTime(group.working_hours, group.working_days), seed)


@pytest.mark.parametrize(
    ("given", "mean", "cv"),
    [
        ({"job_hours": (3.0,), "spread": "none"}, 3.0, 0.0),
        ({"job_hours": (3.0,), "spread": "exponential"}, 3.0, 1.0),
        ({"job_hours": (3.0,), "spread": "lognormal", "cv": 0.5}, 3.0, 0.5),
        # 1 and 3: mean 2, standard deviation 1.
        ({"job_hours": (1.0, 3.0), "spread": "none"}, 2.0, 0.5),
        # Times an exponential factor: mean square 2 * (1 + 9) / 2 = 10, variance 10 - 4.
        ({"job_hours": (1.0, 3.0), "spread": "exponential"}, 2.0, 6**0.5 / 2),
    ],
)
def test_lengths_have_the_stated_mean_and_spread(given: dict[str, Any], mean: float, cv: float) -> None:
    stream = make_stream(**given)
    hours = np.array([stream.draw_hours() for _ in range(NUM_DRAWN)])
    assert hours.mean() == pytest.approx(mean, rel=0.03)
    assert hours.std() / hours.mean() == pytest.approx(cv, abs=0.03)


def submit_for(stream: JobStream, hours: float) -> list[float]:
    times = [stream.draw_submission(0.0)]
    while times[-1] < hours:
        times.append(stream.draw_submission(times[-1]))
    return times[:-1]


def test_jobs_come_as_often_as_stated_and_only_while_people_work() -> None:
    stream = make_stream(jobs_per_day=4.0, working_hours=(9.0, 17.0), working_days=("mon", "tue"))
    num_weeks = 500
    times = np.array(submit_for(stream, 168.0 * num_weeks))
    # Poisson: 8 a week, so 4,000 with a standard deviation of 63.
    assert len(times) == pytest.approx(8 * num_weeks, abs=4 * 63)
    hour, day = times % 24, times % 168 // 24
    assert ((hour >= 9) & (hour <= 17)).all()
    assert set(day) == {0.0, 1.0}


def test_streams_are_the_same_for_the_same_seed_whatever_is_drawn_between() -> None:
    one, other = make_stream(), make_stream()
    lengths = [one.draw_hours() for _ in range(3)]
    for _ in range(5):
        other.draw_submission(0.0)
    assert [other.draw_hours() for _ in range(3)] == lengths
    assert [make_stream((1, 2, 4)).draw_hours() for _ in range(3)] != lengths


def test_the_offered_hours_are_users_times_jobs_times_length() -> None:
    group = make_group(number=3, job_hours=(1.0, 5.0), jobs_per_day=2.0, working_days=("mon", "tue"))
    assert compute_offered_hours(group) == pytest.approx(3 * 2 * 2 * 3.0)
    assert compute_offered_hours(make_group(think_hours=1.0)) is None
