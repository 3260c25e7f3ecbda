"""Whether the machine is at fault for an error."""

import errno
import shutil

import pytest

from bench.frameworks.interface import DeviceMissingError
from bench.worker.failures import is_node_fault

FULL = OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (DeviceMissingError("PyTorch 2.9 sees 0 GPUs, the cell asks for 1"), True),
        (RuntimeError("CUDA error: uncorrectable ECC error encountered\nCUDA kernel errors might be"), True),
        (RuntimeError("CUDA error: unknown error"), True),
        (RuntimeError("INTERNAL: failed call to cuInit: CUDA_ERROR_SYSTEM_NOT_READY: system not yet ready"), True),
        # What the cell does to a healthy GPU, and what merely names such an error.
        (RuntimeError("CUDA error: out of memory"), False),
        (RuntimeError("CUDA error: an illegal memory access was encountered"), False),
        (ValueError("CUDA error: unknown error"), False),
        (OSError(errno.ENOENT, "No such file"), False),
    ],
)
def test_only_what_no_cell_can_cause_is_the_machines_fault(error: Exception, expected: bool) -> None:
    assert is_node_fault(error) == expected


@pytest.mark.parametrize("error", [FULL, RuntimeError("torch._inductor: [Errno 28] No space left on device")])
@pytest.mark.parametrize(("free_bytes", "expected"), [(2**20, True), (2**40, False)])
def test_a_full_disk_is_the_machines_fault_unless_another_volume_is_full(
    monkeypatch: pytest.MonkeyPatch, error: Exception, free_bytes: int, expected: bool
) -> None:
    usage = shutil.disk_usage("/")._replace(free=free_bytes)
    monkeypatch.setattr("shutil.disk_usage", lambda folder: usage)
    assert is_node_fault(error) == expected


def test_what_tensorflow_says_of_a_card_is_read_though_its_errors_are_no_runtime_errors() -> None:
    kind = type("InternalError", (Exception,), {"__module__": "tensorflow.python.framework.errors_impl"})
    assert is_node_fault(kind("CUDA error: Failed call to cuDeviceGet: UNKNOWN ERROR (303)"))
    assert is_node_fault(kind("failed call to cuInit: CUDA_ERROR_UNKNOWN: unknown error"))
    assert not is_node_fault(kind("Matrix size-incompatible"))
    assert not is_node_fault(ValueError("CUDA_ERROR_UNKNOWN"))
