"""A cell's GPUs through NVML, with a fake of it: which they are, who uses them, the sampling pass and the window."""

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pynvml
import pytest

from bench.probes.gpu import (
    GpuProbe,
    Series,
    find_lowest_mean,
    find_mps_servers,
    measure_energy,
    read_gpus,
    restrict_to_cell,
    summarize_pass,
)
from bench.schema import ForeignProcess, GpuUse
from fake_mps import PROGRAM, install_mps
from fake_nvml import MIB, UUIDS, FakeNvml
from waiting import wait_for

NOT_SUPPORTED = pynvml.NVML_ERROR_NOT_SUPPORTED


def watch_idle_and_sample(gpus: GpuProbe, run_steps: Callable[[], int]) -> tuple[GpuUse, ...]:
    gpus.watch_idle()()
    gpus.sample(run_steps)
    return gpus.uses


def test_every_gpu_of_a_cell_is_described(nvml: FakeNvml) -> None:
    first, second = read_gpus(2, "12.8", None)
    assert (first.uuid, second.uuid) == (UUIDS[0], UUIDS[1])
    assert (first.name, first.compute_capability) == ("Tesla T4", "7.5")
    assert (first.driver_version, first.cuda_version) == ("550.54.15", "12.8")
    assert first.memory_total_bytes == 15_360 * MIB
    assert (first.mig_profile, first.ecc_enabled) == (None, True)
    assert (first.pcie_generation, first.pcie_width, first.max_pcie_generation, first.max_pcie_width) == (1, 8, 3, 16)
    assert (first.power_limit_watts, first.default_power_limit_watts) == (70.0, 70.0)


def test_nothing_of_the_whole_gpu_is_attributed_to_a_slice_but_link_and_memory_checks(
    nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvml.slices = {1: (3,)}
    nvml.processes = [(17, 300 * MIB)]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-cccc4444")
    (mig_slice,) = read_gpus(1, None, None)
    assert (mig_slice.name, mig_slice.mig_profile) == ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "1g.5gb")
    assert (mig_slice.compute_capability, mig_slice.ecc_enabled, mig_slice.max_pcie_width) == ("7.5", True, 16)
    assert (mig_slice.power_limit_watts, mig_slice.default_power_limit_watts) == (None, None)
    (use,) = watch_idle_and_sample(GpuProbe(1), lambda: 5)
    assert use.is_slice
    assert (use.idle_power_watts, use.power_limit_watts, use.max_sm_clock_mhz, use.energy_joules) == (None,) * 4
    assert (use.sm_clock_mhz, use.temperature_celsius, use.power_watts, use.utilization) == ((),) * 4
    assert (use.throttle_reasons, use.sample_reasons) == ({}, ())
    # NVML knows these of the slice itself.
    assert (use.memory_used_before_bytes, use.memory_used_peak_bytes) == (3 * MIB, 3 * MIB)
    assert use.foreign_processes == (ForeignProcess(pid=17, memory_bytes=300 * MIB),)


def test_the_baseline_says_who_was_there_before(nvml: FakeNvml) -> None:
    nvml.processes = [(17, 300 * MIB), (18, None)]
    (use,) = GpuProbe(1).uses
    expected = (ForeignProcess(pid=17, memory_bytes=300 * MIB), ForeignProcess(pid=18, memory_bytes=None))
    assert use.foreign_processes == expected
    assert (use.uuid, use.idle_power_watts, use.power_limit_watts, use.max_sm_clock_mhz) == (UUIDS[0], None, 70.0, 1590)
    assert (use.application_clock_mhz, use.default_application_clock_mhz) == (900, 1000)
    assert use.memory_used_before_bytes == 3 * MIB  # the driver's reserve left out
    assert (use.window_seconds, use.num_steps, use.sample_seconds) == (None, 0, ())


