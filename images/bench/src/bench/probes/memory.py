"""Reads memory limits and peaks of the process, its cgroup and the machine, and measures the bandwidth of copies.

The copies run on all threads of the cell, as the Copy of STREAM does. J. D. McCalpin, "STREAM: Sustainable Memory
Bandwidth in High Performance Computers": arrays of at least four times the last level of cache, the fastest of several
passes counts, and a copied byte is one read and one written (https://www.cs.virginia.edu/stream/ref.html).
"""

import mmap
import os
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from threading import Barrier
from time import perf_counter
from typing import Any

from bench.probes.cpu import (
    CGROUP_MEMBERSHIP,
    CGROUP_ROOT,
    SYSTEM_CPU,
    list_cgroups,
    list_own_pids,
    parse_cpu_list,
    parse_cpuinfo,
    read_affinity,
)

LIMIT_FILES = ("memory.max", "memory.limit_in_bytes")
NO_LIMIT_BYTES = 2**60
"""v1 writes the largest number of whole pages where there is no limit."""
ROOM_FILES = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
"""Of v2 and v1: a limit, what is used of it, and what of that, in memory.stat, the kernel would give back."""
PEAK_FILES = ("memory.peak", "memory.max_usage_in_bytes")  # cgroup v2 (Linux 5.19) and v1


def read_peak_rss_bytes() -> int:
    """Return the peak resident set (VmHWM) of this process, with what the processes beside it hold that take part.

    It never falls: import and build are in it. With others, such as those that read data, each process counts with its
    share of what it holds now (PSS: a page that several hold counts once) and by how much it has held more before.
    Pages of files, such as libraries, count as this process has them: programs that take no part may share those.
    """
    others = [pid for pid in list_own_pids() if pid != os.getpid() and not _is_compiler(pid)]
    if not others:
        return _read_kibibytes("/proc/self/status", "VmHWM")
    return _read_kibibytes("/proc/self/status", "RssFile") + _read_share("self") + sum(map(_read_share, others))


def _read_share(pid: int | str) -> int:
    """Return a process's share of memory that is no file's, and by how much it held more before; 0 if it has ended."""
    try:
        present, peak = (_read_kibibytes(f"/proc/{pid}/status", key) for key in ("VmRSS", "VmHWM"))
        shares = (_read_kibibytes(f"/proc/{pid}/smaps_rollup", key) for key in ("Pss_Anon", "Pss_Shmem"))
        return sum(shares) + peak - present
    except (FileNotFoundError, ProcessLookupError, KeyError):
        if pid == "self":  # a kernel without them (before Linux 5.3): not known
            raise
        return 0


def _is_compiler(pid: int) -> bool:
    """Return whether a process is one of Inductor's, which compile before the window and then wait."""
    try:
        return b"compile_worker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return True  # it has ended


def reset_peak_rss() -> None:
    """Start VmHWM anew from the present resident set (proc_pid_clear_refs(5)). Raise OSError where that is refused."""
    Path("/proc/self/clear_refs").write_text("5")


def read_memory_total_bytes() -> int:
    return _read_kibibytes("/proc/meminfo", "MemTotal")


def read_peak_cgroup_bytes(membership: Path = CGROUP_MEMBERSHIP, root: Path = CGROUP_ROOT) -> int | None:
    """Return the peak of the nearest cgroup around this process that counts one; None where none does."""
    return next(_read_bytes(PEAK_FILES, membership, root), None)


def read_memory_limit_bytes(membership: Path = CGROUP_MEMBERSHIP, root: Path = CGROUP_ROOT) -> int | None:
    return min((limit for limit in _read_bytes(LIMIT_FILES, membership, root) if limit < NO_LIMIT_BYTES), default=None)


def _read_bytes(names: Collection[str], membership: Path, root: Path) -> Iterator[int]:
    """Yield what the files of these names say, of the nearest cgroup first; `max` stands for no limit."""
    for path in (group / name for group in list_cgroups("memory", membership, root) for name in names):
        if path.exists() and (text := path.read_text().strip()) != "max":
            yield int(text)


def _read_kibibytes(path: str, key: str) -> int:
    return int(parse_cpuinfo(Path(path).read_text())[key].split()[0]) * 1024


