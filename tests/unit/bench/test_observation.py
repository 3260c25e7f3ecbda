"""What is observed around the timed window, with a made-up NVIDIA library."""

import pytest

from bench.worker.observe import Observer
from factories import make_cell
from fake_nvml import UUIDS, FakeNvml, install_nvml


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    """Three idle GPUs, all of them visible."""
    library = install_nvml(monkeypatch)
    monkeypatch.setattr("bench.probes.gpu.IDLE_SECONDS", 0.01)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return library


def test_the_gpus_of_the_cell_are_read_around_the_window(nvml: FakeNvml) -> None:
    probes = Observer(make_cell(device="gpu", num_gpus=2), 1)
    probes.read_baseline()
    probes.end_idle_watch()
    nvml.energy_millijoules = [1_000_000, 2_000_000, 1_005_000, 2_007_000]  # each GPU's before, each GPU's after
    with probes.watch_window():
        pass
    assert [use.uuid for use in probes.gpu_use] == [UUIDS[0], UUIDS[1]]
    assert [use.window and use.window.energy_joules for use in probes.gpu_use] == [5.0, 7.0]
    assert [use.idle_power_watts for use in probes.gpu_use] == [60.5, 60.5]
    assert probes.failures == []


def test_a_window_that_cannot_be_watched_is_run_all_the_same(nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(uses: object) -> None:
        raise OSError("no counters")

    monkeypatch.setattr("bench.worker.observe.WindowWatch", fail)
    probes = Observer(make_cell(device="gpu"), 1)
    probes.read_baseline()
    probes.end_idle_watch()
    was_run = False
    with probes.watch_window():
        was_run = True
    assert (was_run, probes.gpu_use[0].window) == (True, None)
    assert probes.failures == ["GPUs in the window: OSError: no counters"]
