"""The tables of cells: what each says of repeats with some figures, and which columns it leaves out."""

from collections.abc import Callable, Mapping, Sequence
from unittest.mock import ANY

import pytest

from bench.schema import PipelinedWindow, Result, Samples, SustainedRun
from collector.analysis import Analysis, analyze_run
from collector.grid import format_figure, make_grid
from collector.tables.cells import (
    describe_validity,
    make_devices_table,
    make_energy_table,
    make_failures_table,
    make_inference_table,
    make_kernel_time_table,
    make_memory_table,
    make_sustained_table,
    make_training_table,
)
from collector.tables.table import Table
from factories import (
    make_cell,
    make_cpu_use,
    make_device_profile,
    make_environment,
    make_failed_result,
    make_gpu,
    make_gpu_activity,
    make_gpu_use,
    make_memory,
    make_result,
)
from measured_runs import Collect

MakeTable = Callable[[Analysis], Table]
GPU = make_environment(gpus=(make_gpu(),))


def pipeline(seconds: float, **fields: object) -> list[Result]:
    """Return a repeat of steps of 100 ms, 64 samples each, of which 100 back to back took so long."""
    return [make_result(make_cell(**fields), pipelined=PipelinedWindow(num_steps=100, seconds=seconds))]


def wait_for_data() -> list[Result]:
    samples = Samples(
        warmup_step_seconds=(0.2, 0.1),
        step_seconds=(0.1, 0.1, 0.1),
        reached_steady=True,
        data_wait_seconds=(0.0, 0.015, 0.0),
        max_queued_batches=2,
    )
    return [make_result(samples=samples)]


def profile(busy_share: float, data_dir: str | None = None) -> list[Result]:
    """Return a repeat on a GPU whose kernels took this share of a step of 0.1 s; five steps are profiled."""
    seconds = 0.1 * busy_share
    gpus = (make_gpu_activity(busy_seconds=5 * seconds),)
    found = make_device_profile(kernel_busy_share=busy_share, kernel_seconds_per_step=seconds, gpus=gpus)
    return [make_result(make_cell(device="gpu", data_dir=data_dir), device_profile=found)]


def sustain(*seconds: float, flat_after_seconds: float | None) -> list[Result]:
    sustained = SustainedRun(
        window_step_seconds=seconds, seconds=5.0 * len(seconds), flat_after_seconds=flat_after_seconds
    )
    return [make_result(make_cell(sustain_seconds=60.0), sustained=sustained)]


def remember(*cgroup_gib: int) -> list[Result]:
    memories = [make_memory(peak_cgroup_bytes=peak * 2**30) for peak in cgroup_gib]
    return [make_result(make_cell(batch_size=n), memory=memory) for n, memory in enumerate(memories, start=1)]


def use_gpu(**use: object) -> list[Result]:
    return [make_result(make_cell(device="gpu"), environment=GPU, gpu_use=(make_gpu_use(**use),))]


POWER_CAP = {"sample_reasons": (), "throttle_reasons": {"power cap": 0.5}}
RATES = {"samples/s": "640.0", "pipelined, samples/s": "800.0"}
PIPELINED = {"step time, ms": "100.0", "pipelined step, ms": "80.00"} | RATES
SETTLING, FLAT = (0.1, 0.11, *(0.12,) * 7), {"last / first": "1.20", "flat after": "10.0 s, of 45.0 s"}
BUSY = {"step time, ms": "100", "kernel time, ms": "20.0", "busy, %": "20.0", "note": "launch-bound"}
COUNTED = {"kernels per step": "100", "copies per step": "2.00", "step under the profiler, ms": "125"}
PERCENTILES = {"step time, ms": ANY, "p95, ms": ANY, "p99, ms": ANY}
NEVER = {"step at last, ms": "200", "flat after": "not within 10.0 s"}
SETTLED = {"step at first, ms": "100", "step at last, ms": "120"} | FLAT
CASES: Sequence[tuple[str, MakeTable, Callable[[], list[Result]], Mapping[str, str | None]]] = [
    ("training", make_training_table, lambda: [make_result()], {"step time, ms": ANY, "p95, ms": None}),
    ("inference has percentiles", make_inference_table, lambda: [make_result(make_cell(phase="infer"))], PERCENTILES),
    ("pipelined steps that are faster", make_training_table, lambda: pipeline(8.0), PIPELINED),
    ("those that are not", make_training_table, lambda: pipeline(9.81), {"pipelined step, ms": None}),
    ("time spent waiting for data", make_training_table, wait_for_data, {"waiting for data, %": "5.00"}),
    ("kernel time beside its step", make_kernel_time_table, lambda: profile(0.2), BUSY | COUNTED),
    ("below half it waits", make_kernel_time_table, lambda: profile(0.49), {"note": "launch-bound"}),
    ("at half it does not", make_kernel_time_table, lambda: profile(0.5), {"note": None}),
    ("profiled at lower clocks", make_kernel_time_table, lambda: profile(1.02), {"note": None}),
    ("waits for data", make_kernel_time_table, lambda: profile(0.2, "/data"), {"note": "waits for launches or data"}),
    ("speed that settled", make_sustained_table, lambda: sustain(*SETTLING, flat_after_seconds=10.0), SETTLED),
    ("speed that did not", make_sustained_table, lambda: sustain(0.1, 0.2, flat_after_seconds=None), NEVER),
    ("a cgroup's peak that all cells share", make_memory_table, lambda: remember(9, 9), {"cgroup, peak, GiB": None}),
    ("peaks that differ", make_memory_table, lambda: remember(8, 9), {"cgroup, peak, GiB": "8.00"}),
    ("the peak of the only cell", make_memory_table, lambda: remember(9), {"cgroup, peak, GiB": "9.00"}),
    ("a clock that nothing held down", make_devices_table, use_gpu, {"clock held down by": "none"}),
    ("unread reasons", make_devices_table, lambda: use_gpu(sample_reasons=()), {"clock held down by": "not recorded"}),
    ("a reason", make_devices_table, lambda: use_gpu(**POWER_CAP), {"clock held down by": "power cap 50 %"}),
    ("a CPU has none", make_devices_table, lambda: [make_result(cpu_use=make_cpu_use())], {"clock held down by": None}),
]