@pytest.mark.parametrize(
    ("watts", "expected"), [([], None), ([70.0], 70.0), ([200.0, 120.0, 80.0, 60.0, 70.0, 90.0], 70.0)]
)
def test_the_idle_power_is_the_lowest_mean_of_values_on_end(watts: list[float], expected: float | None) -> None:
    """Of three: 133.3, 86.7, 70, 73.3."""
    assert find_lowest_mean(watts, 3) == expected


def test_what_a_device_does_not_support_is_unknown(nvml: FakeNvml) -> None:
    refused = ["PowerUsage", "EnforcedPowerLimit", "MaxClockInfo", "MemoryInfo", "ClockInfo", "Temperature"]
    refused += ["UtilizationRates", "TotalEnergyConsumption", "CurrentClocksThrottleReasons"]
    nvml.refusals = {f"nvmlDeviceGet{name}": NOT_SUPPORTED for name in refused}
    nvml.refusals["nvmlDeviceGetComputeRunningProcesses"] = pynvml.NVML_ERROR_NO_PERMISSION
    (use,) = watch_idle_and_sample(GpuProbe(1), lambda: 5)
    assert (use.idle_power_watts, use.power_limit_watts, use.max_sm_clock_mhz) == (None, None, None)
    assert (use.memory_used_before_bytes, use.memory_used_peak_bytes, use.foreign_processes) == (None, None, None)
    assert (use.sm_clock_mhz, use.temperature_celsius, use.power_watts) == ((), (), ())
    assert (use.throttle_reasons, use.energy_joules) == ({}, None)
    assert (use.num_steps, len(use.sample_seconds) > 0) == (5, True)
    assert GpuUse.model_validate_json(use.to_json()) == use


def await_readings(nvml: FakeNvml, number: int) -> None:
    """Return when the energy counters were read so many times, from now on."""
    before = nvml.num_energy_readings
    wait_for(lambda: nvml.num_energy_readings >= before + number, "readings", 0.001)


def test_a_pass_samples_every_gpu_while_the_steps_run(nvml: FakeNvml) -> None:
    gpus = GpuProbe(2)
    nvml.memory_used_bytes = 900 * MIB

    def run() -> int:
        await_readings(nvml, 6)  # each sample of two GPUs takes two
        return 7

    first, second = watch_idle_and_sample(gpus, run)
    assert (first.uuid, second.uuid) == (UUIDS[0], UUIDS[1])
    for use in (first, second):
        assert (use.num_steps, use.idle_power_watts) == (7, 60.5)
        assert (use.memory_used_before_bytes, use.memory_used_peak_bytes) == (3 * MIB, 900 * MIB)
        assert len(use.sample_seconds) >= 2
        assert (use.window_seconds or 0) >= use.sample_seconds[1]
        assert list(use.sample_seconds) == sorted(use.sample_seconds)
        assert (set(use.sm_clock_mhz), set(use.temperature_celsius), set(use.power_watts)) == ({1500}, {55}, {60.5})
        assert use.throttle_reasons == {"software power cap": 1.0, "software thermal slowdown": 1.0}
        assert set(use.sample_reasons) == {("software power cap", "software thermal slowdown")}
        assert (set(use.utilization), len(use.utilization)) == ({0.8}, len(use.sample_seconds))
        assert GpuUse.model_validate_json(use.to_json()) == use


def make_series(*samples: tuple[float, float | None, float | None]) -> Series:
    """Return the series of samples (seconds, joules, watts)."""
    names = ("sm_clock_mhz", "temperature_celsius", "memory_used_bytes", "utilization", "throttle_reasons")
    return [
        dict.fromkeys(names) | {"seconds": seconds, "energy_joules": joules, "power_watts": watts}
        for seconds, joules, watts in samples
    ]


def test_energy_is_the_mean_power_between_two_jumps_of_the_counter_times_the_window() -> None:
    # Jumps at 0.10 s to 108, at 0.20 s to 118, at 0.30 s to 130 J: 22 J in 0.2 s are 110 W; the window is 0.4 s.
    joules = [(0.0, 100.0), (0.05, 100.0), (0.1, 108.0), (0.15, 108.0), (0.2, 118.0), (0.3, 130.0), (0.35, 130.0)]
    series = make_series(*((seconds, value, 999.0) for seconds, value in joules))
    energy, source = measure_energy(series, 0.4)
    assert energy == pytest.approx(44.0)
    assert source == "energy-counter"


