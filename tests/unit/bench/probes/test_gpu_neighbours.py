"""Who else uses a GPU after the window, against a made-up NVIDIA library; this process stands for the measured one."""

import os

import pynvml
import pytest

from bench.probes.gpu import read_gpu_baselines
from bench.probes.gpu_neighbours import look_for_neighbours
from bench.schema import ForeignProcess, GpuUse
from fake_nvml import MIB, FakeNvml, install_nvml

OWN = frozenset({os.getpid(), 71})
STRANGER = 99


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    """The library in the place of the driver's."""
    library = install_nvml(monkeypatch)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return library


def look(nvml: FakeNvml, processes: list[tuple[int, int | None]], *, used_bytes: int = 600 * MIB) -> GpuUse:
    """Look at an idle GPU before the start, and again with `processes` on it."""
    baselines = read_gpu_baselines(1)
    nvml.processes, nvml.memory_used_bytes = processes, used_bytes
    (use,) = look_for_neighbours(baselines, OWN)
    return use


def test_who_is_not_of_this_process_is_a_neighbour(nvml: FakeNvml) -> None:
    use = look(nvml, [(os.getpid(), 500 * MIB), (71, 50 * MIB), (STRANGER, 40 * MIB)])
    assert use.processes_visible is True
    assert use.foreign_processes_after == (ForeignProcess(pid=STRANGER, memory_bytes=40 * MIB),)
    assert use.foreign_memory_after_bytes == 50 * MIB
    assert use.memory_free_after_bytes == (15_360 - 450 - 600) * MIB


def test_alone_on_the_gpu_there_is_nobody(nvml: FakeNvml) -> None:
    use = look(nvml, [(os.getpid(), 500 * MIB)], used_bytes=499 * MIB)
    assert (use.processes_visible, use.foreign_processes_after, use.foreign_memory_after_bytes) == (True, (), 0)


@pytest.mark.parametrize("processes", [[], [(31_337, 500 * MIB)]], ids=["hidden", "by the host's numbers"])
def test_who_does_not_see_itself_sees_nobody(nvml: FakeNvml, processes: list[tuple[int, int | None]]) -> None:
    use = look(nvml, processes)
    assert (use.processes_visible, use.foreign_processes_after, use.foreign_memory_after_bytes) == (False, None, None)
    assert use.memory_free_after_bytes == (15_360 - 450 - 600) * MIB
    assert GpuUse.model_validate_json(use.to_json()) == use


def test_a_driver_that_lists_no_processes_shows_nobody(nvml: FakeNvml) -> None:
    nvml.refusals = {"nvmlDeviceGetComputeRunningProcesses_v3": pynvml.NVML_ERROR_NO_PERMISSION}
    use = look(nvml, [(os.getpid(), 500 * MIB)])
    assert (use.foreign_processes, use.processes_visible, use.foreign_processes_after) == (None, False, None)


def test_memory_of_others_is_not_known_without_that_of_this_process(nvml: FakeNvml) -> None:
    use = look(nvml, [(os.getpid(), None)])
    assert (use.processes_visible, use.foreign_processes_after, use.foreign_memory_after_bytes) == (True, (), None)
