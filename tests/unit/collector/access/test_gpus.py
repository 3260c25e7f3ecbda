"""GPUs in simulated time: every expected time is computed by hand."""

from math import inf
from typing import Any

import numpy as np
import pytest
import simpy

from access_scenarios import make_choice, make_group
from collector.access.scenario import Policy, Rent
from collector.access.simulation import GpuPool, Job

RENT = Rent(start_minutes=30, idle_minutes=60)
SPOT = Rent(start_minutes=30, idle_minutes=60, interruptions_per_hour=0.1)


class Interruptions:
    """Says when a GPU is interrupted, in place of a random generator."""

    def __init__(self, *hours: float) -> None:
        self.hours = [*hours]

    def exponential(self, mean: float) -> float:
        return self.hours.pop(0) if self.hours else 1e6


def make_pool(
    env: simpy.Environment,
    *,
    num_gpus: int = 1,
    tenants: float | None = None,
    rent: Rent | None = None,
    draws: Any = None,
) -> GpuPool:
    """Return GPUs of two users; `tenants`: the slowdown of two on a GPU."""
    kind = {"slowdowns": {"time-slicing": {2: tenants}}} if tenants else {}
    policy: Policy = "time-slicing" if tenants else "exclusive"
    choice = make_choice(make_group(number=2), num_gpus=num_gpus, way=rent, policy=policy, kind=kind)
    return GpuPool(env, choice, draws or np.random.default_rng(0))


def make_job(
    env: simpy.Environment, number: int = 0, *, work: float = 1.0, user: int = 0, checkpoint: float = inf
) -> Job:
    ended = env.event()
    return Job(number=number, user=user, submitted_at=env.now, work=work, checkpoint_work=checkpoint, ended=ended)


def test_tenants_slow_each_other_and_speed_up_when_one_ends() -> None:
    # Two tenants get 0.6 each. The short one ends after 1 / 0.6 = 5/3 h; the other has 3 - 1 = 2 left.
    env = simpy.Environment()
    pool = make_pool(env, tenants=1 / 0.6)
    short, long = make_job(env, 0, work=1.0), make_job(env, 1, work=3.0, user=1)
    pool.submit(short)
    pool.submit(long)
    env.run(until=10)
    assert short.ended_at == pytest.approx(5 / 3)
    assert long.ended_at == pytest.approx(5 / 3 + 2)
    assert pool.count() == pytest.approx([10.0, 11 / 3, 1.0, 3.0])


def test_a_rented_gpu_is_paid_from_its_start_until_it_was_idle_for_long_enough() -> None:
    env = simpy.Environment()
    pool = make_pool(env, num_gpus=2, rent=RENT)
    job = make_job(env, work=2.0)
    pool.submit(job)
    env.run(until=10)
    assert job.ended_at == pytest.approx(2.5)
    assert job.hours_on_gpu == pytest.approx(2.0)
    assert pool.count() == pytest.approx([0.5 + 2.0 + 1.0, 2.0, 2.0, 0.0])


@pytest.mark.parametrize(("checkpoint", "end", "saved"), [(inf, 6.5, 0.0), (1.0, 4.5, 2.0)])
def test_an_interrupted_job_goes_on_from_its_last_checkpoint(checkpoint: float, end: float, saved: float) -> None:
    # Up at 0.5, interrupted 2.5 h later with 2.5 of 3 h done; started again at 3.0, up at 3.5.
    env = simpy.Environment()
    pool = make_pool(env, rent=SPOT, draws=Interruptions(2.5))
    job = make_job(env, work=3.0, checkpoint=checkpoint)
    pool.submit(job)
    env.run(until=3.2)
    assert pool.count() == pytest.approx([3.2, 2.5, saved, 0.0])
    env.run(until=10)
    assert job.ended_at == pytest.approx(end)
    assert end - job.hours_on_gpu == pytest.approx(1.0)
    assert pool.count() == pytest.approx([3.0 + (end - 3.0) + 1.0, 2.5 + 3.0 - saved, 3.0, 0.0])
