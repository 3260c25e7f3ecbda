"""runner.local.hardware: by what this machine's GPU can be shared, from a made-up NVML."""

from pathlib import Path
from typing import Any

import pynvml
import pytest

from factories import make_cell
from fake_mps import install_mps
from fake_nvml import FakeNvml, install_nvml
from runner.local.hardware import explain_unshared


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
