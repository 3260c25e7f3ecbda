"""runner.probe.batch_search: which batches are tried, in which order, and what is known at the end."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.probe.batch_search import BatchSearch, Outcome, Try, search_largest_batch


def make_try(batch_size: int, outcome: Outcome) -> Try:
    return Try(batch_size=batch_size, outcome=outcome, seconds=1.0)


def make_machine(capacity: int) -> Callable[[int], Try]:
    """A machine that `capacity` samples fit into."""
    return lambda size: make_try(size, "fits" if size <= capacity else "out-of-memory")


def search(
    try_batch: Callable[[int], Try], *, multiple: int = 1, max_batch_size: int = 1000, num_tries: int = 100
) -> BatchSearch:
    left = iter([False] * num_tries)
    return search_largest_batch(
        try_batch, multiple=multiple, max_batch_size=max_batch_size, is_time_up=lambda: next(left, True)
    )


def list_sizes(found: BatchSearch) -> list[int]:
    return [tried.batch_size for tried in found.tries]


def test_it_doubles_until_one_does_not_fit_and_then_halves_the_gap() -> None:
    found = search(make_machine(11))
    assert [1, 2, 4, 8, 16, 12, 10, 11] == list_sizes(found)
    assert ("found", 11, 12) == (found.ended_by, found.largest_batch_size, found.smallest_failing_batch_size)


def test_batches_are_multiples_of_the_number_of_gpus() -> None:
    found = search(make_machine(11), multiple=4)
    assert [4, 8, 16, 12] == list_sizes(found)
    assert ("found", 8, 12) == (found.ended_by, found.largest_batch_size, found.smallest_failing_batch_size)


@pytest.mark.parametrize(("multiple", "bound", "sizes"), [(1, 6, [1, 2, 4, 6]), (4, 15, [4, 8, 12]), (1, 1, [1])])
def test_it_ends_at_the_upper_bound_which_is_tried(multiple: int, bound: int, sizes: list[int]) -> None:
    found = search(make_machine(1000), multiple=multiple, max_batch_size=bound)
    assert sizes == list_sizes(found)
    assert ("max-batch-size", sizes[-1], None) == (
        found.ended_by,
        found.largest_batch_size,
        found.smallest_failing_batch_size,
    )


def test_where_not_even_the_smallest_fits_that_is_the_answer() -> None:
    found = search(make_machine(0))
    assert [1] == list_sizes(found)
    assert ("found", None, 1) == (found.ended_by, found.largest_batch_size, found.smallest_failing_batch_size)


@pytest.mark.parametrize("outcome", ["failure", "time-limit"])
def test_another_failure_or_a_hang_ends_the_search_with_what_is_known(outcome: Outcome) -> None:
    found = search(lambda size: make_try(size, outcome) if size == 12 else make_machine(11)(size))
    assert [1, 2, 4, 8, 16, 12] == list_sizes(found)
    assert (outcome, 8, 16) == (found.ended_by, found.largest_batch_size, found.smallest_failing_batch_size)


def test_no_try_begins_when_the_time_is_up() -> None:
    found = search(make_machine(11), num_tries=3)
    assert [1, 2, 4] == list_sizes(found)
    assert ("time-limit", 4, None) == (found.ended_by, found.largest_batch_size, found.smallest_failing_batch_size)


@given(st.integers(0, 5000), st.integers(1, 8), st.integers(1, 4000))
def test_whatever_fits_is_found_in_few_tries_each_made_once(capacity: int, multiple: int, units: int) -> None:
    bound = multiple * units
    found = search(make_machine(capacity), multiple=multiple, max_batch_size=bound)
    largest = max((size for size in range(multiple, bound + 1, multiple) if size <= capacity), default=None)
    assert largest == found.largest_batch_size
    sizes = list_sizes(found)
    assert len(sizes) == len(set(sizes)) <= 2 * units.bit_length() + 1
    assert all(size % multiple == 0 and size <= bound for size in sizes)
