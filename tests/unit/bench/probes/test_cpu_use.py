"""Counters of the CPUs and of memory: made-up /proc, cgroup and powercap trees, and what real processes really use."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bench.probes.cpu import (
    CoreCounters,
    CpuCounters,
    PackageEnergy,
    QuotaCounters,
    compare_cpu_counters,
    find_quota_group,
    read_machine_seconds,
    read_own_seconds,
    read_package_energy,
    read_quota_counters,
)
from bench.probes.memory import read_peak_cgroup_bytes
from file_trees import write_tree

TICK = 1 / os.sysconf("SC_CLK_TCK")


# The quota's periods


def test_throttled_time_is_microseconds_in_v2_and_nanoseconds_in_v1(tmp_path: Path) -> None:
    counts = "nr_periods 40\nnr_throttled 10\n"
    write_tree(
        tmp_path,
        {
            "v2/cpu.stat": f"usage_usec 5\n{counts}throttled_usec 2500000\n",
            "v1/cpu.stat": f"{counts}throttled_time 2500000000\n",
        },
    )
    expected = QuotaCounters(num_periods=40, num_throttled_periods=10, throttled_seconds=2.5)
    assert read_quota_counters(tmp_path / "v2") == expected
    assert read_quota_counters(tmp_path / "v1") == expected


def test_the_periods_are_those_of_the_group_with_the_tightest_quota(tmp_path: Path) -> None:
    files = {"pod/c1/cpu.max": "max 100000\n", "pod/cpu.max": "200000 100000\n", "cpu.max": "400000 100000\n"}
    write_tree(tmp_path, {"membership": "0::/pod/c1\n"} | {f"root/{name}": text for name, text in files.items()})
    assert find_quota_group(tmp_path / "membership", tmp_path / "root") == tmp_path / "root/pod"


# Memory of the cgroup


@pytest.mark.parametrize(
    ("lines", "files", "expected"),
    [
        ("0::/pod/c1\n", {"pod/c1/memory.peak": "4096\n", "pod/memory.peak": "8192\n"}, 4096),
        ("0::/pod/c1\n", {"pod/memory.peak": "8192\n"}, 8192),
        ("0::/pod/c1\n", {"memory.peak": "5\n"}, 5),  # a container that sees its own group as the root
        ("0::/pod/c1\n", {"pod/c1/memory.current": "4096\n"}, None),  # before Linux 5.19
        ("5:memory:/pod/c1\n0::/\n", {"memory/pod/c1/memory.max_usage_in_bytes": "77\n"}, 77),
        ("5:memory:/pod/c1\n0::/\n", {"memory/memory.max_usage_in_bytes": "78\n"}, 78),
        ("5:cpu:/pod/c1\n", {"memory/memory.max_usage_in_bytes": "79\n"}, None),
    ],
)
def test_the_peak_of_the_nearest_group_is_read(
    tmp_path: Path, lines: str, files: dict[str, str], expected: int | None
) -> None:
    write_tree(tmp_path, {"membership": lines} | {f"root/{name}": text for name, text in files.items()})
    assert read_peak_cgroup_bytes(tmp_path / "membership", tmp_path / "root") == expected


# The machine's cores


def test_stolen_time_is_busy_and_waiting_for_disks_is_not(tmp_path: Path) -> None:
    # user nice system idle iowait irq softirq steal guest guest_nice; the guest's 50 are among the user's 100.
    write_tree(tmp_path, {"stat": "cpu  100 20 30 9000 800 4 5 60 50 0\ncpu0 1 2\ncpu1 3 4\nintr 5\n"})
    seconds, num_cores = read_machine_seconds(tmp_path / "stat")
    assert (seconds, num_cores) == (219 * TICK, 2)


# This process and its descendants


SPIN = (
    "import time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass\nprint('done', flush=True)\n"
)


def test_the_time_of_children_counts_while_they_live_and_when_they_were_waited_for() -> None:
    before = read_own_seconds()
    command = [sys.executable, "-c", f"{SPIN}input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        alive = read_own_seconds()
        child.communicate(b"\n")
    waited_for = read_own_seconds()
    assert 0.3 - 2 * TICK <= alive - before <= waited_for - before + 2 * TICK
    assert waited_for - alive < 0.3  # not counted twice


# The order in which a file system lists two folders is its own: in one of the two cases the child is read first.
# What lies between two readings


BEFORE = CpuCounters(
    seconds=100.0, own_seconds=10.0, busy_seconds=1000.0, num_machine_cores=8, quota=None, packages=None
)


def test_cores_are_seconds_over_the_seconds_of_the_window() -> None:
    use = compare_cpu_counters(BEFORE, replace(BEFORE, seconds=104.0, own_seconds=18.0, busy_seconds=1014.0))
    assert (use.window_seconds, use.own_cores, use.other_cores, use.num_machine_cores) == (4.0, 2.0, 1.5, 8)
    assert (use.num_periods, use.num_throttled_periods, use.throttled_seconds, use.energy_joules) == (
        None,
        None,
        None,
        None,
    )


def test_only_the_periods_of_the_window_count() -> None:
    earlier = QuotaCounters(num_periods=100, num_throttled_periods=50, throttled_seconds=5.0)
    later = QuotaCounters(num_periods=120, num_throttled_periods=53, throttled_seconds=5.25)
    use = compare_cpu_counters(replace(BEFORE, quota=earlier), replace(BEFORE, seconds=102.0, quota=later))
    assert (use.num_periods, use.num_throttled_periods, use.throttled_seconds) == (20, 3, 0.25)


# Energy


def make_domain(name: str, microjoules: int) -> dict[str, str]:
    return {"name": f"{name}\n", "energy_uj": f"{microjoules}\n", "max_energy_range_uj": "10000000\n"}


def test_packages_are_read_and_parts_of_them_are_not(tmp_path: Path) -> None:
    domains = {
        "intel-rapl:0": make_domain("package-0", 1),
        "intel-rapl:0:0": make_domain("core", 2),
        "intel-rapl:1": make_domain("package-1", 3),
        "intel-rapl:2": make_domain("psys", 4),
    }
    for domain, files in domains.items():
        write_tree(tmp_path / domain, files)
    packages = read_package_energy(tmp_path)
    assert packages is not None
    assert [package.microjoules for package in packages] == [1, 3]


def test_there_is_no_energy_without_counters_or_without_the_right_to_read_them(tmp_path: Path) -> None:
    assert read_package_energy(tmp_path) is None
    write_tree(tmp_path / "intel-rapl:0", make_domain("package-0", 1))
    (tmp_path / "intel-rapl:0" / "energy_uj").unlink()
    (tmp_path / "intel-rapl:0" / "energy_uj").mkdir()  # unreadable, for root too
    assert read_package_energy(tmp_path) is None


def test_a_counter_that_starts_anew_within_the_window_is_taken_on() -> None:
    def make(*microjoules: int) -> tuple[PackageEnergy, ...]:
        return tuple(PackageEnergy(microjoules=value, range_microjoules=10_000_000) for value in microjoules)

    after = replace(BEFORE, seconds=101.0, packages=make(2_000_000, 5_000_000))
    # 3 J of the first socket from 9 to 10 and on to 2, 4 J of the second.
    assert compare_cpu_counters(replace(BEFORE, packages=make(9_000_000, 1_000_000)), after).energy_joules == 7.0


# The process's own cores


def make_cores(busy: float, sibling_busy: float | None, affinity: tuple[int, ...] = (0, 1)) -> CoreCounters:
    siblings = None if sibling_busy is None else frozenset({2, 3})
    return CoreCounters(
        affinity=frozenset(affinity),
        busy_seconds=busy,
        siblings=siblings,
        num_physical_cores=None if siblings is None else 2,
        sibling_busy_seconds=sibling_busy,
    )


def test_others_on_the_affinity_are_what_is_busy_there_less_the_process_itself() -> None:
    before = replace(BEFORE, cores=make_cores(100.0, 50.0))
    after = replace(BEFORE, seconds=104.0, own_seconds=16.0, busy_seconds=1024.0, cores=make_cores(108.0, 52.0))
    use = compare_cpu_counters(before, after)
    # 24 s of the machine, 8 s of the two CPUs, 6 s of them its own; 2 s of the hyperthreads beside.
    assert (use.other_cores, use.affinity_other_cores, use.sibling_busy_cores) == (4.5, 0.5, 0.5)
    assert (use.num_affinity_cores, use.num_affinity_physical_cores, use.num_sibling_cores) == (2, 2, 2)


def test_the_pressure_of_the_window_is_a_share_of_it() -> None:
    before = replace(BEFORE, pressure_seconds=1.0, machine_pressure_seconds=7.0)
    after = replace(BEFORE, seconds=104.0, pressure_seconds=2.0, machine_pressure_seconds=9.0)
    use = compare_cpu_counters(before, after)
    assert (use.pressure_share, use.machine_pressure_share) == (0.25, 0.5)
    assert compare_cpu_counters(before, replace(BEFORE, seconds=104.0)).pressure_share is None
