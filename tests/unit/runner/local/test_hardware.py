"""runner.local.hardware: which GPUs a cell would get, from an NVML with made-up devices."""

from typing import Any

import pynvml
import pytest

from runner.capabilities import GpuKind
from runner.local.hardware import find_gpu

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
