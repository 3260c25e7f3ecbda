"""The table of where the time of a step on a GPU goes."""

import pytest

from bench.schema import Cell, Result
from collector.analysis import analyze_run
from collector.tables.cells import make_kernel_time_table
from device_profiles import make_device_profile, make_gpu_activity
from factories import make_cell, make_result
from measured_runs import Collect


def make_profiled(busy_share: float, **fields: object) -> Result:
    """Return a repeat on a GPU whose kernels took this share of a step."""
    cell: Cell = make_cell(device="gpu", **fields)
    seconds = 0.1 * busy_share  # of a step of 0.1 s; five steps are profiled
    profile = make_device_profile(
        kernel_busy_share=busy_share,
        kernel_seconds_per_step=seconds,
        gpus=(make_gpu_activity(busy_seconds=5 * seconds),),
    )
    return make_result(cell, device_profile=profile)


def test_a_profiled_cell_shows_its_kernels_time_beside_its_step(collect: Collect) -> None:
    table = make_kernel_time_table(analyze_run(collect(make_profiled(0.2), repeats=1)))
    assert table is not None
    assert dict(zip(table.headings, table.format_rows()[0], strict=True)) == {
        "cell": "conv6 train, GPU, batch 64, 32 px, PyTorch eager",
        "step time, ms": "100",
        "kernel time, ms": "20.0",
        "busy, %": "20.0",
        "kernels per step": "100",
        "copies per step": "2.00",
        "step under the profiler, ms": "125",
        "note": "launch-bound",
    }


@pytest.mark.parametrize(
    ("busy_share", "data_dir", "note"),
    [
        (0.49, None, "launch-bound"),
        (0.5, None, None),
        (1.02, None, None),  # the profiled kernels ran at lower clocks
        (0.2, "/data/cifar10", "waits for launches or data"),
    ],
)
def test_below_half_the_gpu_waits_longer_than_it_works(
    collect: Collect, busy_share: float, data_dir: str | None, note: str | None
) -> None:
    table = make_kernel_time_table(analyze_run(collect(make_profiled(busy_share, data_dir=data_dir), repeats=1)))
    assert table is not None
    assert dict(zip(table.headings, table.format_rows()[0], strict=True)).get("note") == note
