"""Commands on a disk that is full at one write after the other: what was there stays, and with room they go on."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from workspace import PROGRAM, Workspace, name_repeats

PLENTY = 2**20
REPORT = (*PROGRAM, "report", "--format", "csv,parquet", "--output", "tables")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A tmpfs whose size can be changed while it is in use."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"nr_blocks={PLENTY},nr_inodes={PLENTY}", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("a tmpfs cannot be mounted here")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def allow(disk: Path, resource: str, more: int | None) -> None:
    """Allow so many blocks, or names of files, more than are in use; None: as many as there is memory for."""
    use = os.statvfs(disk)
    used = use.f_blocks - use.f_bfree if resource == "nr_blocks" else use.f_files - use.f_ffree
    limit = PLENTY if more is None else used + more
    subprocess.run(["mount", "-o", f"remount,{resource}={limit}", str(disk)], check=True)


def read_documents(disk: Path) -> dict[str, bytes]:
    """Return every document of the runs in the store; what a writer has not finished is none."""
    return {str(path): path.read_bytes() for path in (disk / "results" / "runs").rglob("*.json")}


@pytest.mark.parametrize("resource", ["nr_blocks", "nr_inodes"])
def test_a_command_without_disk_says_so_and_goes_on_when_there_is_some(
    resource: str, disk: Path, lock_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan takes two blocks or names and a record two, each with folders and a staging file.

    Where names run out, a report ends as a run does: it is not tried again.
    """
    workspace = Workspace.set_up(disk)
    monkeypatch.setenv("TMPDIR", str(disk))
    num_full = 0
    commands = ((*workspace.command, "--retry-failed"), REPORT)
    for command in commands[: 1 + (resource == "nr_blocks")]:
        for more in (0, 3, 6):
            allow(disk, resource, more)
            before = read_documents(disk)
            done = workspace.call(*command)
            allow(disk, resource, None)
            output = done.stdout + done.stderr
            assert done.returncode in (0, 1, 2, 75), output
            assert "Traceback" not in output
            assert len(re.findall("^error:", output, re.MULTILINE)) == (done.returncode in (2, 75)), output
            assert before.items() <= read_documents(disk).items()
            if done.returncode in (2, 75):
                num_full += 1
                assert re.search("full|space", output), output
        done = workspace.call(*command)
        assert done.returncode == 0, done.stdout + done.stderr
    assert num_full >= 2
    ok = name_repeats([result for result in workspace.read_results() if result.status == "ok"])
    assert len(ok) == 4 == len(set(ok))
    assert list(disk.rglob(".benchmatrix-*")) == []
