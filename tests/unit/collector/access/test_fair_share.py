"""Cycles of fair share, against decisions that follow by hand from Kueue's rules."""

from collections.abc import Iterator, Sequence
from itertools import count, islice

import pytest
import simpy

from collector.access.simulation import Job, Queue, find_target, run_cycle


@pytest.fixture
def numbers() -> Iterator[int]:
    return count()


def make_queue(
    numbers: Iterator[int], *, nominal: int = 0, weight: float = 1.0, running: int = 0, pending: int = 0
) -> Queue:
    """Return a queue whose jobs were submitted, and those that run admitted, in the order of their numbers."""
    jobs = [
        Job(number=number, user=0, submitted_at=0.0, work=1.0, ended=simpy.Environment().event(), admission=number)
        for number in islice(numbers, running + pending)
    ]
    return Queue(nominal=nominal, weight=weight, running=jobs[:running], pending=jobs[running:])


def list_numbers(entries: Sequence[tuple[Queue, Job]]) -> list[int]:
    return [job.number for _, job in entries]


def test_one_head_of_each_queue_is_admitted_the_smallest_share_first(numbers: Iterator[int]) -> None:
    greedy = make_queue(numbers, running=2, pending=2)  # jobs 0, 1 run; 2, 3 wait
    modest = make_queue(numbers, running=1, pending=2)  # job 4 runs; 5, 6 wait
    late = make_queue(numbers, pending=1)  # job 7 waits
    assert list_numbers(run_cycle([greedy, modest, late], 5)[0]) == [7, 5]
    assert list_numbers(run_cycle([greedy, modest, late], 9)[0]) == [7, 5, 2]


def test_a_queue_takes_back_what_it_is_guaranteed_from_the_largest_borrower_and_its_newest_job(
    numbers: Iterator[int],
) -> None:
    small = make_queue(numbers, nominal=1, running=2)  # 0, 1: borrows one
    large = make_queue(numbers, nominal=1, running=3)  # 2, 3, 4: borrows two
    owner = make_queue(numbers, nominal=3, pending=1)  # 5
    admitted, preempted = run_cycle([small, large, owner], 5)
    assert list_numbers(preempted) == [4]
    assert admitted == []  # once the job is gone, in a later cycle


def test_two_queues_that_borrow_share_alike_and_no_further(numbers: Iterator[int]) -> None:
    # Nobody is guaranteed anything. With 4 GPUs, 4 to 0 becomes 2 to 2, and a job more would only swap places.
    greedy = make_queue(numbers, running=4)
    other = make_queue(numbers, pending=4)
    preempted = []
    for _ in range(10):
        admitted, taken = run_cycle([greedy, other], 4)
        for queue, job in taken:
            queue.running.remove(job)
            preempted.append(job.number)
        for queue, _ in admitted:
            queue.running.append(queue.pending.pop(0))
    assert preempted == [3, 2]
    assert (len(greedy.running), len(other.running)) == (2, 2)


@pytest.mark.parametrize(
    ("weight", "is_preempted"),
    [
        (2.0, True),  # 1/2 becomes 1/3 without a job; the other's 1/3 is at most that
        (2.5, True),  # 2/5 becomes 4/15: only the second strategy, 1/3 < 2/5
        (3.0, False),  # 1/3 is not less than 1/3
    ],
)
def test_a_job_is_preempted_by_the_first_strategy_or_else_the_second(
    numbers: Iterator[int], weight: float, is_preempted: bool
) -> None:
    queue = make_queue(numbers, weight=weight, running=3)
    other = make_queue(numbers, pending=1)
    found = find_target(other, [queue, other], 3)
    assert (found is not None) == is_preempted
    assert found is None or found[1] is queue.running[-1]
