"""runner.local.hardware: which GPUs a cell would get and how they are shared; a made-up NVML, a stand-in for MPS."""

import os
from pathlib import Path
from typing import Any

import pynvml
import pytest

from factories import make_cell, present
from fake_interpreters import await_end
from fake_mps import install_mps
from fake_nvml import FakeNvml, install_nvml
from runner.local.hardware import explain_unshared, find_gpu, run_mps
from runner.local.process import ProcessNotStarted, find_marked


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    """Three GPUs in their default compute mode, and a PATH without MPS."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    return install_nvml(monkeypatch)


T4, A100 = "Tesla T4", "NVIDIA A100-SXM4-40GB"


@pytest.mark.parametrize(
    ("names", "visible", "expected"),
    [
        ((T4, T4, T4), None, (T4, 3)),
        ((A100, T4, A100), None, (A100, 1)),  # two of one kind are no neighbours
        ((A100, T4, A100), "2,0,1", (A100, 2)),
        ((T4, T4, T4), "", None),
    ],
)
def test_a_cell_gets_the_first_visible_gpus_of_one_kind(
    names: tuple[str, ...],
    visible: str | None,
    expected: tuple[str, int] | None,
    nvml: FakeNvml,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nvml.names = names
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    gpu = find_gpu()
    assert expected == (gpu and (gpu.name, gpu.num_gpus))
    assert gpu is None or gpu.compute_capability == (7, 5)


def test_a_cell_gets_one_slice_of_a_gpu_in_mig_mode_and_nothing_without_a_driver(nvml: FakeNvml) -> None:
    nvml.slices = {0: (3, 4)}
    gpu = present(find_gpu())
    assert (gpu.name, gpu.num_gpus) == (f"{A100} MIG 1g.5gb", 1)
    nvml.refusals["nvmlInit"] = pynvml.NVML_ERROR_LIBRARY_NOT_FOUND
    assert find_gpu() is None


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


def test_the_daemon_is_there_for_its_clients_and_gone_after_them(log: Path) -> None:
    with run_mps(DEVICE) as variables:
        folder = variables["CUDA_MPS_PIPE_DIRECTORY"]
        assert log.read_text() == f"{DEVICE} {folder}\n"
        daemons = list(find_marked(f"CUDA_MPS_PIPE_DIRECTORY={folder}"))
        assert len(daemons) == 2
        assert len(folder) < 80  # the path of a socket in it has 107 characters at the most
    assert not Path(folder).exists()
    for pid in daemons:
        await_end(pid)


def test_a_daemon_that_does_not_hear_is_killed(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_MPS_IS_DEAF", "1")
    with run_mps(DEVICE) as variables:
        monkeypatch.setattr("runner.local.hardware.MPS_SECONDS", 0.5)  # for its end alone
        daemons = list(find_marked(f"CUDA_MPS_PIPE_DIRECTORY={variables['CUDA_MPS_PIPE_DIRECTORY']}"))
        assert len(daemons) == 2
    for pid in daemons:
        await_end(pid)


def test_a_daemon_that_does_not_start_says_why(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_MPS_FAILS", "1")
    reason = "nvidia-cuda-mps-control -d ended with exit code 1: An instance of this daemon is already running"
    with pytest.raises(ProcessNotStarted, match=reason), run_mps(DEVICE):
        pass
