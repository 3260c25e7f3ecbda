"""Finds in a framework's out-of-memory message how many bytes it had asked for. Imports no framework."""

import math
import re

_UNIT_BYTES = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50}
# The names of tensorflow.DType, without those of strings and handles, which have no fixed size.
_ELEMENT_BYTES = {
    "bool": 1,
    "int8": 1,
    "uint8": 1,
    "half": 2,
    "bfloat16": 2,
    "int16": 2,
    "uint16": 2,
    "float": 4,
    "int32": 4,
    "uint32": 4,
    "double": 8,
    "int64": 8,
    "uint64": 8,
    "complex64": 8,
    "complex128": 16,
}

# So many digits are more than any size in bytes has, and few enough for a float.
_AMOUNT = r"(?P<number>\d{1,30}(?:\.\d+)?) ?(?P<unit>[KMGTP]?)(?:i?B|bytes)\b"
# The exact ones first: TensorFlow's BFC allocator says a rounded amount and then, in words, the bytes behind it.
_PATTERNS = tuple(
    re.compile(text)
    for text in (
        r"\(rounded to (?P<number>\d{1,30})\)(?P<unit>)",  # TensorFlow, bfc_allocator.cc
        rf"[Tt]ried to allocate {_AMOUNT}",  # PyTorch, CUDACachingAllocator.cpp and alloc_cpu.cpp
        rf"trying to allocate {_AMOUNT}",  # TensorFlow's BFC allocator and XLA, on a GPU
        rf"[Oo]ut of memory allocating {_AMOUNT}",  # XLA, on a CPU
        rf"[Ff]ailed to allocate (?:request for )?{_AMOUNT}",  # XLA's allocators
        rf"Unable to allocate {_AMOUNT}",  # NumPy, making the data on the host
    )
)
_TENSOR = re.compile(r"OOM when allocating tensor with shape\[(?P<shape>[\d,]{0,300})\] and type (?P<type>\w+)")


def parse_requested_bytes(text: str) -> int | None:
    """Return the bytes that the failed allocation had asked for, if the message `text` says it, else None.

    A size given as 2.00 GiB is as exact as that. The first allocation named in `text` counts.
    """
    tensor = _TENSOR.search(text)
    if tensor and tensor["type"] in _ELEMENT_BYTES:
        sizes = [int(size) for size in tensor["shape"].split(",") if size]
        return math.prod(sizes) * _ELEMENT_BYTES[tensor["type"]]
    for pattern in _PATTERNS:
        if match := pattern.search(text):
            return round(float(match["number"]) * _UNIT_BYTES[match["unit"]])
    return None
