"""Which GPUs a process sees, and who else uses them."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from bench.probes.gpu import (
    find_mps_servers,
    find_visible_devices,
    look_for_neighbours,
    read_gpu_baselines,
    restrict_to_cell,
)
from bench.probes.nvml import open_nvml
from bench.schema import ForeignProcess, GpuUse
from fake_mps import PROGRAM, install_mps
from fake_nvml import MIB, UUIDS, FakeNvml


@pytest.mark.parametrize(
    ("slices", "visible", "num_gpus", "expected"),
    [
        ({}, None, 2, [0, 1]),
        ({}, None, 9, [0, 1, 2]),
        ({}, "2, 0,1", 2, [2, 0]),
        ({}, "GPU-a,GPU-bbbb2", 2, [0, 1]),  # CUDA takes the beginning of a UUID
        ({}, "MIG-cccc4444", 1, [3]),
        ({}, "", 1, []),
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
def test_the_devices_are_those_that_cuda_shows(
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
    with open_nvml():
        assert [device.uuid for device in find_visible_devices(num_gpus)] == [UUIDS[index] for index in expected]


@pytest.mark.parametrize(
    ("slices", "visible", "num_gpus", "expected"),
    [
        ({}, "2,1,0", 2, "GPU-bbbb3333,GPU-bbbb2222"),
        ({0: (3, 4)}, None, 1, "MIG-cccc4444"),
        ({}, "7", 1, "7"),  # not there: CUDA and the framework say so
        ({}, "", 1, ""),
    ],
)
def test_a_process_sees_the_gpus_of_its_cell_and_no_other(
    nvml: FakeNvml,
    monkeypatch: pytest.MonkeyPatch,
    slices: dict[int, tuple[int | None, ...]],
    visible: str | None,
    num_gpus: int,
    expected: str,
) -> None:
    nvml.slices = slices
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible or "")
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    restrict_to_cell(num_gpus)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == expected


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
    baselines = read_gpu_baselines(1)
    nvml.processes, nvml.mps_clients, nvml.memory_used_bytes = processes, mps_clients, 600 * MIB
    (use,) = look_for_neighbours(baselines, OWN)
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
            baselines = read_gpu_baselines(1)
            nvml.processes, nvml.memory_used_bytes = processes, 600 * MIB
            (use,) = look_for_neighbours(baselines, OWN, is_under_mps=True)
            (stranger,) = look_for_neighbours(baselines, OWN)
        finally:
            server.kill()
    assert use.foreign_processes_after == (ForeignProcess(pid=STRANGER, memory_bytes=40 * MIB),)
    assert use.foreign_memory_after_bytes == 70 * MIB
    assert [process.pid for process in stranger.foreign_processes_after or ()] == [server.pid, STRANGER]
