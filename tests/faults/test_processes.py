"""Runners that are killed, and commands without disk, at a few moments each."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from full_disk import fill_disk, mount_small_disk
from kill_faults import kill_runners
from warm_processes import WarmProcesses

NUM_KILLS, NUM_FULL_DISKS = 3, 4


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmProcesses]:
    """What starts the tool, for all tests of the module: its imports take most of their CPU."""
    processes = WarmProcesses(tmp_path_factory.mktemp("output"))
    yield processes
    processes.stop()


def test_a_runner_that_is_killed_loses_nothing_and_measures_nothing_twice(tmp_path: Path, tool: WarmProcesses) -> None:
    outcome = kill_runners(tmp_path, tool, num_kills=NUM_KILLS, seed=1)
    assert ([], NUM_KILLS) == (outcome.problems, outcome.num_faults)


def test_a_command_without_disk_says_so_and_goes_on_when_there_is_some(tmp_path: Path, tool: WarmProcesses) -> None:
    with mount_small_disk(tmp_path / "disk") as disk:
        if disk is None:
            pytest.skip("a tmpfs cannot be mounted here")
        outcome = fill_disk(tmp_path, tool, disk, num_faults=NUM_FULL_DISKS, seed=1)
    assert ([], NUM_FULL_DISKS) == (outcome.problems, outcome.num_faults)
