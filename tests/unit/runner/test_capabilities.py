"""runner.matrix: what a device cannot do, and what it can."""

from typing import Any

import pytest

from factories import make_cell
from runner.matrix import GpuKind, explain_incapable

T4 = GpuKind(name="Tesla T4", compute_capability=(7, 5), num_gpus=1)
A100 = GpuKind(name="NVIDIA A100-SXM4-40GB", compute_capability=(8, 0), num_gpus=4, memory_bytes=33 * 10**9)
P100 = GpuKind(name="Tesla P100", compute_capability=(6, 0), num_gpus=1)
M40 = GpuKind(name="Tesla M40", compute_capability=(5, 2), num_gpus=1)
ON_GPU = {"device": "gpu"}
LLAMA = {"model": "llama-tiny", "phase": "decode", "input_size": 256, "num_classes": None}
LLAMA_8B = LLAMA | ON_GPU | {"model": "llama-8b", "precision": "bf16"}


@pytest.mark.parametrize(
    ("fields", "gpu", "words"),
    [
        ({"precision": "tf32"}, None, "tf32 is a mode of NVIDIA GPUs"),
        ({"precision": "tf32"}, A100, "tf32 is a mode of NVIDIA GPUs"),  # the cell's device counts, not the machine's
        ({"precision": "fp16"}, None, "fp16 is for GPUs"),
        (ON_GPU, None, "no NVIDIA GPU is visible on this machine"),
        (ON_GPU | {"num_gpus": 2}, T4, "num_gpus is 2, and 1 Tesla T4 can be used together"),
        (ON_GPU | {"num_gpus": 8}, A100, "num_gpus is 8, and 4 NVIDIA A100-SXM4-40GB can be used together"),
        (ON_GPU | {"precision": "tf32"}, T4, "tf32 needs a GPU of compute capability 8.0 or higher; Tesla T4 has 7.5"),
        (ON_GPU | {"precision": "bf16"}, T4, "bf16 needs a GPU of compute capability 8.0 or higher; Tesla T4 has 7.5"),
        (LLAMA | ON_GPU | {"precision": "fp8"}, A100, "fp8 needs a GPU of compute capability 8.9 or higher"),
        (LLAMA | {"precision": "int8-weights"}, A100, "weights of eight bits are for GPUs"),
        # 8.03 billion weights of two bytes, and 64 x 2,048 tokens of 2 x 32 x 1,024 values.
        (
            LLAMA_8B | {"batch_size": 64, "input_size": 2048},
            A100,
            "take 33.2 GB, and NVIDIA A100-SXM4-40GB has 33.0 GB",
        ),
        (LLAMA_8B | {"batch_size": 64, "input_size": 2000}, A100, None),
        (ON_GPU | {"precision": "fp16"}, M40, "fp16 needs a GPU of compute capability 5.3 or higher"),
        (ON_GPU | {"mode": "compiled"}, P100, "compiled PyTorch needs a GPU of compute capability 7.0 or higher"),
        ({}, None, None),
        ({"precision": "bf16"}, None, None),
        ({"mode": "compiled"}, None, None),
        (ON_GPU, M40, None),
        (ON_GPU | {"precision": "fp16"}, T4, None),
        (ON_GPU | {"precision": "fp16"}, P100, None),
        (ON_GPU | {"mode": "compiled"}, T4, None),
        (ON_GPU | {"mode": "compiled", "framework": "tensorflow"}, P100, None),
        (ON_GPU | {"precision": "tf32"}, A100, None),
        (ON_GPU | {"precision": "bf16", "num_gpus": 4}, A100, None),
    ],
)
def test_what_a_device_cannot_do_is_refused_in_one_line(
    fields: dict[str, Any], gpu: GpuKind | None, words: str | None
) -> None:
    reason = explain_incapable(make_cell(**fields), gpu)
    assert reason is None if words is None else words in str(reason)
    assert "\n" not in str(reason)
