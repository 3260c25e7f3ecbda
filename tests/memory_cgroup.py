"""Makes memory cgroups of version 1 or 2, for processes that the kernel's OOM killer is to end."""

import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
REMOVAL_DEADLINE_SECONDS = 300.0


@dataclass(frozen=True, kw_only=True)
class MemoryCgroup:
    """A cgroup that processes can join."""

    path: Path

    @property
    def join_command(self) -> str:
        """The shell command that puts the shell itself into the cgroup."""
        return f"echo $$ > {self.path}/cgroup.procs"

    @classmethod
    def make(cls, name: str, limit_bytes: int) -> "MemoryCgroup":
        """Make a cgroup without swap. Raises OSError where this user, or this container, may not."""
        is_version_1 = (ROOT / "memory").is_dir()
        path = ROOT / "memory" / name if is_version_1 else ROOT / name
        path.mkdir()
        cgroup = cls(path=path)
        limits = ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes") if is_version_1 else ("memory.max",)
        try:
            for limit in limits:
                (path / limit).write_text(str(limit_bytes))
            if not is_version_1 and (path / "memory.swap.max").exists():
                (path / "memory.swap.max").write_text("0")
        except OSError:
            cgroup.remove()
            raise
        return cgroup

    def remove(self) -> None:
        """Remove the cgroup; the kernel needs a moment after its last process has died."""
        deadline = time.monotonic() + REMOVAL_DEADLINE_SECONDS
        while True:
            try:
                return self.path.rmdir()
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
