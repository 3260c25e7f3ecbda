"""Read from /proc and cgroups how much memory processes take, and how much is available on this machine."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

# By the cgroup's version: files with the limit and the usage, and the line of memory.stat that says how much of the
# usage is pages of files, which the kernel reclaims before it kills a process.
_FILES = {
    2: ("memory.max", "memory.current", "inactive_file"),
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}


def read_available_bytes(root: Path = Path("/")) -> int:
    """Return how many bytes a process can take before the machine swaps or a limit of its cgroup kills it.

    The minimum of the machine's MemAvailable and of what is left below the limit of each cgroup around this process.
    """
    available = [_read_mem_available(root / "proc" / "meminfo")]
    for version, folder in _list_cgroups(root):
        with suppress(OSError, ValueError):  # no limit here: no file, as at the top, or the word `max`
            available.append(_read_unused_bytes(folder, *_FILES[version]))
    return max(0, min(available))


def read_tree_bytes(pid: int) -> int:
    """Return the bytes of memory and swap of a process and its descendants, without pages of files (libraries).

    A process that has ended counts 0. Memory that two of them share counts twice.
    """
    try:
        lines = Path(f"/proc/{pid}/status").read_text(errors="replace").split("\n")
    except (FileNotFoundError, ProcessLookupError):
        return 0
    status = dict(line.split(":", 1) for line in lines if ":" in line)
    own = sum(int(status[key].split()[0]) * 1024 for key in ("RssAnon", "RssShmem", "VmSwap") if key in status)
    return own + sum(map(read_tree_bytes, _list_children(pid)))


def _list_children(pid: int) -> Iterator[int]:
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended meanwhile
            yield from map(int, file.read_text().split())


def _read_mem_available(meminfo: Path) -> int:
    lines = dict(line.split(":", 1) for line in meminfo.read_text().splitlines())
    return int(lines["MemAvailable"].split()[0]) * 1024


def _list_cgroups(root: Path) -> Iterator[tuple[int, Path]]:
    """Yield version and folder of this process's memory cgroup and of those around it."""
    for line in (root / "proc" / "self" / "cgroup").read_text().splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0" and not controllers:
            version, top = 2, root / "sys/fs/cgroup"
        elif "memory" in controllers.split(","):
            version, top = 1, root / "sys/fs/cgroup/memory"
        else:
            continue
        folder = top / path.lstrip("/")
        while folder != top:
            yield version, folder
            folder = folder.parent
        yield version, top  # in a container the path can be the host's and lead nowhere: the top is its own cgroup


def _read_unused_bytes(folder: Path, limit: str, use: str, reclaimable: str) -> int:
    limit_bytes = int((folder / limit).read_text())
    statistics = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
    return limit_bytes - int((folder / use).read_text()) + int(statistics[reclaimable])
