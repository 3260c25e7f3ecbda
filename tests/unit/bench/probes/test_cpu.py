"""What the counters of /proc, /sys and the cgroup say of quota, cores and use, from written files and this machine."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bench.probes.cpu import (
    QUOTA_NAMES,
    CoreCounters,
    CpuCounters,
    compare_cpu_counters,
    find_quota_group,
    read_cgroup_pressure_seconds,
    read_core_counters,
    read_cpu_quota_cores,
    read_machine_seconds,
    read_own_seconds,
    read_package_energy,
    read_pressure_seconds,
    read_quota_counters,
)
from bench.probes.cpu_peak import TheoreticalPeak, calculate_peak, find_flops_per_cycle, read_highest_clock
from bench.probes.memory import read_peak_cgroup_bytes
from bench.schema import CpuUse, Precision
from file_trees import write_tree

V1_LINES = "5:memory:/kubepods/pod1/c1\n4:cpu,cpuacct:/kubepods/pod1/c1\n1:name=systemd:/x\n0::/x\n"
V2_LINES = "0::/kubepods/pod1/c1\n"
TICK = 1 / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize(
    ("lines", "files", "expected"),
    [
        (V2_LINES, {"kubepods/pod1/c1/cpu.max": "150000 100000\n"}, 1.5),
        (V2_LINES, {"kubepods/pod1/c1/cpu.max": "max 100000\n"}, None),
        (V2_LINES, {"kubepods/pod1/c1/cpu.max": "100000 100000\n", "kubepods/cpu.max": "200000 100000\n"}, 1.0),
        # In a container that sees its own cgroup as the root, though /proc shows the path on the host.
        (V2_LINES, {"cpu.max": "200000 100000\n"}, 2.0),
        (
            V1_LINES,
            {
                "cpu,cpuacct/kubepods/pod1/c1/cpu.cfs_quota_us": "250000\n",
                "cpu,cpuacct/kubepods/pod1/c1/cpu.cfs_period_us": "100000\n",
            },
            2.5,
        ),
        (
            V1_LINES,
            {
                "cpu/kubepods/pod1/c1/cpu.cfs_quota_us": "-1\n",
                "cpu/kubepods/pod1/c1/cpu.cfs_period_us": "100000\n",
                "cpu/kubepods/pod1/cpu.cfs_quota_us": "25000\n",
                "cpu/kubepods/pod1/cpu.cfs_period_us": "50000\n",
            },
            0.5,
        ),
        # A hybrid system: the CPU controller is v1, v2 lies beside it.
        (
            "4:cpu:/a\n0::/b\n",
            {"cpu/a/cpu.cfs_quota_us": "100000\n", "cpu/a/cpu.cfs_period_us": "100000\n", "unified/b/cgroup.procs": ""},
            1.0,
        ),
    ],
)
def test_the_tightest_quota_up_to_the_root_is_read(
    tmp_path: Path, lines: str, files: dict[str, str], expected: float | None
) -> None:
    write_tree(tmp_path, {"membership": lines} | {f"root/{name}": content for name, content in files.items()})
    assert read_cpu_quota_cores(tmp_path / "membership", tmp_path / "root") == expected


def test_throttled_time_is_microseconds_in_v2_and_nanoseconds_in_v1(tmp_path: Path) -> None:
    counts = "nr_periods 40\nnr_throttled 10\n"
    write_tree(
        tmp_path,
        {
            "v2/cpu.stat": f"usage_usec 5\n{counts}throttled_usec 2500000\n",
            "v1/cpu.stat": f"{counts}throttled_time 2500000000\n",
        },
    )
    expected = dict(zip(QUOTA_NAMES, (40, 10, 2.5), strict=True))
    assert read_quota_counters(tmp_path / "v2") == expected
    assert read_quota_counters(tmp_path / "v1") == expected


def test_the_periods_are_those_of_the_group_with_the_tightest_quota(tmp_path: Path) -> None:
    files = {"pod/c1/cpu.max": "max 100000\n", "pod/cpu.max": "200000 100000\n", "cpu.max": "400000 100000\n"}
    write_tree(tmp_path, {"membership": "0::/pod/c1\n"} | {f"root/{name}": text for name, text in files.items()})
    assert find_quota_group(tmp_path / "membership", tmp_path / "root") == tmp_path / "root/pod"


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
    write_tree(tmp_path, {"stat": "cpu  100 20 30 9000 800 4 5 60 50 0\ncpu0 1 2\ncpu1 3 4\nintr 5\n"})
    seconds, num_cores = read_machine_seconds(tmp_path / "stat")
    assert (seconds, num_cores) == (219 * TICK, 2)


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


BEFORE = CpuCounters(
    seconds=100.0, own_seconds=10.0, busy_seconds=1000.0, num_machine_cores=8, quota=None, packages=None
)


def make_packages(*microjoules: int) -> tuple[tuple[int, int], ...]:
    return tuple((value, 10_000_000) for value in microjoules)


def make_cores(busy: float, sibling_busy: float) -> CoreCounters:
    return CoreCounters(
        affinity=frozenset({0, 1}),
        busy_seconds=busy,
        siblings=frozenset({2, 3}),
        num_physical_cores=2,
        sibling_busy_seconds=sibling_busy,
    )


def test_what_cannot_be_read_at_one_end_is_unknown() -> None:
    use = compare_cpu_counters(BEFORE, replace(BEFORE, seconds=104.0, own_seconds=18.0, busy_seconds=1014.0))
    known = {"window_seconds": 4.0, "own_cores": 2.0, "other_cores": 1.5, "num_machine_cores": 8}
    assert use.model_dump(exclude_none=True) == known


def test_the_window_has_what_each_counter_grew_by() -> None:
    before = replace(
        BEFORE,
        quota=dict(zip(QUOTA_NAMES, (100, 50, 5.0), strict=True)),
        packages=make_packages(9_000_000, 1_000_000),
        cores=make_cores(100.0, 50.0),
        pressure_seconds=1.0,
        machine_pressure_seconds=7.0,
    )
    after = CpuCounters(
        seconds=104.0,
        own_seconds=16.0,
        busy_seconds=1024.0,
        num_machine_cores=8,
        quota=dict(zip(QUOTA_NAMES, (120, 53, 5.25), strict=True)),
        packages=make_packages(2_000_000, 5_000_000),
        cores=make_cores(108.0, 52.0),
        pressure_seconds=2.0,
        machine_pressure_seconds=9.0,
    )
    assert compare_cpu_counters(before, after) == CpuUse(
        window_seconds=4.0,
        own_cores=1.5,
        other_cores=4.5,
        num_machine_cores=8,
        num_periods=20,
        num_throttled_periods=3,
        throttled_seconds=0.25,
        energy_joules=7.0,  # 3 J of the first socket from 9 to 10 and on to 2, 4 J of the second
        num_affinity_cores=2,
        num_affinity_physical_cores=2,
        affinity_other_cores=0.5,  # 8 s of the two CPUs, 6 s of them its own
        num_sibling_cores=2,
        sibling_busy_cores=0.5,
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
    monkeypatch.setattr("bench.probes.cpu_peak.read_affinity", lambda: frozenset({0, 1, 2, 3}))

    def calculate(num_threads: int, system: str = "cpu") -> TheoreticalPeak:
        return calculate_peak("fp32", num_threads, cpuinfo=tmp_path / "cpuinfo", system_cpu=tmp_path / system)

    assert calculate(1) == TheoreticalPeak(num_cores=1, flops_per_cycle=32, clock_hertz=2.6005e9)
    assert calculate(64).flops_per_second == 2 * 32 * 2.6005e9
    assert calculate(64, "none").num_cores == 4  # where no siblings are shown
    write_tree(tmp_path, {"cpu/cpu3/cpufreq/cpuinfo_max_freq": "3700000\n"})
    assert calculate(64).clock_hertz == 3.7e9  # the highest that is shown
    assert read_highest_clock({0, 1}, tmp_path / "none", tmp_path / "none") is None
