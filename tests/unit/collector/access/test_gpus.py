"""GPUs in simulated time: every expected time is computed by hand."""

from collections.abc import Sequence

import numpy as np
import pytest
import simpy

from collector.access.scenario import Rent
from collector.access.simulation import GpuPool, Job

RENT = Rent(start_minutes=30, idle_minutes=60)
SPOT = Rent(start_minutes=30, idle_minutes=60, spot=True, interruptions_per_hour=0.1)


class Interruptions:
    """Says when a GPU is interrupted, in place of a random generator."""

    def __init__(self, *hours: float) -> None:
        self.hours = [*hours]

    def exponential(self, mean: float) -> float:
        return self.hours.pop(0) if self.hours else 1e6


def make_pool(
    env: simpy.Environment, *, size: int = 1, rates: Sequence[float] = (1.0,), rent: Rent | None = None
) -> GpuPool:
    return GpuPool(env, size=size, num_users=2, rates=rates, rent=rent)


def make_job(number: int = 0, *, work: float = 1.0, user: int = 0, checkpoint: float | None = None) -> Job:
    return Job(number=number, user=user, submitted_at=0.0, work=work, checkpoint_work=checkpoint)


def test_tenants_slow_each_other_and_speed_up_when_one_ends() -> None:
    # Two tenants get 0.6 each. The short one ends after 1 / 0.6 = 5/3 h; the other has 3 - 1 = 2 left.
    env = simpy.Environment()
    pool = make_pool(env, rates=(1.0, 0.6))
    short, long = make_job(0, work=1.0), make_job(1, work=3.0, user=1)
    pool.submit(short)
    pool.submit(long)
    env.run(until=10)
    assert short.ended_at == pytest.approx(5 / 3)
    assert long.ended_at == pytest.approx(5 / 3 + 2)
    assert pool.work_by_user == pytest.approx([1.0, 3.0])
    assert pool.busy_hours == pytest.approx(11 / 3)


def test_a_rented_gpu_is_paid_from_its_start_until_it_was_idle_for_long_enough() -> None:
    env = simpy.Environment()
    pool = make_pool(env, size=2, rent=RENT)
    job = make_job(work=2.0)
    pool.submit(job)
    env.run(until=10)
    assert job.ended_at == pytest.approx(2.5)
    assert job.measure_wait(10.0) == pytest.approx(0.5)
    assert pool.paid_hours == pytest.approx(0.5 + 2.0 + 1.0)


@pytest.mark.parametrize(("checkpoint", "end", "lost"), [(None, 6.5, 2.5), (1.0, 4.5, 0.5)])
def test_an_interrupted_job_goes_on_from_its_last_checkpoint(checkpoint: float | None, end: float, lost: float) -> None:
    # Up at 0.5, interrupted 2.5 h later with 2.5 of 3 h done; started again at 3.0, up at 3.5.
    env = simpy.Environment()
    generator: np.random.Generator = Interruptions(2.5)  # type: ignore[assignment]
    pool = GpuPool(env, size=1, num_users=1, rates=(1.0,), rent=SPOT, generator=generator)
    job = make_job(work=3.0, checkpoint=checkpoint)
    pool.submit(job)
    env.run(until=5.9 if checkpoint else 7.9)
    assert job.ended_at == pytest.approx(end)
    assert pool.lost_work == pytest.approx(lost)
    assert pool.work_by_user == pytest.approx([3.0])
    assert job.measure_wait(10.0) == pytest.approx(1.0)
    assert pool.num_interruptions == 1
    assert pool.paid_hours == pytest.approx(3.0 + (end - 3.0) + 1.0)


def test_the_interruption_of_a_gpu_that_was_given_back_meets_nobody() -> None:
    env = simpy.Environment()
    generator: np.random.Generator = Interruptions(4.0)  # type: ignore[assignment]
    pool = GpuPool(env, size=1, num_users=1, rates=(1.0,), rent=SPOT, generator=generator)
    pool.submit(make_job(work=1.0))  # up from 0.5 to 2.5
    env.run(until=4.0)
    later = make_job(1, work=1.0)
    pool.submit(later)  # up again from 4.5, when the first interruption would have come
    env.run(until=10)
    assert later.ended_at == pytest.approx(5.5)
    assert pool.num_interruptions == 0


def test_an_evicted_job_leaves_its_gpu_to_the_others() -> None:
    env = simpy.Environment()
    pool = make_pool(env, rates=(1.0, 0.5))
    stays, goes = make_job(0, work=2.0), make_job(1, work=2.0, user=1)
    pool.submit(stays)
    pool.submit(goes)
    env.run(until=1.0)
    pool.evict(goes)
    env.run(until=10)
    assert stays.ended_at == pytest.approx(1.0 + 1.5)
    assert goes.ended_at is None
    assert pool.lost_work == pytest.approx(0.5)
    assert pool.work_by_user == pytest.approx([2.0, 0.0])
    assert goes.measure_wait(3.0) == pytest.approx(2.0)
