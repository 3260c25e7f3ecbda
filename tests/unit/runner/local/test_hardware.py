"""runner.local.hardware: which GPUs a cell would get and how they are shared; a made-up NVML, a stand-in for MPS."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from factories import make_cell
from fake_interpreters import await_end
from fake_mps import install_mps
from fake_nvml import FakeNvml, install_nvml
from runner.local.hardware import explain_unshared, find_gpu, run_mps
from runner.local.process import ProcessNotStarted
from runner.matrix import GpuKind

T4, A100, SLICE = "Tesla T4", "NVIDIA A100-SXM4-40GB", "NVIDIA A100-SXM4-40GB MIG 1g.5gb"
CAPABILITIES = {T4: (7, 5), A100: (8, 0), SLICE: (8, 0)}


def install_gpus(monkeypatch: pytest.MonkeyPatch, *names: str, in_mig_mode: int | None = None) -> None:
    """Have NVML list GPUs of these names; a handle is an index, that of the slice of a GPU in MIG mode is 10 more."""

    def read_mig_mode(handle: int) -> list[int]:
        if names[handle] == T4:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return [int(handle == in_mig_mode)] * 2

    def find_slice(handle: int, index: int) -> int:
        if index != 1:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NO_PERMISSION if index == 0 else pynvml.NVML_ERROR_NOT_FOUND)
        return handle + 10

    def find_by_uuid(uuid: str) -> int:
        if not uuid.startswith("MIG-of-1"):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return 11

    for name, function in {
        "nvmlInit": lambda: None,
        "nvmlShutdown": lambda: None,
        "nvmlDeviceGetCount": lambda: len(names),
        "nvmlDeviceGetHandleByIndex": lambda index: range(len(names))[index],
        "nvmlDeviceGetHandleByUUID": find_by_uuid,
        "nvmlDeviceGetUUID": lambda handle: f"GPU-{handle}{handle}-abc" if handle < 10 else f"MIG-of-{handle - 10}",
        "nvmlDeviceGetName": lambda handle: names[handle] if handle < 10 else SLICE,
        "nvmlDeviceGetMemoryInfo": lambda handle: SimpleNamespace(total=2**34),
        "nvmlDeviceGetCudaComputeCapability": lambda handle: CAPABILITIES[names[handle]],
        "nvmlDeviceGetMigMode": read_mig_mode,
        "nvmlDeviceGetMaxMigDeviceCount": lambda handle: 7,
        "nvmlDeviceGetMigDeviceHandleByIndex": find_slice,
        "nvmlDeviceGetDeviceHandleFromMigDeviceHandle": lambda handle: handle - 10,
    }.items():
        monkeypatch.setattr(pynvml, name, function)


@pytest.mark.parametrize(
    ("names", "in_mig_mode", "visible", "name", "num_gpus"),
    [
        ([T4], None, None, T4, 1),
        ([A100, A100, A100], None, None, A100, 3),
        ([A100, T4, A100], None, None, A100, 1),  # two of one kind are no neighbours
        ([T4, A100, A100], None, "1,2", A100, 2),
        ([T4, A100, A100], None, "2, 0", A100, 1),
        ([T4, A100], None, "GPU-11", A100, 1),
        ([A100, A100, A100], 1, None, SLICE, 1),
        ([A100, A100, A100], 1, "0,2", A100, 2),
        ([A100, A100, A100], 1, "MIG-of-1", SLICE, 1),
        ([T4], None, "", None, 0),
        ([T4], None, "-1", None, 0),
        ([T4], None, "GPU-9", None, 0),
        ([], None, None, None, 0),
    ],
)
def test_a_cell_gets_the_first_visible_gpus_of_one_kind_or_a_slice(
    names: list[str],
    in_mig_mode: int | None,
    visible: str | None,
    name: str | None,
    num_gpus: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install_gpus(monkeypatch, *names, in_mig_mode=in_mig_mode)
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    gpu = None if name is None else GpuKind(name=name, compute_capability=CAPABILITIES[name], num_gpus=num_gpus)
    assert find_gpu() == gpu


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
