"""Finds the directories of this process's cgroup and its parents, v1 or v2."""

from collections.abc import Iterator
from pathlib import Path

CGROUP_MEMBERSHIP = Path("/proc/self/cgroup")
CGROUP_ROOT = Path("/sys/fs/cgroup")


def list_cgroups(controller: str, membership: Path = CGROUP_MEMBERSHIP, root: Path = CGROUP_ROOT) -> Iterator[Path]:
    """Yield this process's cgroup directory for `controller`, then its parents; not all of them exist.

    In a container /proc may show the path on the host, while the mount shows the container's own group as its root.
    """
    if not membership.exists():
        return
    for line in membership.read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        mounts = [root / controllers, root / controller] if controllers else [root, root / "unified"]
        for mount in mounts:
            inside = Path(path.lstrip("/"))
            yield from (mount / parent for parent in (inside, *inside.parents))
