"""What errors say: the bytes that were asked for, and whether the machine is at fault."""

import errno
import shutil

import pytest

from bench.frameworks.interface import DeviceMissingError
from bench.worker.failures import is_node_fault, parse_requested_bytes

# Message and bytes.
MESSAGES = {
    "PyTorch, CUDA": (
        "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 14.74 GiB of which 1.10 GiB is "
        "free. Including non-PyTorch memory, this process has 13.64 GiB memory in use.",
        2_147_483_648,
    ),
    "PyTorch, CPU": (
        "[enforce fail at alloc_cpu.cpp:121] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to "
        "allocate 8589934592 bytes. Error code 12 (Cannot allocate memory)",
        8_589_934_592,
    ),
    "TensorFlow, tensor": (
        "{{function_node __wrapped__Conv2D}} OOM when allocating tensor with shape[64,3,224,224] and type float on "
        "/job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc [Op:Conv2D]",
        38_535_168,  # 64 x 3 x 224 x 224 x 4
    ),
    "TensorFlow, half": ("OOM when allocating tensor with shape[10,7] and type half on /job:localhost", 140),
    "TensorFlow, BFC": (
        "Allocator (GPU_0_bfc) ran out of memory trying to allocate 4.00GiB (rounded to 4294967552)requested by op Add",
        4_294_967_552,
    ),
    "TensorFlow, BFC, not rounded": (
        "Allocator (GPU_0_bfc) ran out of memory trying to allocate 4.00GiB with freed_by_count=0.",
        4_294_967_296,
    ),
    "XLA, bytes": ("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 12884901888 bytes.", 12_884_901_888),
    "XLA, CPU": ("RESOURCE_EXHAUSTED: Out of memory allocating 40000000000 bytes.", 40_000_000_000),
    "XLA, allocator": ("INTERNAL: Failed to allocate 1024 bytes for new constant", 1024),
    "XLA, allocator's request": ("failed to allocate request for 2.00GiB (2147483648B) on device", 2_147_483_648),
    "NumPy": ("Unable to allocate 29.5 GiB for an array with shape (64, 3, 6422, 6422)", 31_675_383_808),
}


@pytest.mark.parametrize(("text", "expected"), MESSAGES.values(), ids=MESSAGES)
def test_the_bytes_asked_for_are_read_from_the_message(text: str, expected: int) -> None:
    assert parse_requested_bytes(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "GPU 0 has a total capacity of 14.74 GiB of which 1.10 GiB is free",
        "OOM when allocating tensor with shape[64] and type resource on /job:localhost",
    ],
)
def test_where_nothing_is_said_nothing_is_made_up(text: str) -> None:
    assert parse_requested_bytes(text) is None


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
