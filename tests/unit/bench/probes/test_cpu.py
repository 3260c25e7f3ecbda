"""What the counters of /proc, /sys and the cgroup say of quota, cores and use, from written files and this machine."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.measure.host_peak import find_flops_per_cycle, make_host_peak
from bench.probes.cpu import (
    CpuCounters,
    compare_cpu_counters,
    count_threads,
    find_quota_group,
    list_physical_cores,
    read_busy_seconds,
    read_cgroup_pressure_seconds,
    read_cpu_quota_cores,
    read_own_seconds,
    read_package_energy,
    read_pressure_seconds,
    read_quota_counters,
)
from bench.probes.memory import read_peak_cgroup_bytes
from bench.schema import CpuUse, HostPeak, Precision
from factories import make_cell, present
from file_trees import write_tree

V1_LINES = "5:memory:/kubepods/pod1/c1\n4:cpu,cpuacct:/kubepods/pod1/c1\n1:name=systemd:/x\n0::/x\n"
V2_LINES = "0::/kubepods/pod1/c1\n"
TICK = 1 / os.sysconf("SC_CLK_TCK")


def limit_v1(group: str, quota: int, period: int) -> dict[str, str]:
    return {f"{group}/cpu.cfs_quota_us": f"{quota}\n", f"{group}/cpu.cfs_period_us": f"{period}\n"}


@pytest.mark.parametrize(
    ("lines", "files", "expected"),
    [
        (V2_LINES, {"kubepods/pod1/c1/cpu.max": "150000 100000\n"}, ("kubepods/pod1/c1", 1.5)),
        (V2_LINES, {"kubepods/pod1/c1/cpu.max": "max 100000\n"}, None),
        # The tightest up to the root.
        (
            V2_LINES,
            {
                "kubepods/pod1/c1/cpu.max": "max 100000\n",
                "kubepods/pod1/cpu.max": "100000 100000\n",
                "kubepods/cpu.max": "200000 100000\n",
            },
            ("kubepods/pod1", 1.0),
        ),
        # In a container that sees its own cgroup as the root, though /proc shows the path on the host.
        (V2_LINES, {"cpu.max": "200000 100000\n"}, ("", 2.0)),
        (V1_LINES, limit_v1("cpu,cpuacct/kubepods/pod1/c1", 250_000, 100_000), ("cpu,cpuacct/kubepods/pod1/c1", 2.5)),
        (
            V1_LINES,
            limit_v1("cpu/kubepods/pod1/c1", -1, 100_000) | limit_v1("cpu/kubepods/pod1", 25_000, 50_000),
            ("cpu/kubepods/pod1", 0.5),
        ),
        # A hybrid system: the CPU controller is v1, v2 lies beside it.
        ("4:cpu:/a\n0::/b\n", limit_v1("cpu/a", 100_000, 100_000) | {"unified/b/cgroup.procs": ""}, ("cpu/a", 1.0)),
    ],
)
def test_the_tightest_quota_up_to_the_root_is_read(
    tmp_path: Path, lines: str, files: dict[str, str], expected: tuple[str, float] | None
) -> None:
    write_tree(tmp_path, {"membership": lines} | {f"root/{name}": content for name, content in files.items()})
    folders = (tmp_path / "membership", tmp_path / "root")
    group = None if expected is None else folders[1] / expected[0]
    assert (find_quota_group(*folders), read_cpu_quota_cores(*folders)) == (group, expected and expected[1])


@pytest.mark.parametrize(("quota", "cores", "expected"), [(None, 8, 8), (2.9, 8, 2), (0.5, 8, 1), (16.0, 8, 8)])
def test_there_are_as_many_threads_as_whole_cores(
    monkeypatch: pytest.MonkeyPatch, quota: float | None, cores: int, expected: int
) -> None:
    monkeypatch.setattr("bench.probes.cpu.read_cpu_quota_cores", lambda: quota)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: range(cores))
    assert count_threads() == expected


def test_throttled_time_is_microseconds_in_v2_and_nanoseconds_in_v1(tmp_path: Path) -> None:
    counts = "nr_periods 40\nnr_throttled 10\n"
    write_tree(
        tmp_path,
        {
            "v2/cpu.stat": f"usage_usec 5\n{counts}throttled_usec 2500000\n",
            "v1/cpu.stat": f"{counts}throttled_time 2500000000\n",
        },
    )
    expected = {"num_periods": 40, "num_throttled_periods": 10, "throttled_seconds": 2.5}
    assert read_quota_counters(tmp_path / "v2") == read_quota_counters(tmp_path / "v1") == expected


@pytest.mark.parametrize(
    ("lines", "files", "expected"),
    [
        ("0::/pod/c1\n", {"pod/c1/memory.peak": "4096\n", "pod/memory.peak": "8192\n"}, 4096),
        ("0::/pod/c1\n", {"pod/memory.peak": "8192\n"}, 8192),
        ("0::/pod/c1\n", {"pod/c1/memory.current": "4096\n"}, None),  # before Linux 5.19
        ("5:memory:/pod/c1\n0::/\n", {"memory/pod/c1/memory.max_usage_in_bytes": "77\n"}, 77),
        ("5:cpu:/pod/c1\n", {"memory/memory.max_usage_in_bytes": "79\n"}, None),
    ],
)
def test_the_peak_of_the_nearest_group_is_read(
    tmp_path: Path, lines: str, files: dict[str, str], expected: int | None
) -> None:
    write_tree(tmp_path, {"membership": lines} | {f"root/{name}": text for name, text in files.items()})
    assert read_peak_cgroup_bytes(tmp_path / "membership", tmp_path / "root") == expected


def test_stolen_time_is_busy_and_waiting_for_disks_is_not(tmp_path: Path) -> None:
    # user nice system idle iowait irq softirq steal guest guest_nice; the guest's 50 are among the user's 100.
    write_tree(tmp_path, {"stat": "cpu  9 9\ncpu0 100 20 30 9000 800 4 5 60 50 0\ncpu3 1 0 0 7 7 0 0 0 0 0\nintr 5\n"})
    assert read_busy_seconds(tmp_path / "stat") == {0: 219 * TICK, 3: TICK}


SPIN = (
    "import time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass\nprint('done', flush=True)\n"
)


def test_the_time_of_children_counts_while_they_live_and_when_they_were_waited_for() -> None:
    before = read_own_seconds()
    command = [sys.executable, "-c", f"{SPIN}input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        present(child.stdout).readline()
        alive = read_own_seconds()
        child.communicate(b"\n")
    waited_for = read_own_seconds()
    assert 0.3 - 2 * TICK <= alive - before <= waited_for - before + 2 * TICK
    assert waited_for - alive < 0.3  # not counted twice


BEFORE = CpuCounters(seconds=100.0, own_seconds=10.0, busy_seconds={0: 1000.0, 1: 2000.0})
KNOWN: dict[str, Any] = {"window_seconds": 4.0, "own_cores": 2.0, "other_cores": 1.5, "num_machine_cores": 2}


def test_what_cannot_be_read_at_one_end_is_unknown() -> None:
    after = replace(BEFORE, seconds=104.0, own_seconds=18.0, busy_seconds={0: 1006.0, 1: 2008.0})
    assert compare_cpu_counters(BEFORE, after).model_dump(exclude_none=True) == KNOWN


@pytest.mark.parametrize(
    ("affinity", "cores", "expected"),
    [
        # Two cores of two hyperthreads, of which this process has one each: the others' are its neighbours.
        ({0, 1}, [{0, 2}, {1, 3}], (2, 2, 1.0, 2, 3.5)),
        ({0, 2}, [{0, 2}], (2, 1, 1.5, 0, 0.0)),
        ({0, 1, 2, 3}, [{0, 1}, {2, 3}], (4, 2, 4.5, 0, 0.0)),
        ({0, 1}, None, (2, None, 1.0, None, None)),
        ({0, 1}, [{0, 8}, {1, 9}], (2, None, 1.0, None, None)),  # CPUs that /proc/stat does not show
        ({0, 9}, None, (None,) * 5),
    ],
)
def test_who_used_the_cpus_of_the_affinity_and_their_hyperthreads(
    affinity: set[int], cores: list[set[int]] | None, expected: tuple[float | None, ...]
) -> None:
    physical = None if cores is None else frozenset(map(frozenset, cores))
    before = CpuCounters(
        seconds=100.0,
        own_seconds=10.0,
        busy_seconds=dict.fromkeys(range(4), 50.0),
        affinity=frozenset(affinity),
        cores=physical,
    )
    busy = {0: 52.0, 1: 54.0, 2: 56.0, 3: 58.0}
    use = compare_cpu_counters(before, replace(before, seconds=104.0, own_seconds=12.0, busy_seconds=busy))
    assert (use.own_cores, use.other_cores) == (0.5, 4.5)
    assert expected == (
        use.num_affinity_cores,
        use.num_affinity_physical_cores,
        use.affinity_other_cores,
        use.num_sibling_cores,
        use.sibling_busy_cores,
    )


def test_the_window_has_what_each_counter_grew_by() -> None:
    before = replace(
        BEFORE,
        quota={"num_periods": 100, "num_throttled_periods": 50, "throttled_seconds": 5.0},
        packages=((9_000_000, 10_000_000), (1_000_000, 10_000_000)),
        pressure_seconds={"pressure_share": 1.0, "machine_pressure_share": 7.0},
    )
    after = CpuCounters(
        seconds=104.0,
        own_seconds=18.0,
        busy_seconds={0: 1006.0, 1: 2008.0},
        quota={"num_periods": 120, "num_throttled_periods": 53, "throttled_seconds": 5.25},
        packages=((2_000_000, 10_000_000), (5_000_000, 10_000_000)),
        pressure_seconds={"pressure_share": 2.0, "machine_pressure_share": 9.0},
    )
    assert compare_cpu_counters(before, after) == CpuUse(
        **KNOWN,
        num_periods=20,
        num_throttled_periods=3,
        throttled_seconds=0.25,
        energy_joules=7.0,  # 3 J of the first socket from 9 to 10 and on to 2, 4 J of the second
        pressure_share=0.25,
        machine_pressure_share=0.5,
    )


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
    assert read_package_energy(tmp_path) == ((1, 10_000_000), (3, 10_000_000))
    (tmp_path / "intel-rapl:0" / "energy_uj").unlink()  # as where it is for root only
    assert read_package_energy(tmp_path) is None


def test_physical_cores_are_those_whose_hyperthreads_are_shown(tmp_path: Path) -> None:
    write_tree(tmp_path, {f"cpu{cpu}/topology/thread_siblings_list": f"{cpu % 2},{cpu % 2 + 2}\n" for cpu in (0, 1, 2)})
    assert list_physical_cores({0, 2}, tmp_path) == frozenset([frozenset({0, 2})])
    assert list_physical_cores({0, 1}, tmp_path) == frozenset([frozenset({0, 2}), frozenset({1, 3})])
    assert list_physical_cores({0, 3}, tmp_path) is None


def test_pressure_is_the_line_of_some_threads_in_microseconds(tmp_path: Path) -> None:
    lines = "some avg10=1.00 avg60=0.00 avg300=0.00 total=2500000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=9\n"
    write_tree(tmp_path, {"membership": "0::/pod/c1\n", "root/pod/cpu.pressure": lines})
    assert read_pressure_seconds(tmp_path / "root/pod/cpu.pressure") == 2.5
    assert read_cgroup_pressure_seconds(tmp_path / "membership", tmp_path / "root") == 2.5
    assert read_cgroup_pressure_seconds(tmp_path / "membership", tmp_path / "pod") is None


AVX2 = "fpu sse2 avx fma avx2"
AVX512 = f"{AVX2} avx512f avx512dq"
SAPPHIRE_RAPIDS = f"{AVX512} avx512_bf16 avx512_fp16 amx_bf16 amx_tile amx_int8"
INTEL = {"vendor_id": "GenuineIntel", "cpu family": "6", "model": "143"}


def make_amd(family: int, model: int) -> dict[str, str]:
    return {"vendor_id": "AuthenticAMD", "cpu family": str(family), "model": str(model)}


@pytest.mark.parametrize(
    ("fields", "flags", "precision", "expected"),
    [
        (INTEL, AVX512, "fp32", 64),  # two units of 16 values, two operations each
        (INTEL, AVX2, "fp32", 32),
        (INTEL, "sse2 avx", "fp32", 16),  # Sandy Bridge: one multiplies, one adds
        (INTEL, SAPPHIRE_RAPIDS, "bf16", 1024),
        (INTEL, SAPPHIRE_RAPIDS, "fp16", 128),
        (make_amd(0x17, 0x01), AVX2, "fp32", 16),  # Zen
        (make_amd(0x19, 0x11), f"{AVX512} avx512_bf16", "fp32", 32),  # Zen 4: 512 bits in two passes
        (make_amd(0x19, 0x11), f"{AVX512} avx512_bf16", "bf16", 64),
        (make_amd(0x1A, 0x02), AVX512, "fp32", 64),  # Zen 5
        ({"CPU implementer": "0x41"}, "", "fp32", None),  # 64-bit ARM
    ],
)
def test_a_core_does_as_many_operations_per_cycle_as_its_units_are_wide(
    fields: dict[str, str], flags: str, precision: Precision, expected: int | None
) -> None:
    assert find_flops_per_cycle(fields | {"flags": flags}, precision) == expected


def test_the_peak_is_that_of_as_many_cores_as_there_are_threads_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Zen 4 of two cores with two hyperthreads each."""
    processor = (
        f"vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\ncpu MHz\t\t: 2600.5\nflags\t\t: {AVX512}\n"
    )
    topology = {f"cpu/cpu{cpu}/topology/thread_siblings_list": f"{cpu % 2},{cpu % 2 + 2}\n" for cpu in range(4)}
    write_tree(tmp_path, {"cpuinfo": "\n".join([processor] * 4)} | topology)
    monkeypatch.setattr("bench.measure.host_peak.read_affinity", lambda: frozenset({0, 1, 2, 3}))

    def calculate(num_threads: int, system: str = "cpu") -> HostPeak:
        paths = {"cpuinfo": tmp_path / "cpuinfo", "system_cpu": tmp_path / system}
        return make_host_peak(make_cell(), num_threads, before=(1e11, 1.9), after=None, **paths)

    assert calculate(1) == HostPeak(
        framework="pytorch",
        num_threads=1,
        num_cores=1,
        flops_per_cycle=32,
        clock_hertz=2.6005e9,
        theoretical_flops_per_second=32 * 2.6005e9,
        before_flops_per_second=1e11,
        after_flops_per_second=None,
        busy_cores=1.9,
    )
    assert calculate(64).theoretical_flops_per_second == 2 * 32 * 2.6005e9
    assert calculate(64, "none").num_cores == 4  # where no siblings are shown
    write_tree(tmp_path, {"cpu/cpu3/cpufreq/cpuinfo_max_freq": "3700000\n"})
    assert calculate(64).clock_hertz == 3.7e9  # the highest that is shown
    (tmp_path / "cpuinfo").unlink()
    assert calculate(64, "none").theoretical_flops_per_second is None
