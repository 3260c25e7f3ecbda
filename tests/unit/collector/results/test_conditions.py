"""The columns that say under which conditions a repeat was measured."""

from typing import Any

import pytest

from bench.schema import ForeignProcess
from collector.results.documents import describe_result
from factories import make_cell, make_gpu_use, make_result

GPU_CELL = make_cell(device="gpu", num_gpus=2, batch_size=64)


def describe(**overrides: Any) -> dict[str, Any]:
    return describe_result(make_result(GPU_CELL, **overrides))


def test_energy_is_not_known_where_one_of_the_gpus_does_not_report_it() -> None:
    row = describe(gpu_use=(make_gpu_use(), make_gpu_use(energy_joules=None, energy_source=None)))
    assert (row["gpu_mean_power_watts"], row["gpu_energy_per_sample_joules"]) == (None, None)


@pytest.mark.parametrize(
    ("before", "after", "is_visible", "expected"),
    [
        ((), (), True, 0),
        ((7,), (), True, 1),
        ((7,), (7, 8), True, 2),  # one that stayed counts once
        ((), None, False, None),  # nobody was seen where nobody can be seen
        (None, None, None, None),
        ((7,), None, False, 1),
    ],
)
def test_foreign_processes_that_cannot_be_seen_are_not_none(
    before: tuple[int, ...] | None, after: tuple[int, ...] | None, is_visible: bool | None, expected: int | None
) -> None:
    def make_processes(pids: tuple[int, ...] | None) -> tuple[ForeignProcess, ...] | None:
        return None if pids is None else tuple(ForeignProcess(pid=pid, memory_bytes=None) for pid in pids)

    use = make_gpu_use(
        foreign_processes=make_processes(before),
        foreign_processes_after=make_processes(after),
        processes_visible=is_visible,
    )
    row = describe_result(make_result(make_cell(device="gpu"), gpu_use=(use,)))
    assert row["num_foreign_processes"] == expected
