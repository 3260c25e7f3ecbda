"""The simulation's fair share decides as a real Kueue does, event by event."""

import threading
from collections.abc import Iterator

import pytest
from laboratory import Laboratory, number_of
from queues import Queues
from runs import Site, wait_for

from access_replay import Replay, Submission
from access_scenarios import make_group
from fake_kubelet import Pod
from kueue_controller import KueueController
from runner.kubernetes.connection import Connection

NUM_GPUS = 3
QUOTAS, WEIGHTS = (0, 0, 1), (1.0, 1.0, 1.0)
A, B, C = range(3)
JOBS = (
    Submission(at=1.0, user=A, hours=8.0),
    Submission(at=2.0, user=A, hours=50.0),
    Submission(at=3.0, user=A, hours=60.0),
    Submission(at=4.0, user=B, hours=4.5),
    Submission(at=5.0, user=B, hours=70.0),
    Submission(at=6.0, user=C, hours=1.0),
)
# Time, and which jobs have a GPU then, by Kueue's rules: shares are thirds of what the cohort has to lend.
BY_HAND = (
    (1.0, {0}),
    (2.0, {0, 1}),
    (3.0, {0, 1, 2}),  # A borrows all three
    (4.0, {0, 1, 3}),  # B preempts A's newest: then 2/3 to 1/3
    (5.0, {0, 1, 3}),  # for a second, both would only change places
    (6.0, {0, 3, 5}),  # C takes the GPU that it is guaranteed from A, who has most
    (7.0, {0, 3, 1}),  # C has ended; A and B have a third each, and A's job 1 was submitted before B's job 4
    (8.5, {0, 1, 4}),  # B's job 3 has ended: B has nothing, so its job 4 comes before A's older job 2
    (9.0, {1, 4, 2}),  # A's job 0 has ended, and nobody else waits
)


def replay() -> Replay:
    groups = [make_group(quota=quota, weight=weight) for quota, weight in zip(QUOTAS, WEIGHTS, strict=True)]
    return Replay(submissions=JOBS, groups=groups, num_gpus=NUM_GPUS).run()


def test_the_simulation_decides_as_calculated_by_hand() -> None:
    found = replay()
    assert [(at, set(found.running_after[at])) for at, _ in BY_HAND] == list(BY_HAND)
    assert found.num_preempted == 2


def await_running(laboratory: Laboratory, expected: frozenset[int]) -> None:
    wait_for(lambda: laboratory.list_running() == expected, f"{sorted(expected)} to run")


@pytest.fixture
def laboratory(kueue: KueueController, queues: Queues, connection: Connection, namespace: str) -> Iterator[Laboratory]:
    """A laboratory whose Kueue shares fairly."""
    with kueue.share_fairly():
        made = Laboratory(connection=connection, namespace=namespace, queues=queues)
        made.add_users(QUOTAS, WEIGHTS, NUM_GPUS)
        yield made


def test_kueue_runs_the_same_jobs_after_every_submission_and_end(laboratory: Laboratory, site: Site) -> None:
    may_end = [threading.Event() for _ in JOBS]

    def decide(pod: Pod) -> str:
        may_end[number_of(pod)].wait()
        return "no-record"

    kubelet = site.start_kubelet(decide)
    kubelet.add_node(f"{site.namespace}-node", capacity={"nvidia.com/gpu": str(NUM_GPUS)})
    expected = replay()
    submitted_at = {job.at: number for number, job in enumerate(JOBS)}
    ended_at = {at: number for number, at in expected.ends.items()}
    for at, _ in BY_HAND:
        laboratory.await_next_second()
        if at in submitted_at:
            laboratory.submit(submitted_at[at], JOBS[submitted_at[at]].user)
        if at in ended_at:
            may_end[ended_at[at]].set()
        await_running(laboratory, expected.running_after[at])
    for event in may_end:
        event.set()
    wait_for(lambda: not laboratory.list_running(), "all to end")
