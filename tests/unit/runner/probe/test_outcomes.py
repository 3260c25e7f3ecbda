"""runner.probe: whether a batch fits, and how much memory it took, from the record of its trial."""

import pytest

from factories import make_cell, make_failed_result, make_gpu_use, make_memory, make_result
from runner.probe import name_outcome, read_needed_bytes, read_obtainable_bytes, read_peak_bytes

GIB = 2**30


@pytest.mark.parametrize(
    ("device", "message", "expected"),
    [
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
    result = make_failed_result(make_cell(device=device), status="oom", message=message)
    assert name_outcome(result) == expected


@pytest.mark.parametrize(("device", "expected"), [("cpu", "out-of-memory"), ("gpu", "failure")])
def test_a_process_that_died_for_memory_says_nothing_of_a_gpu(device: str, expected: str) -> None:
    killed = make_failed_result(make_cell(device=device), status="oom", written_by="runner", message="killed")
    assert name_outcome(killed) == expected


@pytest.mark.parametrize(
    ("device", "allocated", "reserved", "expected"),
    [("gpu", 2 * GIB, 3 * GIB, 3 * GIB), ("gpu", 2 * GIB, None, 2 * GIB), ("cpu", None, None, GIB)],
)
def test_the_peak_is_the_most_that_the_framework_reports(
    device: str, allocated: int | None, reserved: int | None, expected: int
) -> None:
    memory = make_memory(peak_memory_allocated_bytes=allocated, peak_memory_reserved_bytes=reserved)
    assert read_peak_bytes(make_result(make_cell(device=device), memory=memory)) == expected


@pytest.mark.parametrize(
    ("allocated", "reserved", "free", "expected"),
    [
        (2 * GIB, 3 * GIB, (10 * GIB,), (2 * GIB, 13 * GIB)),  # what the allocator keeps unused can still be used
        (2 * GIB, None, (10 * GIB,), (2 * GIB, 12 * GIB)),
        (2 * GIB, 3 * GIB, (10 * GIB, 4 * GIB), (2 * GIB, 7 * GIB)),
        (2 * GIB, 3 * GIB, (None,), (2 * GIB, None)),
        (2 * GIB, 3 * GIB, (), (2 * GIB, None)),
        (None, None, (10 * GIB,), (None, None)),
    ],
)
def test_a_batch_could_take_what_its_process_holds_and_what_is_free(
    allocated: int | None,
    reserved: int | None,
    free: tuple[int | None, ...],
    expected: tuple[int | None, int | None],
) -> None:
    result = make_result(
        make_cell(device="gpu"),
        memory=make_memory(peak_memory_allocated_bytes=allocated, peak_memory_reserved_bytes=reserved),
        gpu_use=tuple(make_gpu_use(memory_free_after_bytes=number) for number in free),
    )
    assert (read_needed_bytes(result), read_obtainable_bytes(result, None)) == expected


def test_on_a_cpu_it_is_the_limit_of_the_process() -> None:
    result = make_result(make_cell(), memory=make_memory(peak_rss_bytes=GIB))
    assert (read_needed_bytes(result), read_obtainable_bytes(result, 8 * GIB)) == (GIB, 8 * GIB)
