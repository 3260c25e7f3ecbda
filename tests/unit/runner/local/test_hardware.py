"""runner.local.hardware: which GPUs a cell would get and how they are shared; a made-up NVML, a stand-in for MPS."""

import os
from pathlib import Path
from typing import Any

import pynvml
import pytest

from factories import make_cell
from fake_interpreters import await_end
from fake_mps import install_mps
from fake_nvml import FakeNvml, install_nvml
from runner.capabilities import GpuKind
from runner.local.hardware import explain_unshared, find_gpu, run_mps
from runner.local.process import ProcessNotStarted

T4, A100 = ("Tesla T4", (7, 5)), ("NVIDIA A100-SXM4-40GB", (8, 0))


SLICE = ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", (8, 0))


class Devices:
    """Takes the place of the driver: NVML's functions over a list of names and capabilities; a handle is an index.

    A GPU in MIG mode has one slice, the second by number, whose handle is 10 more than the GPU's.
    """

    def __init__(self, *kinds: tuple[str, tuple[int, int]], in_mig_mode: tuple[int, ...] = ()) -> None:
        self.kinds = kinds
        self.in_mig_mode = in_mig_mode

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, function in {
            "nvmlInit": lambda: None,
            "nvmlShutdown": lambda: None,
            "nvmlDeviceGetCount": lambda: len(self.kinds),
            "nvmlDeviceGetHandleByIndex": lambda index: index,
            "nvmlDeviceGetHandleByUUID": self.find_part,
            "nvmlDeviceGetUUID": lambda handle: (
                f"GPU-{handle}{handle}{handle}-abc" if handle < 10 else f"MIG-of-{handle - 10}"
            ),
            "nvmlDeviceGetName": lambda handle: self.kinds[handle][0] if handle < 10 else SLICE[0],
            "nvmlDeviceGetCudaComputeCapability": lambda handle: list(self.kinds[handle][1]),
            "nvmlDeviceGetMigMode": self.read_mig_mode,
            "nvmlDeviceGetMaxMigDeviceCount": lambda handle: 7,
            "nvmlDeviceGetMigDeviceHandleByIndex": self.find_slice,
            "nvmlDeviceGetDeviceHandleFromMigDeviceHandle": lambda handle: handle - 10,
        }.items():
            monkeypatch.setattr(pynvml, name, function)

    def find_part(self, uuid: str) -> int:
        if uuid != "MIG-of-1":
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return 11

    def read_mig_mode(self, handle: int) -> list[int]:
        if self.kinds[handle] == T4:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return [int(handle in self.in_mig_mode)] * 2

    def find_slice(self, handle: int, index: int) -> int:
        if index != 1:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NO_PERMISSION if index == 0 else pynvml.NVML_ERROR_NOT_FOUND)
        return handle + 10


def make_kind(kind: tuple[str, tuple[int, int]], num_gpus: int) -> GpuKind:
    return GpuKind(name=kind[0], compute_capability=kind[1], num_gpus=num_gpus)


