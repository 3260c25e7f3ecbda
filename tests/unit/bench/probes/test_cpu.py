"""What the counters of /proc, /sys and the cgroup say of quota, cores and use, from written files and this machine."""

import os
import subprocess
import sys
import time
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
from bench.probes.cpu_peak import TheoreticalPeak, calculate_peak, count_cores, find_flops_per_cycle, read_highest_clock
from bench.probes.memory import read_peak_cgroup_bytes
from bench.schema import Precision
from file_trees import write_tree

V1_LINES = "5:memory:/kubepods/pod1/c1\n4:cpu,cpuacct:/kubepods/pod1/c1\n1:name=systemd:/x\n0::/x\n"
V2_LINES = "0::/kubepods/pod1/c1\n"


@pytest.mark.parametrize(
    ("lines", "files", "expected"),
    [
        (V2_LINES, {"kubepods/pod1/c1/cpu.max": "150000 100000\n"}, 1.5),
        (V2_LINES, {"kubepods/pod1/c1/cpu.max": "max 100000\n"}, None),
        (V2_LINES, {"kubepods/pod1/c1/cpu.max": "max 100000\n", "kubepods/pod1/cpu.max": "40000 20000\n"}, 2.0),
        (V2_LINES, {"kubepods/pod1/c1/cpu.max": "100000 100000\n", "kubepods/cpu.max": "200000 100000\n"}, 1.0),
        # In a container that sees its own cgroup as the root, though /proc shows the path on the host.
        (V2_LINES, {"cpu.max": "200000 100000\n"}, 2.0),
        ("0::/../../other\n", {"cpu.max": "200000 100000\n"}, 2.0),
        (V2_LINES, {}, None),
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
        # In a container of cgroup v1 the mount's root is the container's own group.
        (V1_LINES, {"cpu/cpu.cfs_quota_us": "300000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 3.0),
        # The quota of a group that this process is not in.
        (V2_LINES, {"kubepods/pod2/cpu.max": "100000 100000\n"}, None),
        # A hybrid system: the CPU controller is v1, v2 lies beside it.
        (
            "4:cpu:/a\n0::/b\n",
            {"cpu/a/cpu.cfs_quota_us": "100000\n", "cpu/a/cpu.cfs_period_us": "100000\n", "unified/b/cgroup.procs": ""},
            1.0,
        ),
        ("0::/b\n", {"unified/b/cpu.max": "100000 200000\n"}, 0.5),
        ("4:cpu:/a:b\n", {"cpu/a:b/cpu.cfs_quota_us": "100000\n", "cpu/a:b/cpu.cfs_period_us": "100000\n"}, 1.0),
    ],
)
def test_the_tightest_quota_up_to_the_root_is_read(
    tmp_path: Path, lines: str, files: dict[str, str], expected: float | None
) -> None:
    write_tree(tmp_path, {"membership": lines} | {f"root/{name}": content for name, content in files.items()})
    assert read_cpu_quota_cores(tmp_path / "membership", tmp_path / "root") == expected


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
    expected = dict(zip(QUOTA_NAMES, (40, 10, 2.5), strict=True))
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
    earlier = dict(zip(QUOTA_NAMES, (100, 50, 5.0), strict=True))
    later = dict(zip(QUOTA_NAMES, (120, 53, 5.25), strict=True))
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
    assert [microjoules for microjoules, _ in packages] == [1, 3]


def test_there_is_no_energy_without_counters_or_without_the_right_to_read_them(tmp_path: Path) -> None:
    assert read_package_energy(tmp_path) is None
    write_tree(tmp_path / "intel-rapl:0", make_domain("package-0", 1))
    (tmp_path / "intel-rapl:0" / "energy_uj").unlink()
    (tmp_path / "intel-rapl:0" / "energy_uj").mkdir()  # unreadable, for root too
    assert read_package_energy(tmp_path) is None


def test_a_counter_that_starts_anew_within_the_window_is_taken_on() -> None:
    def make(*microjoules: int) -> tuple[tuple[int, int], ...]:
        return tuple((value, 10_000_000) for value in microjoules)

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
        (INTEL, "sse2", "fp32", 8),
        (INTEL, SAPPHIRE_RAPIDS, "fp32", 64),
        (INTEL, SAPPHIRE_RAPIDS, "bf16", 1024),
        (INTEL, SAPPHIRE_RAPIDS, "fp16", 128),
        (INTEL, AVX512, "bf16", 64),  # converted to float32
        (make_amd(0x17, 0x01), AVX2, "fp32", 16),  # Zen
        (make_amd(0x17, 0x31), AVX2, "fp32", 32),  # Zen 2
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


def write_clocks(folder: Path, *, megahertz: float, siblings: dict[int, str], maximum_khz: int | None = None) -> None:
    """Write /proc/cpuinfo of a Zen 4 and the topology of its CPUs."""
    processor = "vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\ncpu MHz\t\t: {}\nflags\t\t: {}\n"
    files = {"cpuinfo": "\n".join(processor.format(megahertz, AVX512) for _ in siblings)}
    for cpu, text in siblings.items():
        files[f"cpu/cpu{cpu}/topology/thread_siblings_list"] = f"{text}\n"
        if maximum_khz is not None:
            files[f"cpu/cpu{cpu}/cpufreq/cpuinfo_max_freq"] = f"{maximum_khz}\n"
    write_tree(folder, files)


def test_the_clock_is_the_highest_that_is_shown(tmp_path: Path) -> None:
    write_clocks(tmp_path, megahertz=2600.5, siblings={0: "0", 1: "1"}, maximum_khz=3_700_000)
    assert read_highest_clock({0, 1}, tmp_path / "cpuinfo", tmp_path / "cpu") == 3.7e9
    assert read_highest_clock({0, 1}, tmp_path / "cpuinfo", tmp_path / "none") == 2.6005e9
    assert read_highest_clock({0, 1}, tmp_path / "none", tmp_path / "none") is None


def test_hyperthreads_of_one_core_are_one_core(tmp_path: Path) -> None:
    write_clocks(tmp_path, megahertz=2600, siblings={0: "0,4", 4: "0,4", 1: "1,5"})
    assert count_cores({0, 4, 1}, tmp_path / "cpu") == 2
    assert count_cores({0, 4, 1}, tmp_path / "none") == 3


@pytest.mark.parametrize(("num_threads", "num_cores"), [(1, 1), (64, 2)])
def test_the_peak_is_that_of_as_many_cores_as_there_are_threads_for(
    num_threads: int, num_cores: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_clocks(tmp_path, megahertz=2600, siblings={0: "0,2", 1: "1,3", 2: "0,2", 3: "1,3"})
    monkeypatch.setattr("bench.probes.cpu_peak.read_affinity", lambda: frozenset({0, 1, 2, 3}))
    peak = calculate_peak("fp32", num_threads, cpuinfo=tmp_path / "cpuinfo", system_cpu=tmp_path / "cpu")
    assert peak == TheoreticalPeak(num_cores=num_cores, flops_per_cycle=32, clock_hertz=2.6e9)
    assert peak.flops_per_second == num_cores * 32 * 2.6e9
