"""runner.local.process: what processes take, and what the kernel's files say is left; a made-up root by hand."""

import subprocess
import sys
from pathlib import Path

import pytest

from runner.local.process import read_available_bytes, read_tree_bytes

GIB = 2**30


def write_files(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def make_root(root: Path, cgroup: str) -> Path:
    meminfo = "MemTotal:       16777216 kB\nMemFree:         1048576 kB\nMemAvailable:    8388608 kB\n"  # 8 GiB
    return write_files(root, {"proc/meminfo": meminfo, "proc/self/cgroup": cgroup})


def write_cgroup(folder: Path, version: int, limit: str, used: int, reclaimable: int) -> None:
    if version == 2:
        names = ("memory.max", "memory.current", f"anon 1\ninactive_file {reclaimable}\nactive_file 7\n")
    else:
        statistics = f"inactive_file 1\ntotal_inactive_file {reclaimable}\n"
        names = ("memory.limit_in_bytes", "memory.usage_in_bytes", statistics)
    write_files(folder, {names[0]: f"{limit}\n", names[1]: f"{used}\n", "memory.stat": names[2]})


def test_without_a_limit_all_that_the_machine_has_can_be_taken(tmp_path: Path) -> None:
    root = make_root(tmp_path, "0::/user.slice\n")
    write_cgroup(root / "sys/fs/cgroup/user.slice", 2, "max", GIB, 0)
    assert read_available_bytes(root) == 8 * GIB


@pytest.mark.parametrize(("version", "line"), [(2, "0::/pod/box\n"), (1, "5:cpu:/x\n4:memory:/pod/box\n0::/y\n")])
def test_the_room_below_the_limit_of_the_cgroup_counts(version: int, line: str, tmp_path: Path) -> None:
    root = make_root(tmp_path, line)
    top = root / "sys/fs/cgroup" if version == 2 else root / "sys/fs/cgroup/memory"
    write_cgroup(top / "pod/box", version, str(6 * GIB), 3 * GIB, GIB)
    assert read_available_bytes(root) == 4 * GIB  # 6 - 3, and 1 that the kernel can take back


def test_the_tightest_cgroup_around_the_process_counts(tmp_path: Path) -> None:
    root = make_root(tmp_path, "0::/pod/box\n")
    write_cgroup(root / "sys/fs/cgroup/pod/box", 2, str(6 * GIB), GIB, 0)
    write_cgroup(root / "sys/fs/cgroup/pod", 2, str(4 * GIB), 2 * GIB, 0)
    assert read_available_bytes(root) == 2 * GIB


def test_a_full_cgroup_leaves_nothing(tmp_path: Path) -> None:
    root = make_root(tmp_path, "0::/\n")
    write_cgroup(root / "sys/fs/cgroup", 2, str(GIB), GIB + 4096, 0)
    assert read_available_bytes(root) == 0


def test_a_process_is_counted_with_what_it_has_started() -> None:
    program = "full = b'x' * 2**26; print('full', flush=True); input()"
    script = f'{sys.executable} -S -c "{program}"; true'
    with subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        taken = read_tree_bytes(process.pid)
        process.communicate(b"\n")
    assert 2**26 < taken < 2**26 + 2**25
