"""The bandwidth of the host's memory: how large the arrays are, and that copies are made and counted."""

import ctypes
from pathlib import Path

import pytest

from bench.probes import memory
from bench.probes.memory import choose_copy_bytes, measure_memory_copy, read_cache_bytes

MIB = 2**20
ROOM = 64 * 2**30


@pytest.mark.parametrize(
    ("cache_bytes", "room_bytes", "expected"),
    [
        (32 * MIB, ROOM, 128 * MIB),  # STREAM's rule: four times the cache
        (2 * MIB, ROOM, 64 * MIB),
        (384 * MIB, ROOM, 512 * MIB),
        (None, ROOM, 512 * MIB),
        (32 * MIB, 1536 * MIB, 96 * MIB),  # a sixteenth of what is left
        (32 * MIB, 512 * MIB, None),
        (32 * MIB, -1, None),
    ],
)
def test_arrays_are_past_the_cache_and_never_in_the_way(
    cache_bytes: int | None, room_bytes: int, expected: int | None
) -> None:
    assert choose_copy_bytes(cache_bytes, room_bytes) == expected


def put_cache(root: Path, cpu: int, index: int, level: int, size: str, shared: str) -> None:
    folder = root / f"cpu{cpu}" / "cache" / f"index{index}"
    folder.mkdir(parents=True)
    for name, text in (("level", str(level)), ("size", size), ("shared_cpu_list", shared)):
        (folder / name).write_text(f"{text}\n")


def test_the_last_level_is_counted_once_for_the_cpus_that_share_it(tmp_path: Path) -> None:
    for cpu, shared in ((0, "0-1"), (1, "0-1"), (2, "2-3"), (3, "2-3")):
        put_cache(tmp_path, cpu, 2, 2, "1024K", str(cpu))
        put_cache(tmp_path, cpu, 3, 3, "32M", shared)
    assert read_cache_bytes([0, 1, 2, 3], tmp_path) == 64 * MIB
    assert read_cache_bytes([0, 1], tmp_path) == 32 * MIB


@pytest.mark.parametrize("num_threads", [1, 3])
def test_every_thread_copies_all_of_its_part_in_every_pass(num_threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "PASS_SECONDS", 0.0)
    copied: list[int] = []
    move = ctypes.memmove

    def count(target: int, source: int, num_bytes: int) -> object:
        copied.append(num_bytes)
        return move(target, source, num_bytes)

    monkeypatch.setattr(ctypes, "memmove", count)
    assert measure_memory_copy(num_threads, 3 * MIB) > 0
    assert sum(copied) == 3 * MIB * (1 + memory.MIN_PASSES)  # the first one writes the target
