"""What is read of GPUs around the timed window, against a made-up NVIDIA library."""

import time

import pynvml
import pytest

from bench.probes.gpu import WindowWatch, read_gpu_baselines
from bench.schema import GpuWindow
from fake_nvml import FakeNvml, install_nvml

SECOND = 1_000_000_000


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    """The library in the place of the driver's; every device is visible."""
    library = install_nvml(monkeypatch)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return library


def watch(seconds: float) -> GpuWindow:
    window_watch = WindowWatch(read_gpu_baselines(1))
    time.sleep(seconds)
    (use,) = window_watch.end()
    assert use.window is not None
    return use.window


def test_the_window_has_the_growth_of_every_counter_that_can_be_read(nvml: FakeNvml) -> None:
    nvml.held_nanoseconds = {
        pynvml.NVML_FI_DEV_PERF_POLICY_POWER: [7 * SECOND, 7 * SECOND + SECOND // 20],
        pynvml.NVML_FI_DEV_PERF_POLICY_THERMAL: [5 * SECOND],
    }
    nvml.energy_millijoules = [1_000_000, 1_012_000]
    window = watch(0.1)
    assert (window.sm_clock_before_mhz, window.sm_clock_after_mhz) == (1500, 1500)
    assert window.energy_joules == pytest.approx(12.0)
    assert window.held_seconds == {"power": pytest.approx(0.05), "thermal": 0.0}
    assert window.seconds >= 0.1


def test_only_the_drivers_samples_of_the_window_itself_count(nvml: FakeNvml) -> None:
    window_watch = WindowWatch(read_gpu_baselines(1))
    time.sleep(0.1)
    now = int(time.time() * 1e6)
    # An hour before, in the window, and in an hour; times since the machine was booted would be long ago.
    nvml.clock_samples = [
        (now - 3_600_000_000, 300),
        (now - 50_000, 1400),
        (now - 40_000, 1410),
        (now - 30_000, 0),
        (now + 3_600_000_000, 300),
    ]
    (use,) = window_watch.end()
    assert use.window is not None
    assert use.window.sm_clock_mhz == (1400, 1410)
