"""Which batches are tried on which machine, and what the record of a trial says of its batch."""

from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from factories import make_cell, make_failed_result, make_gpu_use, make_memory, make_result
from runner.probe import Search, Trial, TrialOutcome, name_outcome, read_memory, search_largest


def make_trial(batch_size: int, outcome: TrialOutcome) -> Trial:
    return Trial(size=batch_size, outcome=outcome, seconds=1.0)


def make_machine(capacity: int) -> Callable[[int], Trial]:
    """A machine that `capacity` samples fit into."""
    return lambda size: make_trial(size, "fits" if size <= capacity else "out-of-memory")


def search(
    try_batch: Callable[[int], Trial], *, multiple: int = 1, max_size: int = 1000, num_trials: int = 100
) -> Search:
    left = iter([False] * num_trials)
    return search_largest(try_batch, multiple=multiple, max_size=max_size, is_time_up=lambda: next(left, True))


def list_sizes(found: Search) -> list[int]:
    return [trial.size for trial in found.tries]


@pytest.mark.parametrize(
    ("capacity", "multiple", "bound", "odd", "sizes", "ended_by", "largest", "failing"),
    [
        (1000, 1, 6, None, [1, 4, 6], "max-size", 6, None),
        (1000, 4, 15, None, [4, 12], "max-size", 12, None),
        (1000, 1, 1, None, [1], "max-size", 1, None),
        (0, 1, 1000, None, [1], "found", None, 1),
        # Another failure or a hang ends the search with what is known.
        (11, 1, 1000, "failure", [1, 4, 8, 16, 12], "failure", 8, 16),
        (11, 1, 1000, "time-limit", [1, 4, 8, 16, 12], "time-limit", 8, 16),
    ],
)
def test_a_search_ends_at_its_bound_at_the_limit_or_at_a_trial_that_tells_nothing(
    capacity: int, multiple: int, bound: int, odd: TrialOutcome | None, sizes: list[int], ended_by: str,
    largest: int | None, failing: int | None,
) -> None:  # fmt: skip
    """`odd`: how the trial of 12 ends."""
    machine = make_machine(capacity)
    found = search(
        lambda size: make_trial(size, odd) if odd and size == 12 else machine(size),
        multiple=multiple,
        max_size=bound,
    )
    assert list_sizes(found) == sizes
    assert (found.ended_by, found.largest, found.smallest_failing) == (ended_by, largest, failing)


GIB = 2**30
H200_BYTES = 139 * GIB
BOUND = 65_536


