"""runner.probe.batch_search: which batches are tried, in which order, and what is known at the end."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.probe.batch_search import BatchSearch, Trial, TrialOutcome, search_largest_batch


def make_trial(batch_size: int, outcome: TrialOutcome) -> Trial:
    return Trial(batch_size=batch_size, outcome=outcome, seconds=1.0)


def make_machine(capacity: int) -> Callable[[int], Trial]:
    """A machine that `capacity` samples fit into."""
    return lambda size: make_trial(size, "fits" if size <= capacity else "out-of-memory")


def search(
    try_batch: Callable[[int], Trial], *, multiple: int = 1, max_batch_size: int = 1000, num_trials: int = 100
) -> BatchSearch:
    left = iter([False] * num_trials)
    return search_largest_batch(
        try_batch, multiple=multiple, max_batch_size=max_batch_size, is_time_up=lambda: next(left, True)
    )


def list_sizes(found: BatchSearch) -> list[int]:
    return [trial.batch_size for trial in found.trials]


def test_it_doubles_until_one_does_not_fit_and_then_bisects_what_is_left() -> None:
    found = search(make_machine(11))
    assert list_sizes(found) == [1, 2, 4, 8, 16, 12, 10, 11]
    assert (found.stop_reason, found.largest_batch_size, found.smallest_failing_batch_size) == ("found", 11, 12)


def test_batches_are_multiples_of_the_number_of_gpus() -> None:
    found = search(make_machine(11), multiple=4)
    assert list_sizes(found) == [4, 8, 16, 12]
    assert (found.stop_reason, found.largest_batch_size, found.smallest_failing_batch_size) == ("found", 8, 12)


@pytest.mark.parametrize(("multiple", "bound", "sizes"), [(1, 6, [1, 2, 4, 6]), (4, 15, [4, 8, 12]), (1, 1, [1])])
def test_it_ends_at_the_upper_bound_which_is_tried(multiple: int, bound: int, sizes: list[int]) -> None:
    found = search(make_machine(1000), multiple=multiple, max_batch_size=bound)
    assert list_sizes(found) == sizes
    assert (
        found.stop_reason,
        found.largest_batch_size,
        found.smallest_failing_batch_size,
    ) == ("max-batch-size", sizes[-1], None)


def test_where_not_even_the_smallest_fits_that_is_said() -> None:
    found = search(make_machine(0))
    assert list_sizes(found) == [1]
    assert (found.stop_reason, found.largest_batch_size, found.smallest_failing_batch_size) == ("found", None, 1)


@pytest.mark.parametrize("outcome", ["failure", "time-limit"])
def test_another_failure_or_a_hang_ends_the_search_with_what_is_known(outcome: TrialOutcome) -> None:
    found = search(lambda size: make_trial(size, outcome) if size == 12 else make_machine(11)(size))
    assert list_sizes(found) == [1, 2, 4, 8, 16, 12]
    assert (found.stop_reason, found.largest_batch_size, found.smallest_failing_batch_size) == (outcome, 8, 16)


def test_no_trial_begins_when_the_time_is_up() -> None:
    found = search(make_machine(11), num_trials=3)
    assert list_sizes(found) == [1, 2, 4]
    assert (found.stop_reason, found.largest_batch_size, found.smallest_failing_batch_size) == ("time-limit", 4, None)


@given(st.integers(0, 5000), st.integers(1, 8), st.integers(1, 4000))
def test_whatever_fits_is_found_in_few_trials_each_made_once(capacity: int, multiple: int, units: int) -> None:
    bound = multiple * units
    found = search(make_machine(capacity), multiple=multiple, max_batch_size=bound)
    largest = max((size for size in range(multiple, bound + 1, multiple) if size <= capacity), default=None)
    assert found.largest_batch_size == largest
    sizes = list_sizes(found)
    assert len(sizes) == len(set(sizes)) <= 2 * units.bit_length() + 1
    assert all(size % multiple == 0 and size <= bound for size in sizes)