@pytest.mark.parametrize(
    ("make_table", "make_results", "texts"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_a_table_says_what_was_measured(
    collect: Collect, make_table: MakeTable, make_results: Callable[[], list[Result]], texts: Mapping[str, str | None]
) -> None:
    table = make_table(analyze_run(collect(*make_results(), repeats=1)))
    row = dict(zip(table.headings, table.format_rows()[0], strict=True))
    assert {heading: row.get(heading) for heading in texts} == texts


@pytest.mark.parametrize(
    ("num_ok", "num_sound", "verdicts", "text"),
    [
        (3, 3, "", "valid"),
        (3, 3, "2 not-steady", "3 of 3 count; 2 not-steady"),
        (3, 2, "1 throttled, 1 noisy", "2 of 3 count; 1 throttled, 1 noisy"),
        (2, 0, "2 throttled", "none of 2 sound; 2 throttled"),
        (0, 0, "", "–"),
    ],
)
def test_the_verdict_of_a_row_says_how_many_count(num_ok: int, num_sound: int, verdicts: str, text: str) -> None:
    assert describe_validity(num_ok, num_sound, verdicts) == text


def test_repeats_that_ended_alike_share_one_row_with_the_cells_and_one_output(collect: Collect) -> None:
    first, second = make_cell(batch_size=1), make_cell(batch_size=2)
    results = [
        make_result(first, repeat=1),
        make_failed_result(first, repeat=2),
        make_failed_result(second, repeat=1, stderr_tail="line 31"),
        make_failed_result(second, repeat=2, status="oom", message="3 GiB asked for"),
    ]
    table = make_failures_table(analyze_run(collect(*results, repeats=4)))
    names = ["conv6 train, CPU, batch 1, 32 px, PyTorch eager", "conv6 train, CPU, batch 2, 32 px, PyTorch eager"]
    rows = [(row[0], *row[2:]) for row in table.format_rows()]
    assert rows == [
        ("missing", "4", f"{names[0]}, repeats 3 and 4; {names[1]}, repeats 3 and 4", ""),
        ("failed", "2", f"{names[0]}, repeat 2; {names[1]}, repeat 1", f"{names[1]}, repeat 1:\nline 31"),
        ("oom", "1", f"{names[1]}, repeat 2", ""),
    ]
    assert table.format_rows()[1][1] == "RuntimeError: it broke (kind exception)"


def test_energy_is_the_geometric_mean_of_the_repeats_in_the_grid_and_in_its_table(collect: Collect) -> None:
    cell, uses = make_cell(device="gpu"), [make_gpu_use(energy_joules=30 * 64.0 * joules) for joules in (1, 1, 8)]
    results = [make_result(cell, repeat=number, gpu_use=(use,)) for number, use in enumerate(uses, start=1)]
    analysis = analyze_run(collect(*results))
    (place,) = make_grid(analysis).places.values()
    energy = make_grid(analysis).metrics[3]
    assert (energy.title, format_figure(energy, place.row)) == ("energy a sample (GPU)", "2.00")
    assert make_energy_table(analysis).format_rows()[0][-1] == "2.00"
