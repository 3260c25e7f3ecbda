"""What was not read of a device is not known, and never looks like nothing."""

import pytest

from bench.schema import GpuUse
from collector.analysis import analyze_run
from collector.tables.cells import make_devices_table
from collector.tables.environments import make_shared_environment_table
from factories import make_cell, make_cpu_use, make_environment, make_gpu, make_gpu_use
from measured_runs import Collect, make_repeats

GPU = make_environment(gpus=(make_gpu(),))
HEADING = "clock held down by"


@pytest.mark.parametrize(
    ("use", "text"),
    [
        (make_gpu_use(), "none"),
        (make_gpu_use(sample_reasons=()), "not recorded"),
        (make_gpu_use(throttle_reasons={"power cap": 0.5}), "power cap 50 %"),
        (make_gpu_use(sample_reasons=(), throttle_reasons={"power cap": 0.5}), "power cap 50 %"),
    ],
)
def test_reasons_that_were_not_read_are_not_said_to_be_none(collect: Collect, use: GpuUse, text: str) -> None:
    results = make_repeats(make_cell(device="gpu"), 0.1, environment=GPU, gpu_use=(use,))
    table = make_devices_table(analyze_run(collect(*results)))
    assert table is not None
    (row,) = table.format_rows()
    assert dict(zip(table.headings, row, strict=True))[HEADING] == text


def test_a_cpu_has_no_clock_that_a_driver_holds_down(collect: Collect) -> None:
    results = make_repeats(make_cell(), 0.1, cpu_use=make_cpu_use())
    table = make_devices_table(analyze_run(collect(*results)))
    assert table is not None
    assert HEADING not in table.headings


def test_an_optimizer_that_was_not_recorded_is_said_to_be_so(collect: Collect) -> None:
    table = make_shared_environment_table(analyze_run(collect(*make_repeats(make_cell(), 0.1))))
    assert table is not None
    assert ("setting optimizer", "not recorded") in table.format_rows()
