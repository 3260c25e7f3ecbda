"""The CPUs that a process may use, their hyperthreads and the pressure on them: made-up trees, and a real neighbour."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.probes.cpu import read_cgroup_pressure_seconds, read_core_counters, read_pressure_seconds
from file_trees import write_tree

TICK = 1 / os.sysconf("SC_CLK_TCK")

STAT = """cpu  900 0 0 0 0 0 0 0 0 0
cpu0 100 0 0 7 7 0 0 0 0 0
cpu1 200 0 0 7 7 0 0 50 0 0
cpu2 300 0 0 7 7 0 0 0 0 0
cpu3 400 0 0 7 7 0 0 0 0 0
intr 1 2 3
"""


def write_machine(folder: Path, siblings: dict[int, str]) -> None:
    write_tree(folder, {"stat": STAT})
    write_tree(folder, {f"cpu/cpu{cpu}/topology/thread_siblings_list": text for cpu, text in siblings.items()})


@pytest.mark.parametrize(
    ("affinity", "siblings", "expected"),
    [
        # Two cores of two hyperthreads, of which this process has one each: the others' are its neighbours.
        ({0, 1}, {0: "0,2", 1: "1,3"}, (350, {2, 3}, 2, 700)),
        ({0, 2}, {0: "0,2", 2: "0,2"}, (400, set(), 1, 0)),
        ({0, 1, 2, 3}, {0: "0-1", 1: "0-1", 2: "2-3", 3: "2-3"}, (1050, set(), 2, 0)),
        ({0, 1}, {0: "0,2"}, (350, None, None, None)),  # not shown for both
        ({0, 1}, {0: "0,8", 1: "1,9"}, (350, None, None, None)),  # CPUs that /proc/stat does not show
    ],
)
def test_the_cpus_of_the_affinity_and_their_hyperthreads_are_read_one_by_one(
    affinity: set[int],
    siblings: dict[int, str],
    expected: tuple[int, set[int] | None, int | None, int | None],
    tmp_path: Path,
) -> None:
    write_machine(tmp_path, siblings)
    counters = read_core_counters(frozenset(affinity), tmp_path / "stat", tmp_path / "cpu")
    assert counters is not None
    busy_ticks, others, num_cores, sibling_ticks = expected
    assert counters.busy_seconds == pytest.approx(busy_ticks * TICK)
    assert counters.siblings == others
    assert counters.num_physical_cores == num_cores
    assert counters.sibling_busy_seconds == (None if sibling_ticks is None else pytest.approx(sibling_ticks * TICK))


def test_a_neighbour_pinned_to_another_core_is_none_and_one_on_this_core_is() -> None:
    """A real neighbour, on the last CPU of this machine; this process's affinity is taken to be one CPU."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        pytest.skip("a machine with one CPU has no other")
    command = ["taskset", "-c", str(cpus[-1]), sys.executable, "-c", "print(1, flush=True)\nwhile True: pass"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as neighbour:
        assert neighbour.stdout is not None
        neighbour.stdout.readline()
        before = [read_core_counters(frozenset({cpu})) for cpu in cpus]
        await_seconds(neighbour.pid, 1.0)
        after = [read_core_counters(frozenset({cpu})) for cpu in cpus]
        neighbour.kill()
    busy = [
        later.busy_seconds - earlier.busy_seconds
        for earlier, later in zip(before, after, strict=True)
        if earlier is not None and later is not None
    ]
    assert len(busy) == len(cpus)
    assert busy[-1] >= 0.9


def await_seconds(pid: int, seconds: float) -> None:
    """Return when a process has computed for so many seconds more: the machine may give it little of a CPU."""
    end = read_seconds(pid) + seconds
    while read_seconds(pid) < end:
        time.sleep(0.01)


def read_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * TICK


# Pressure


def test_pressure_is_the_line_of_some_threads_in_microseconds(tmp_path: Path) -> None:
    lines = "some avg10=1.00 avg60=0.00 avg300=0.00 total=2500000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=9\n"
    write_tree(tmp_path, {"membership": "0::/pod/c1\n", "root/pod/cpu.pressure": lines})
    assert read_pressure_seconds(tmp_path / "root/pod/cpu.pressure") == 2.5
    assert read_cgroup_pressure_seconds(tmp_path / "membership", tmp_path / "root") == 2.5
    assert read_cgroup_pressure_seconds(tmp_path / "membership", tmp_path / "pod") is None
