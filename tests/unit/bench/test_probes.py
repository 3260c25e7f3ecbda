"""The probes against made-up /proc and cgroup trees, and against what the kernel really does to a child process."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from bench.probes.cpu import (
    THREAD_VARIABLES,
    count_threads,
    limit_library_threads,
    read_cpu_governor,
    read_cpu_model,
    read_cpu_quota_cores,
)
from bench.probes.environment import read_environment, read_timing_variables
from bench.probes.memory import read_memory_total_bytes, read_peak_rss_bytes
from bench.schema import Framework
from factories import make_cell
from framework_programs import choose_core

PROGRAMS = Path(__file__).parent / "programs"
ROOT = Path(__file__).parents[3]
PYTHONPATH = os.pathsep.join(map(str, (ROOT / "images" / "bench" / "src", ROOT / "tests")))


class StubFramework:
    """What `read_environment` asks of a framework."""

    versions = {"torch": "2.0"}
    settings = {"tf32": False}
    cuda_version = None
    cudnn_version = None


def write_tree(root: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


# CPU quota


V1_LINES = "5:memory:/kubepods/pod1/c1\n4:cpu,cpuacct:/kubepods/pod1/c1\n1:name=systemd:/x\n0::/x\n"
V2_LINES = "0::/kubepods/pod1/c1\n"


@pytest.mark.parametrize(
    ("lines", "files", "expected"),
    [
        (V2_LINES, {"kubepods/pod1/c1/cpu.max": "150000 100000\n"}, 1.5),
        (V2_LINES, {"kubepods/pod1/c1/cpu.max": "50000 100000\n"}, 0.5),
        (V2_LINES, {"kubepods/pod1/c1/cpu.max": "max 100000\n"}, None),
        (V2_LINES, {"kubepods/pod1/c1/cpu.max": "max 100000\n", "kubepods/pod1/cpu.max": "40000 20000\n"}, 2.0),
        (V2_LINES, {"kubepods/pod1/c1/cpu.max": "300000 100000\n", "kubepods/cpu.max": "200000 100000\n"}, 2.0),
        (V2_LINES, {"kubepods/pod1/c1/cpu.max": "100000 100000\n", "kubepods/cpu.max": "200000 100000\n"}, 1.0),
        # In a container that sees its own cgroup as the root, though /proc shows the path on the host.
        (V2_LINES, {"cpu.max": "200000 100000\n"}, 2.0),
        ("0::/\n", {"cpu.max": "200000 100000\n"}, 2.0),
        ("0::/../../other\n", {"cpu.max": "200000 100000\n"}, 2.0),
        (V2_LINES, {}, None),
        ("", {"cpu.max": "200000 100000\n"}, None),
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
        (
            V1_LINES,
            {
                "cpu,cpuacct/kubepods/pod1/c1/cpu.cfs_quota_us": "-1\n",
                "cpu,cpuacct/kubepods/pod1/c1/cpu.cfs_period_us": "100000\n",
            },
            None,
        ),
        # In a container of cgroup v1 the mount's root is the container's own group.
        (V1_LINES, {"cpu/cpu.cfs_quota_us": "300000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 3.0),
        # The quota of a group that this process is not in.
        (V2_LINES, {"kubepods/pod2/cpu.max": "100000 100000\n"}, None),
        # A hybrid system: the CPU controller is v1, v2 lies beside it.
        (
            "4:cpu:/a\n0::/b\n",
            {
                "cpu/a/cpu.cfs_quota_us": "100000\n",
                "cpu/a/cpu.cfs_period_us": "100000\n",
                "unified/b/cgroup.procs": "",
            },
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
    assert expected == read_cpu_quota_cores(tmp_path / "membership", tmp_path / "root")


def test_there_is_no_quota_where_there_are_no_cgroups(tmp_path: Path) -> None:
    assert read_cpu_quota_cores(tmp_path / "membership", tmp_path / "root") is None


@contextmanager
def make_cpu_cgroup(name: str, cores: float | None, inside: Path | None = None) -> Iterator[Path]:
    """A real cgroup with a CPU quota; the test is skipped where none can be made."""
    v1, v2 = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")
    is_v1 = v1.is_dir()
    group = (inside or (v1 if is_v1 else v2)) / name
    quota = "-1" if cores is None else str(int(cores * 100_000))
    try:
        if not is_v1 and inside is None:
            (v2 / "cgroup.subtree_control").write_text("+cpu")
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no cgroup can be made here: {error}")
    try:
        try:
            if is_v1:
                (group / "cpu.cfs_quota_us").write_text(quota)
            else:
                (group / "cpu.max").write_text("max" if cores is None else f"{quota} 100000")
        except OSError as error:
            pytest.skip(f"no CPU quota can be set here: {error}")
        yield group
    finally:
        group.rmdir()


READ_QUOTA = "from bench.probes.cpu import *; print(read_cpu_quota_cores(), count_threads(), count_visible_cores())"


def read_quota_inside(group: Path) -> list[str]:
    """Return what a process inside the group reads: quota, threads, visible cores."""
    script = 'echo $$ > "$0/cgroup.procs" && exec "$@"'
    command = ["sh", "-c", script, str(group), sys.executable, "-c", READ_QUOTA]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.parametrize(("cores", "num_threads"), [(0.5, 1), (1.0, 1), (1.5, 1), (2.0, 2)])
def test_a_process_in_a_real_cgroup_reads_its_quota(cores: float, num_threads: int) -> None:
    with make_cpu_cgroup(f"benchmatrix-{os.getpid()}", cores) as group:
        quota, threads, visible = read_quota_inside(group)
    assert (cores, min(num_threads, int(visible))) == (float(quota), int(threads))


def test_a_process_in_a_real_cgroup_reads_the_quota_of_its_parent() -> None:
    with ExitStack() as stack:
        parent = stack.enter_context(make_cpu_cgroup(f"benchmatrix-{os.getpid()}", 0.5))
        if not Path("/sys/fs/cgroup/cpu").is_dir():
            (parent / "cgroup.subtree_control").write_text("+cpu")
        child = stack.enter_context(make_cpu_cgroup("child", None, inside=parent))
        assert ["0.5", "1"] == read_quota_inside(child)[:2]


# Threads


@pytest.mark.parametrize(
    ("quota", "cores", "expected"),
    [(None, 8, 8), (2.0, 8, 2), (2.9, 8, 2), (0.5, 8, 1), (16.0, 8, 8), (1.0, 1, 1), (0.1, 64, 1)],
)
def test_there_are_as_many_threads_as_whole_cores(
    monkeypatch: pytest.MonkeyPatch, quota: float | None, cores: int, expected: int
) -> None:
    monkeypatch.setattr("bench.probes.cpu.read_cpu_quota_cores", lambda: quota)
    monkeypatch.setattr("bench.probes.cpu.count_visible_cores", lambda: cores)
    assert expected == count_threads()


def test_every_librarys_threads_are_set_whatever_was_set_before(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in THREAD_VARIABLES:
        monkeypatch.setenv(name, "192")
    limit_library_threads(3)
    assert {"3"} == {os.environ[name] for name in THREAD_VARIABLES}


@pytest.fixture(scope="module", params=["pytorch", "tensorflow"])
def pinned_answers(request: pytest.FixtureRequest, interpreters: dict[Framework, Path]) -> dict[str, Any]:
    """What a framework says of itself in a process that has one core and switches set by its user."""
    core = choose_core()
    program = [str(interpreters[request.param]), str(PROGRAMS / "check_environment.py"), request.param]
    variables = {**os.environ, "PYTHONPATH": PYTHONPATH, "OMP_NUM_THREADS": "64", "TF_ENABLE_ONEDNN_OPTS": "1"}
    process = subprocess.run(
        program,
        env=variables,
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),
    )
    answers: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    return answers | {"framework": request.param}


def test_a_process_on_one_core_uses_one_thread_in_every_library(pinned_answers: dict[str, Any]) -> None:
    environment = pinned_answers["environment"]
    assert (1, 1) == (environment["num_visible_cores"], environment["num_threads"])
    if pinned_answers["framework"] == "tensorflow":
        assert "1 1" == pinned_answers["threads"]
        names = ("intra_op_threads", "inter_op_threads")
    else:
        for line in ("at::get_num_threads() : 1", "omp_get_max_threads() : 1", "mkl_get_max_threads() : 1"):
            assert line in pinned_answers["threads"]
        names = ("num_threads", "num_interop_threads")
    assert [1, 1] == [environment["settings"][name] for name in names]


def test_nothing_is_imported_before_the_threads_are_set_and_the_import_is_timed(pinned_answers: dict[str, Any]) -> None:
    assert [] == pinned_answers["early"]


def test_the_environment_names_versions_and_the_users_switches(pinned_answers: dict[str, Any]) -> None:
    environment = pinned_answers["environment"]
    package = {"pytorch": "torch", "tensorflow": "tensorflow"}[pinned_answers["framework"]]
    assert {package, "numpy"} <= set(environment["versions"])
    assert "1" == environment["settings"]["TF_ENABLE_ONEDNN_OPTS"]
    assert (os.uname().release, os.uname().nodename) == (environment["kernel"], environment["hostname"])
    assert ("abc", []) == (environment["git_revision"], environment["gpus"])


def test_switches_that_are_not_set_are_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        monkeypatch.delenv(name)
    assert {} == read_timing_variables()
    monkeypatch.setenv("TF_XLA_FLAGS", "--tf_xla_auto_jit=2")
    environment = read_environment(make_cell(), StubFramework(), 1, image=None, git_revision=None)  # type: ignore[arg-type]
    assert {"tf32": False, "TF_XLA_FLAGS": "--tf_xla_auto_jit=2"} == environment.settings


# Memory


ALLOCATE = """
from bench.probes.memory import read_peak_rss_bytes
before = read_peak_rss_bytes()
block = bytearray(b"x") * 300_000_000
del block
print(before, read_peak_rss_bytes())
"""


def test_the_peak_of_memory_stays_when_the_memory_is_freed() -> None:
    process = subprocess.run([sys.executable, "-c", ALLOCATE], capture_output=True, text=True, check=True)
    before, peak = map(int, process.stdout.split())
    assert 300_000_000 == pytest.approx(peak - before, abs=10_000_000)


def test_the_peak_of_memory_is_that_of_the_process_not_of_its_parent() -> None:
    block = bytearray(b"x") * 200_000_000  # `ru_maxrss` of a child starts at what its parent had
    process = subprocess.run([sys.executable, "-c", ALLOCATE], capture_output=True, text=True, check=True)
    before = int(process.stdout.split()[0])
    assert before < len(block)


def test_memory_is_read_in_bytes(tmp_path: Path) -> None:
    write_tree(
        tmp_path,
        {"status": "VmPeak:\t 9999 kB\nVmHWM:\t  123 kB\nVmRSS:\t 100 kB\n", "meminfo": "MemTotal:  16384 kB\n"},
    )
    assert 123 * 1024 == read_peak_rss_bytes(tmp_path / "status")
    assert 16 * 1024**2 == read_memory_total_bytes(tmp_path / "meminfo")


def test_a_file_without_the_line_is_named(tmp_path: Path) -> None:
    write_tree(tmp_path, {"status": "Name: kthread\n"})
    with pytest.raises(LookupError, match="status has no line VmHWM"):
        read_peak_rss_bytes(tmp_path / "status")


# Processor


X86 = "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel\t\t: 85\nmodel name\t: Intel(R) Xeon(R) CPU @ 2.20GHz\n"
ARM_SERVER = "processor\t: 0\nBogoMIPS\t: 243.75\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"
ARM_BOARD = ARM_SERVER + "\nHardware\t: BCM2835\nModel\t\t: Raspberry Pi 4 Model B Rev 1.4\n"


@pytest.mark.parametrize(
    ("cpuinfo", "expected"),
    [
        (X86 * 2, "Intel(R) Xeon(R) CPU @ 2.20GHz"),
        (ARM_SERVER * 2, "ARM implementer 0x41 part 0xd0c"),
        (ARM_BOARD, "Raspberry Pi 4 Model B Rev 1.4"),
        ("processor\t: 0\nmodel name\t:\n", "unknown"),
        ("", "unknown"),
    ],
)
def test_the_processor_is_named(tmp_path: Path, cpuinfo: str, expected: str) -> None:
    write_tree(tmp_path, {"cpuinfo": cpuinfo})
    assert expected == read_cpu_model(tmp_path / "cpuinfo")


def test_the_governor_is_read_where_there_is_one(tmp_path: Path) -> None:
    write_tree(tmp_path, {"scaling_governor": "powersave\n"})
    assert "powersave" == read_cpu_governor(tmp_path / "scaling_governor")
    assert read_cpu_governor(tmp_path / "none") is None
