"""Who else uses a GPU after the window, against a made-up NVIDIA library; this process stands for the measured one."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from bench.probes.gpu import read_gpu_baselines
from bench.probes.gpu_processes import find_mps_servers, look_for_neighbours
from bench.schema import ForeignProcess, GpuUse
from fake_mps import PROGRAM, install_mps
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


@pytest.mark.parametrize("processes", [[], [(31_337, 500 * MIB)]], ids=["hidden", "by the host's numbers"])
def test_who_does_not_see_itself_sees_nobody(nvml: FakeNvml, processes: list[tuple[int, int | None]]) -> None:
    use = look(nvml, processes)
    assert (use.processes_visible, use.foreign_processes_after, use.foreign_memory_after_bytes) == (False, None, None)
    assert use.memory_free_after_bytes == (15_360 - 450 - 600) * MIB
    assert GpuUse.model_validate_json(use.to_json()) == use


def test_memory_of_others_is_not_known_without_that_of_this_process(nvml: FakeNvml) -> None:
    use = look(nvml, [(os.getpid(), None)])
    assert (use.processes_visible, use.foreign_processes_after, use.foreign_memory_after_bytes) == (True, (), None)


def test_clients_of_mps_are_seen_beside_other_processes(nvml: FakeNvml) -> None:
    nvml.mps_clients = [(71, 50 * MIB), (STRANGER, 40 * MIB)]
    use = look(nvml, [(os.getpid(), 500 * MIB)])
    assert use.foreign_processes_after == (ForeignProcess(pid=STRANGER, memory_bytes=40 * MIB),)
    assert use.foreign_memory_after_bytes == 50 * MIB


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
            baselines = read_gpu_baselines(1)
            nvml.processes, nvml.memory_used_bytes = processes, 600 * MIB
            (use,) = look_for_neighbours(baselines, OWN, is_under_mps=True)
            (stranger,) = look_for_neighbours(baselines, OWN)
        finally:
            server.kill()
    assert use.foreign_processes_after == (ForeignProcess(pid=STRANGER, memory_bytes=40 * MIB),)
    assert use.foreign_memory_after_bytes == 70 * MIB
    assert [process.pid for process in stranger.foreign_processes_after or ()] == [server.pid, STRANGER]