class Machine:
    """A machine on which `fixed_bytes` and so many bytes per sample are needed, in whole blocks of the allocator.

    `error`: how wrong, as a share, the memory is that a process believes to have.
    """

    def __init__(self, *, fixed_bytes: float, sample_bytes: float, block_bytes: int = 1, error: float = 0.0) -> None:
        self._fixed_bytes, self._sample_bytes, self._block_bytes = fixed_bytes, sample_bytes, block_bytes
        self._believed_bytes = int(H200_BYTES * (1 + error))

    def measure_need(self, batch_size: int) -> int:
        line = self._fixed_bytes + self._sample_bytes * batch_size
        return int(-(-line // self._block_bytes) * self._block_bytes)

    def try_batch(self, batch_size: int) -> Trial:
        need = self.measure_need(batch_size)
        if need > H200_BYTES:
            return Trial(size=batch_size, outcome="out-of-memory", seconds=1.0)
        return Trial(
            size=batch_size,
            outcome="fits",
            seconds=1.0,
            peak_bytes=need,
            needed_bytes=need,
            available_bytes=self._believed_bytes,
        )


def test_the_limit_of_cyclegan_on_an_h200_takes_four_trials() -> None:
    """64 fit and 66 do not (2026-11-21); doubling and bisection took 1 to 64, 128 and six more."""
    machine = Machine(fixed_bytes=0.9 * GIB, sample_bytes=(H200_BYTES - 0.9 * GIB) / 64.9)
    found = search(machine.try_batch, max_size=BOUND)
    assert list_sizes(found) == [1, 4, 64, 65]
    assert (found.ended_by, found.largest, found.smallest_failing) == ("found", 64, 65)


def test_a_prediction_that_is_too_high_is_left_in_steps_that_double() -> None:
    machine = Machine(fixed_bytes=GIB, sample_bytes=(H200_BYTES - GIB) / 40.5, error=0.25)
    assert list_sizes(search(machine.try_batch, max_size=BOUND)) == [1, 4, 50, 49, 47, 43, 35, 39, 41, 40]


@settings(deadline=None)
@given(
    limit=st.floats(0.5, 20_000),
    fixed_share=st.floats(0, 0.9),
    block_mebibytes=st.sampled_from([0, 2, 20, 1024]),
    error=st.floats(-0.5, 0.5),
    multiple=st.integers(1, 8),
    bound=st.integers(8, BOUND),
)
@example(limit=2966.0, fixed_share=0.75, block_mebibytes=1024, error=-0.5, multiple=1, bound=640)
@example(limit=17350.0, fixed_share=0.8756, block_mebibytes=1024, error=-0.3746, multiple=1, bound=30251)
def test_the_true_limit_is_always_found(
    limit: float, fixed_share: float, block_mebibytes: int, error: float, multiple: int, bound: int
) -> None:
    fixed_bytes = fixed_share * H200_BYTES
    machine = Machine(
        fixed_bytes=fixed_bytes,
        sample_bytes=(H200_BYTES - fixed_bytes) / limit,
        block_bytes=max(1, block_mebibytes * 2**20),
        error=error,
    )
    found = search(machine.try_batch, multiple=multiple, max_size=bound)
    sizes = range(multiple, bound + 1, multiple)
    assert found.largest == max((size for size in sizes if machine.measure_need(size) <= H200_BYTES), default=None)
    tried = list_sizes(found)
    assert len(tried) == len(set(tried)) <= 2 * (bound // multiple).bit_length() + 4


@pytest.mark.parametrize(
    ("device", "message", "expected"),
    [
        ("cpu", "killed", "out-of-memory"),  # without a record of its own: for want of the host's memory
        ("gpu", "killed", "failure"),
        ("gpu", "OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "out-of-memory"),
        ("gpu", "ResourceExhaustedError: OOM when allocating tensor on device:GPU:0 by GPU_0_bfc", "out-of-memory"),
        ("gpu", "_ArrayMemoryError: Unable to allocate 29.5 GiB for an array with shape (64, 3, 6422)", "failure"),
        (
            "cpu",
            "_ArrayMemoryError: Unable to allocate 29.5 GiB for an array with shape (64, 3, 6422)",
            "out-of-memory",
        ),
        ("gpu", "RuntimeError: DefaultCPUAllocator: can't allocate memory", "failure"),
        ("gpu", "ResourceExhaustedError: OOM when allocating tensor on device:CPU:0 by allocator cpu", "failure"),
        ("gpu", "ResourceExhaustedError: OOM when allocating tensor by allocator gpu_host_bfc", "failure"),
    ],
)
def test_on_a_gpu_only_the_gpus_memory_counts(device: str, message: str, expected: str) -> None:
    written_by = "runner" if message == "killed" else "bench"
    result = make_failed_result(make_cell(device=device), status="oom", written_by=written_by, message=message)
    assert name_outcome(result) == expected


@pytest.mark.parametrize(
    ("allocated", "reserved", "free", "expected"),
    [
        (2 * GIB, 3 * GIB, (10 * GIB,), [3 * GIB, 2 * GIB, 13 * GIB]),  # what is kept unused can still be used
        (2 * GIB, None, (10 * GIB,), [2 * GIB, 2 * GIB, 12 * GIB]),
        (2 * GIB, 3 * GIB, (10 * GIB, 4 * GIB), [3 * GIB, 2 * GIB, 7 * GIB]),
        (2 * GIB, 3 * GIB, (10 * GIB, None), [3 * GIB, 2 * GIB, None]),
        (2 * GIB, 3 * GIB, (), [3 * GIB, 2 * GIB, None]),
        (None, None, (10 * GIB,), [None, None, None]),
    ],
)
def test_a_batch_could_take_what_its_process_holds_and_what_is_free(
    allocated: int | None, reserved: int | None, free: tuple[int | None, ...], expected: list[int | None]
) -> None:
    result = make_result(
        make_cell(device="gpu"),
        memory=make_memory(peak_memory_allocated_bytes=allocated, peak_memory_reserved_bytes=reserved),
        gpu_use=tuple(make_gpu_use(memory_free_after_bytes=number) for number in free),
    )
    assert list(read_memory(result, None).values()) == expected


def test_on_a_cpu_it_is_the_limit_of_the_process() -> None:
    result = make_result(make_cell(), memory=make_memory(peak_rss_bytes=GIB))
    assert list(read_memory(result, 8 * GIB).values()) == [GIB, GIB, 8 * GIB]
