"""Which GPUs and MIG slices CUDA shows, against a made-up NVIDIA library."""

import os

import pytest

from bench.probes.gpu_processes import find_visible_devices, restrict_to_cell
from bench.probes.nvml import open_nvml
from fake_nvml import UUIDS, FakeNvml, install_nvml


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    """The library in the place of the driver's; every device is visible."""
    library = install_nvml(monkeypatch)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return library


def find_uuids(num_gpus: int) -> list[str]:
    with open_nvml():
        return [device.uuid for device in find_visible_devices(num_gpus)]


@pytest.mark.parametrize(
    ("visible", "num_gpus", "expected"),
    [
        (None, 2, [0, 1]),
        (None, 9, [0, 1, 2]),
        ("2", 1, [2]),
        ("2, 0,1", 2, [2, 0]),
        ("GPU-bbbb3333", 1, [2]),
        ("GPU-a,GPU-bbbb2", 2, [0, 1]),  # CUDA takes the beginning of a UUID
        ("MIG-cccc4444", 1, [3]),
        ("", 1, []),
    ],
)
def test_the_devices_are_those_that_cuda_shows(
    nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch, visible: str | None, num_gpus: int, expected: list[int]
) -> None:
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert find_uuids(num_gpus) == [UUIDS[index] for index in expected]


# Slices: numbers 3 and 4 of UUIDS


@pytest.mark.parametrize(
    ("slices", "visible", "expected"),
    [
        ({0: (3, 4)}, None, [3]),  # the parent is not shown, and one slice is all that a process sees
        ({0: (None, 4)}, None, [4]),  # a container that was given the second slice
        ({2: (3,)}, None, [3]),  # nor is a whole GPU shown beside a slice
        ({1: ()}, None, [0, 2]),  # in MIG mode without a slice a GPU is not shown
        ({0: (3,), 1: (4,)}, "1", [4]),
        ({0: (3,), 1: (4,)}, "1,0", [4]),
        ({1: (3,)}, "GPU-bbbb2222", [3]),
        ({1: (3,)}, "0,2", [0, 2]),
        ({0: (3, 4)}, "MIG-dddd5555", [4]),
        ({0: (3, 4)}, "MIG-dddd5555,MIG-cccc4444", [4]),
        ({0: ()}, "0", []),
    ],
)
def test_a_gpu_in_mig_mode_stands_for_its_first_slice(
    nvml: FakeNvml,
    monkeypatch: pytest.MonkeyPatch,
    slices: dict[int, tuple[int | None, ...]],
    visible: str | None,
    expected: list[int],
) -> None:
    nvml.slices = slices
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert find_uuids(3) == [UUIDS[index] for index in expected]


@pytest.mark.parametrize(
    ("slices", "visible", "num_gpus", "expected"),
    [
        ({}, None, 1, "GPU-aaaa1111"),
        ({}, "2,1,0", 2, "GPU-bbbb3333,GPU-bbbb2222"),
        ({}, "GPU-a", 1, "GPU-aaaa1111"),
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
