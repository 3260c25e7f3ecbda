"""Memory that was freed goes back to the system."""

import platform
import re
from pathlib import Path

import pytest

from bench.freed_memory import release_freed_memory

NUM_BLOCKS, BLOCK_BYTES = 50_000, 1000
"""More than 512 bytes each: smaller ones are in memory that Python itself takes from the system."""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc's allocator can be asked")
def test_freed_blocks_go_back_to_the_system() -> None:
    blocks = [bytes(BLOCK_BYTES) for _ in range(NUM_BLOCKS)]
    last = blocks[-1]  # behind the others: what lies before it stays with the allocator
    del blocks
    before = read_resident_bytes()
    release_freed_memory()
    assert before - read_resident_bytes() > NUM_BLOCKS * BLOCK_BYTES / 2
    assert len(last) == BLOCK_BYTES


def test_what_is_in_use_stays_as_it_is() -> None:
    blocks = [bytes([number % 256]) * BLOCK_BYTES for number in range(1000)]
    del blocks[::2]
    release_freed_memory()
    assert blocks == [bytes([number % 256]) * BLOCK_BYTES for number in range(1, 1000, 2)]


def read_resident_bytes() -> int:
    (kilobytes,) = re.findall(r"^VmRSS:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    return int(kilobytes) * 1024
