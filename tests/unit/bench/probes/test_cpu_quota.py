"""The CPU quota in made-up cgroup trees."""

from pathlib import Path

import pytest

from bench.probes.cpu import read_cpu_quota_cores
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