CACHE_MULTIPLE = 4
"""STREAM's rule for the size of an array."""
MIN_BYTES, MAX_BYTES = 64 * 2**20, 512 * 2**20
"""Of the array. At least what takes some milliseconds; at most what takes a few tenths of a second to be written for
the first time. A machine whose cache is larger than a fourth of that breaks STREAM's rule: the record says so."""
UNIT_BYTES = {"K": 2**10, "M": 2**20, "G": 2**30}
"""In which the kernel gives the sizes of caches."""
MEMORY_SHARE = 1 / 16
"""Of the memory that is left to the process, what one of the two arrays may take."""
MIN_PASSES = 5
PASS_SECONDS = 0.2
"""Passes go on for so long: on a busy machine one of them may be the only one that nobody disturbed."""


def choose_copy_bytes(cache_bytes: int | None, room_bytes: int) -> int | None:
    """Return the size of the array for a cache of so many bytes (None: unknown); None where there is no room for it."""
    wanted = MAX_BYTES if cache_bytes is None else CACHE_MULTIPLE * cache_bytes
    chosen = min(max(MIN_BYTES, wanted), MAX_BYTES, int(room_bytes * MEMORY_SHARE))
    return chosen if chosen >= MIN_BYTES else None


def read_available_bytes(membership: Path = CGROUP_MEMBERSHIP, root: Path = CGROUP_ROOT) -> int:
    """Return how many bytes a process can take before the machine swaps or a limit of a cgroup around it kills it."""
    available = [_read_kibibytes("/proc/meminfo", "MemAvailable")]
    for folder in list_cgroups("memory", membership, root):
        for limit, use, reclaimable in ROOM_FILES:
            with suppress(OSError, ValueError):  # no limit here: no file, as at the top, or the word `max`
                limit_bytes = int((folder / limit).read_text())
                statistics = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
                available.append(limit_bytes - int((folder / use).read_text()) + int(statistics.get(reclaimable, 0)))
    return max(0, min(available))


def read_cache_bytes(allowed: Collection[int] | None = None, system_cpu: Path = SYSTEM_CPU) -> int | None:
    """Return the bytes of the last level of cache of the CPUs `allowed` together; None where the machine shows none.

    `allowed`: default: those that this process may use. A cache that several of them share counts once.
    """
    caches: dict[int, dict[frozenset[int], int]] = {}
    for cpu in read_affinity() if allowed is None else allowed:
        for folder in (system_cpu / f"cpu{cpu}" / "cache").glob("index*"):
            with suppress(OSError, ValueError):  # virtual machines show some of the files, or none
                level = int((folder / "level").read_text())
                sharing = parse_cpu_list((folder / "shared_cpu_list").read_text())
                size = (folder / "size").read_text().strip()
                caches.setdefault(level, {})[sharing] = int(size[:-1]) * UNIT_BYTES[size[-1]]
    return sum(caches[max(caches)].values()) if caches else None


def measure_memory_copy(num_threads: int, num_bytes: int) -> float:
    """Return the bytes per second, read and written, of the fastest copy of `num_bytes` by so many threads.

    Each thread copies a part of its own, which it wrote first, so that it lies in the memory nearest to it. NumPy
    copies by the C library's memmove, without the interpreter's lock.
    """
    import numpy as np  # its libraries read the number of threads when they are imported

    part_bytes = max(1, num_bytes // num_threads // mmap.PAGESIZE) * mmap.PAGESIZE
    ends: list[float] = []
    barrier = Barrier(num_threads, lambda: ends.append(perf_counter()))

    def map_pages() -> "np.ndarray[Any, np.dtype[np.uint8]]":
        pages = mmap.mmap(-1, part_bytes)  # new ones: a reused block would lie where another thread wrote it
        with suppress(OSError):  # where huge pages are turned off
            pages.madvise(mmap.MADV_HUGEPAGE)
        return np.frombuffer(pages, np.uint8)

    def run() -> None:
        try:
            source, target = map_pages(), map_pages()
            source[:] = 1
            np.copyto(target, source)  # writes the target for the first time
            barrier.wait()
            # A pass ends for all when the last one is at the barrier, and all see the same end.
            while len(ends) <= MIN_PASSES or ends[-1] - ends[0] < PASS_SECONDS:
                np.copyto(target, source)
                barrier.wait()
        except BaseException:
            barrier.abort()  # the others must not wait for this thread
            raise

    with ThreadPoolExecutor(num_threads, "copy") as pool:
        for future in [pool.submit(run) for _ in range(num_threads)]:
            future.result()
    return 2 * part_bytes * num_threads / min(end - begin for begin, end in pairwise(ends))