@pytest.mark.parametrize(
    "readings",
    [(100.0, 108.0, 108.0), (100.0, 108.0, 0.0, 12.0), (100.0, 0.0, 108.0, 116.0), (100.0, 108.0, 116.0, 0.0)],
)
def test_a_counter_that_hardly_moves_or_falls_leaves_the_samples_of_power(readings: tuple[float, ...]) -> None:
    series = make_series(*((0.1 * number, joules, 60.0) for number, joules in enumerate(readings)))
    assert measure_energy(series, 0.4) == (24.0, "power-samples")


def test_reasons_are_given_as_shares_of_the_samples() -> None:
    reasons: list[tuple[str, ...]] = [("GPU idle",), (), ("GPU idle", "sync boost"), ()]
    series = make_series(*((index / 10, None, None) for index in range(4)))
    with_reasons = [{**sample, "throttle_reasons": given} for sample, given in zip(series, reasons, strict=True)]
    found = summarize_pass(with_reasons, 0.4, 3)
    assert found["throttle_reasons"] == {"GPU idle": 0.5, "sync boost": 0.25}
    assert found["sample_reasons"] == tuple(reasons)


SECOND = 1_000_000_000


def test_the_window_has_the_growth_of_every_counter_that_can_be_read(nvml: FakeNvml) -> None:
    nvml.held_nanoseconds = {
        pynvml.NVML_FI_DEV_PERF_POLICY_POWER: [7 * SECOND, 7 * SECOND + SECOND // 20],
        pynvml.NVML_FI_DEV_PERF_POLICY_THERMAL: [5 * SECOND],
    }
    nvml.energy_millijoules = [1_000_000, 1_012_000]
    gpus = GpuProbe(1)
    end_window = gpus.watch_window()
    time.sleep(0.1)
    now = int(time.time() * 1e6)
    # The driver's samples: an hour before, in the window, none, and in an hour.
    samples = ((-3_600_000_000, 300), (-50_000, 1400), (-40_000, 1410), (-30_000, 0), (3_600_000_000, 300))
    nvml.clock_samples = [(now + moment, clock) for moment, clock in samples]
    end_window()
    (use,) = gpus.uses
    window = use.window
    assert window is not None
    assert (window.sm_clock_before_mhz, window.sm_clock_after_mhz) == (1500, 1500)
    assert window.sm_clock_mhz == (1400, 1410)
    assert window.energy_joules == pytest.approx(12.0)
    assert window.held_seconds == {"power": pytest.approx(0.05), "thermal": 0.0}
    assert window.seconds >= 0.1


@pytest.mark.parametrize(
    ("slices", "visible", "num_gpus", "expected"),
    [
        ({}, None, 2, [0, 1]),
        ({}, None, 9, [0, 1, 2]),
        ({}, "2, 0,1", 2, [2, 0]),
        ({}, "GPU-a,GPU-bbbb2", 2, [0, 1]),  # CUDA takes the beginning of a UUID
        ({}, "MIG-cccc4444", 1, [3]),
        ({}, "", 1, []),
        ({}, "7", 1, []),  # not there: CUDA and the framework say so
        # A GPU in MIG mode stands for its first slice: numbers 3 and 4 of UUIDS.
        ({0: (3, 4)}, None, 3, [3]),  # the parent is not shown, and one slice is all that a process sees
        ({0: (None, 4)}, None, 3, [4]),  # a container that was given the second slice
        ({2: (3,)}, None, 3, [3]),  # nor is a whole GPU shown beside a slice
        ({1: ()}, None, 3, [0, 2]),  # in MIG mode without a slice a GPU is not shown
        ({0: (3,), 1: (4,)}, "1,0", 3, [4]),
        ({1: (3,)}, "GPU-bbbb2222", 3, [3]),
        ({1: (3,)}, "0,2", 3, [0, 2]),
        ({0: (3, 4)}, "MIG-dddd5555,MIG-cccc4444", 3, [4]),
        ({0: ()}, "0", 3, []),
    ],
)
def test_a_process_sees_the_gpus_of_its_cell_as_cuda_shows_them_and_no_other(
    nvml: FakeNvml,
    monkeypatch: pytest.MonkeyPatch,
    slices: dict[int, tuple[int | None, ...]],
    visible: str | None,
    num_gpus: int,
    expected: list[int],
) -> None:
    nvml.slices = slices
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    restrict_to_cell(num_gpus)
    shown = ",".join(UUIDS[index] for index in expected) or visible
    assert os.environ.get("CUDA_VISIBLE_DEVICES") == shown


OWN = frozenset({os.getpid(), 71})
STRANGER = 99


FREE_BYTES = (15_360 - 450 - 600) * MIB
FOREIGN = (ForeignProcess(pid=STRANGER, memory_bytes=40 * MIB),)


@pytest.mark.parametrize(
    ("processes", "mps_clients", "expected"),
    [
        # Of 600 MiB in use this process and a child of it have 550.
        ([(os.getpid(), 500 * MIB), (71, 50 * MIB), (STRANGER, 40 * MIB)], None, (True, FOREIGN, 50 * MIB)),
        ([(os.getpid(), 500 * MIB)], [(71, 50 * MIB), (STRANGER, 40 * MIB)], (True, FOREIGN, 50 * MIB)),
        ([(os.getpid(), None)], None, (True, (), None)),  # the rest is not known without that of this process
        # Who does not see itself sees nobody: processes are hidden, or shown by the host's numbers.
        ([], None, (False, None, None)),
        ([(31_337, 500 * MIB)], None, (False, None, None)),
    ],
)
def test_who_is_not_of_this_process_is_a_neighbour(
    nvml: FakeNvml,
    processes: list[tuple[int, int | None]],
    mps_clients: list[tuple[int, int | None]] | None,
    expected: tuple[bool, tuple[ForeignProcess, ...] | None, int | None],
) -> None:
    gpus = GpuProbe(1)
    nvml.processes, nvml.mps_clients, nvml.memory_used_bytes = processes, mps_clients, 600 * MIB
    gpus.look_for_neighbours(OWN)
    (use,) = gpus.uses
    assert (use.processes_visible, use.foreign_processes_after, use.foreign_memory_after_bytes) == expected
    assert use.memory_free_after_bytes == FREE_BYTES
    assert GpuUse.model_validate_json(use.to_json()) == use


def test_the_server_of_mps_computes_for_its_tenants(nvml: FakeNvml, tmp_path: Path) -> None:
    install_mps(tmp_path)
    variables = {**os.environ, "CUDA_MPS_PIPE_DIRECTORY": str(tmp_path)}
    with subprocess.Popen([str(tmp_path / PROGRAM), "--serve"], env=variables) as server:
        try:
            processes: list[tuple[int, int | None]] = [
                (os.getpid(), 500 * MIB),
                (server.pid, 30 * MIB),
                (STRANGER, 40 * MIB),
            ]
            while not find_mps_servers([server.pid]) and server.poll() is None:
                time.sleep(0.01)  # the kernel gives it its name a moment after it was started
            assert find_mps_servers([server.pid, os.getpid(), STRANGER]) == {server.pid}
            nvml.processes, nvml.memory_used_bytes = processes, 600 * MIB
            uses: list[GpuUse] = []
            for is_under_mps in (True, False):
                gpus = GpuProbe(1, is_under_mps=is_under_mps)
                gpus.look_for_neighbours(OWN)
                uses += gpus.uses
        finally:
            server.kill()
    use, stranger = uses
    assert use.foreign_processes_after == (ForeignProcess(pid=STRANGER, memory_bytes=40 * MIB),)
    assert use.foreign_memory_after_bytes == 70 * MIB
    assert [process.pid for process in stranger.foreign_processes_after or ()] == [server.pid, STRANGER]
