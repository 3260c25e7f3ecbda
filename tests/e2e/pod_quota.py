"""Slows chosen pods of this machine's node: lowers the CPU quota of their containers, as an administrator could."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from real_cluster import RealCluster

CGROUPS = Path("/sys/fs/cgroup")
PERIOD_MICROSECONDS = 100_000
"""The kernel's default, and the kubelet's."""
LOOK_EVERY_SECONDS = 0.5
"""Well within the seconds that a container takes to import its framework."""


@contextmanager
def lower_cpu_quota(real_cluster: RealCluster, words: str, cores: float) -> Iterator[set[str]]:
    """Let pods whose names contain `words` have no more than `cores` cores, from their start until the context ends.

    Yields the uids of the pods that were slowed so far.
    """
    slowed: set[str] = set()
    ended = threading.Event()
    failures: list[BaseException] = []

    def slow_all() -> None:
        try:
            while not ended.wait(LOOK_EVERY_SECONDS):
                for pod in real_cluster.list_pods():
                    uid = str(pod["metadata"]["uid"])
                    if words in pod["metadata"]["name"] and lower_quota(uid, cores):
                        slowed.add(uid)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=slow_all, daemon=True)
    thread.start()
    try:
        yield slowed
    finally:
        ended.set()
        thread.join()
    assert not failures, failures


def lower_quota(pod_uid: str, cores: float) -> bool:
    """Set the quota of a pod's containers; return whether it has any on this machine now."""
    has_any = False
    for group in list_containers(pod_uid):
        try:
            write_quota(group, int(cores * PERIOD_MICROSECONDS))
        except FileNotFoundError:  # it has ended meanwhile
            continue
        has_any = True
    return has_any


def list_containers(pod_uid: str) -> list[Path]:
    """Return the cgroups of a pod's containers: in v1 or v2, named by the kubelet itself or by systemd."""
    root = CGROUPS / "cpu" if (CGROUPS / "cpu").is_dir() else CGROUPS
    names = {f"pod{pod_uid}", f"pod{pod_uid.replace('-', '_')}"}
    pods = [path for name in names for path in root.glob(f"kubepods*/**/*{name}*") if path.is_dir()]
    return [path for pod in pods if "pod" in pod.name for path in pod.iterdir() if path.is_dir()]


def write_quota(group: Path, microseconds: int) -> None:
    """Write the quota of a cgroup, in microseconds of CPU time in each period."""
    maximum = group / "cpu.max"
    if maximum.exists():
        maximum.write_text(f"{microseconds} {PERIOD_MICROSECONDS}")
    else:
        (group / "cpu.cfs_quota_us").write_text(str(microseconds))
