"""Commands on a disk that is full at one write after the other: a few of them; `make faults` has a hundred."""

from pathlib import Path

import pytest

from full_disk import fill_disk, mount_small_disk
from warm_processes import WarmProcesses

NUM_FAULTS = 4


def test_a_command_without_disk_says_so_and_goes_on_when_there_is_some(tmp_path: Path) -> None:
    with mount_small_disk(tmp_path / "disk") as disk:
        if disk is None:
            pytest.skip("a tmpfs cannot be mounted here")
        tool = WarmProcesses(tmp_path)
        try:
            outcome = fill_disk(tmp_path, tool, disk, num_faults=NUM_FAULTS, seed=1)
        finally:
            tool.stop()
    assert ([], NUM_FAULTS) == (outcome.problems, outcome.num_faults)