@pytest.mark.parametrize(
    ("kinds", "visible", "expected"),
    [
        ((T4,), None, make_kind(T4, 1)),
        ((A100, A100, A100), None, make_kind(A100, 3)),
        ((A100, T4, A100), None, make_kind(A100, 1)),  # two of one kind are no neighbours
        ((T4, A100, A100), "1,2", make_kind(A100, 2)),
        ((T4, A100, A100), "2, 0", make_kind(A100, 1)),
        ((T4, A100), "GPU-111", make_kind(A100, 1)),
        ((T4, A100), "GPU-111-abc,GPU-0", make_kind(A100, 1)),
        ((T4, A100), "MIG-of-1", make_kind(SLICE, 1)),
        ((A100, A100), "0,7,1", make_kind(A100, 1)),  # CUDA reads no further than a device that is not there
        ((T4,), "", None),
        ((T4,), "-1", None),
        ((T4,), "GPU-9", None),
        ((T4,), "MIG-of-2", None),
        ((), None, None),
    ],
)
def test_a_cell_gets_the_first_visible_gpus_of_one_kind(
    kinds: tuple[Any, ...], visible: str | None, expected: GpuKind | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    Devices(*kinds).install(monkeypatch)
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert find_gpu() == expected


@pytest.mark.parametrize(
    ("visible", "expected"),
    [(None, make_kind(SLICE, 1)), ("1", make_kind(SLICE, 1)), ("0,2", make_kind(A100, 2))],
)
def test_of_a_gpu_in_mig_mode_a_cell_gets_a_slice(
    visible: str | None, expected: GpuKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    Devices(A100, A100, A100, in_mig_mode=(1,)).install(monkeypatch)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible or "")
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert find_gpu() == expected


def test_without_a_driver_there_is_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    monkeypatch.setattr(pynvml, "nvmlInit", fail)
    assert find_gpu() is None


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    """Three GPUs in their default compute mode, and a PATH without MPS."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    return install_nvml(monkeypatch)


def explain(**fields: Any) -> str:
    """Return why a GPU cell with these fields is left out; empty where it is not."""
    return explain_unshared(make_cell(**({"device": "gpu"} | fields))) or ""


def test_a_gpu_is_shared_by_time_slicing_as_it_is(nvml: FakeNvml) -> None:
    assert [explain(tenants=number) for number in (1, 8)] == ["", ""]
    assert explain_unshared(make_cell(tenants=4)) is None  # the cores of a CPU


@pytest.mark.parametrize("mode", [pynvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS, pynvml.NVML_COMPUTEMODE_PROHIBITED])
def test_a_gpu_that_lets_one_process_in_is_not_shared(nvml: FakeNvml, mode: int) -> None:
    nvml.compute_mode = mode
    assert "its compute mode allows one; `nvidia-smi -c DEFAULT`" in explain(tenants=2)
    assert explain(tenants=1) == ""


def test_mps_needs_its_program(nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert "needs NVIDIA's nvidia-cuda-mps-control" in explain(tenants=1, sharing="mps")
    install_mps(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert explain(tenants=1, sharing="mps") == ""


def test_mig_needs_a_slice_for_each_tenant(nvml: FakeNvml) -> None:
    assert "for each of 2 tenants, and the GPU has 0 here" in explain(tenants=2, sharing="mig")
    nvml.slices = {0: (3, 4)}
    assert [explain(tenants=number, sharing="mig") for number in (1, 2)] == ["", ""]
    assert "for each of 3 tenants, and the GPU has 2 here" in explain(tenants=3, sharing="mig")


def test_only_slices_that_were_chosen_count(nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch) -> None:
    nvml.slices = {0: (3, 4)}
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-dddd5555")
    assert explain(tenants=1, sharing="mig") == ""
    assert "the GPU has 1 here" in explain(tenants=2, sharing="mig")


DEVICE = "GPU-aaaa1111"


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file in which the stand-in notes what it was started with."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return install_mps(tmp_path)


def list_daemons(folder: str) -> list[int]:
    """Return the processes of the stand-in that serve in this folder."""
    found = []
    for entry in filter(str.isdecimal, os.listdir("/proc")):
        try:
            command = Path(f"/proc/{entry}/cmdline").read_bytes()
            variables = Path(f"/proc/{entry}/environ").read_bytes()
        except OSError:
            continue
        if b"--serve" in command and folder.encode() in variables:
            found.append(int(entry))
    return found


def test_the_daemon_is_there_for_its_clients_and_gone_after_them(log: Path) -> None:
    with run_mps(DEVICE) as variables:
        folder = variables["CUDA_MPS_PIPE_DIRECTORY"]
        assert log.read_text() == f"{DEVICE} {folder}\n"
        daemons = list_daemons(folder)
        assert len(daemons) == 2
        assert len(folder) < 80  # the path of a socket in it has 107 characters at the most
    assert not Path(folder).exists()
    for pid in daemons:
        await_end(pid)


def test_a_daemon_that_does_not_hear_is_killed(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_MPS_IS_DEAF", "1")
    with run_mps(DEVICE) as variables:
        monkeypatch.setattr("runner.local.hardware.MPS_SECONDS", 0.5)  # for its end alone
        daemons = list_daemons(variables["CUDA_MPS_PIPE_DIRECTORY"])
        assert len(daemons) == 2
    for pid in daemons:
        await_end(pid)


def test_a_daemon_that_does_not_start_says_why(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_MPS_FAILS", "1")
    reason = "nvidia-cuda-mps-control -d ended with exit code 1: An instance of this daemon is already running"
    with pytest.raises(ProcessNotStarted, match=reason), run_mps(DEVICE):
        pass


def test_a_machine_without_the_program_has_no_mps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ProcessNotStarted, match="nvidia-cuda-mps-control"), run_mps(DEVICE):
        pass
