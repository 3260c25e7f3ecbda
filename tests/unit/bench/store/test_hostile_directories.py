"""A directory store with things in the place of objects that are none: they are named, and nobody waits for them."""

import os
import socket
import subprocess
from pathlib import Path

import pytest

from bench.store import KeyMissing, Store, StoreError, UnreadableObject
from bench.store.store_errors import explain_error

KEY = "runs/r1/results/c/1-a.json"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where the object with the key KEY would be."""
    path = tmp_path / "results" / KEY
    path.parent.mkdir(parents=True)
    return path


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(f"file://{tmp_path}/results")


def test_a_pipe_is_not_waited_for(store: Store, place: Path) -> None:
    os.mkfifo(place)
    with pytest.raises(UnreadableObject, match="is a pipe, a socket or a device"):
        store.get(KEY)
    assert [type(data) for _, data in store.get_listed([KEY])] == [UnreadableObject]


def test_a_pipe_is_not_opened_to_see_whether_it_is_there(store: Store, place: Path) -> None:
    """`run --run-id` waited for ever where a pipe was in the place of the plan."""
    assert not store.holds(KEY)
    os.mkfifo(place)
    assert store.holds(KEY)
    assert not store.holds(KEY.rpartition("/")[0])


def test_a_link_to_itself_is_told_when_it_is_looked_for(store: Store, place: Path) -> None:
    place.symlink_to(place)
    with pytest.raises(StoreError, match="Too many levels of symbolic links"):
        store.holds(KEY)


def test_a_socket_is_no_object(store: Store, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place.parent)  # the name of a socket has 107 bytes at most
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(place.name)
        with pytest.raises(UnreadableObject, match="is a pipe, a socket or a device"):
            store.get(KEY)


@pytest.mark.parametrize("target", ["/dev/zero", "/dev/full"])
def test_a_link_to_a_device_is_not_read(store: Store, place: Path, target: str) -> None:
    place.symlink_to(target)
    with pytest.raises(UnreadableObject, match="is a pipe, a socket or a device"):
        store.get(KEY)


def test_a_link_to_itself_is_not_followed(store: Store, place: Path) -> None:
    place.symlink_to(place)
    with pytest.raises(UnreadableObject, match="cannot be read: Too many levels of symbolic links"):
        store.get(KEY)


def test_a_link_that_leads_nowhere_is_missing(store: Store, place: Path) -> None:
    place.symlink_to(place.parent / "absent")
    with pytest.raises(KeyMissing):
        store.get(KEY)


@pytest.mark.parametrize("name", ["a\x1b[31mb", "a\nb", "\u202eabc", "\udce9", "x" * 200])
def test_folders_with_names_of_no_run_are_passed_over(store: Store, place: Path, name: str) -> None:
    (place.parents[3] / name).mkdir()
    assert store.list_run_ids() == ["r1"]


def test_the_others_are_read_all_the_same(store: Store, place: Path) -> None:
    os.mkfifo(place)
    store.put("runs/r1/results/c/2-b.json", b"2")
    found = dict(store.get_listed([KEY, "runs/r1/results/c/2-b.json"]))
    assert found["runs/r1/results/c/2-b.json"] == b"2"
    assert isinstance(found[KEY], UnreadableObject)


def test_folders_in_folders_without_end_are_one_problem(store: Store, place: Path) -> None:
    place.write_bytes(b"{}")
    deep = os.open(place.parent, os.O_RDONLY)
    for _ in range(1200):  # more than Python nests calls
        os.mkdir("d", dir_fd=deep)
        inner = os.open("d", os.O_RDONLY, dir_fd=deep)
        os.close(deep)
        deep = inner
    os.close(deep)
    try:
        found = list(store.list_objects("runs"))
    finally:
        subprocess.run(["rm", "-rf", place.parent / "d"], check=True)  # shutil nests calls

    assert [stored.problem for stored in found] == ["", "is nested too deep"]


def test_a_link_to_itself_among_the_runs_is_none(store: Store, place: Path) -> None:
    runs = place.parents[3]
    (runs / "loop").symlink_to("loop")
    (runs / "r1" / "run.json").write_bytes(b"{}")
    assert list(store.list_run_ids()) == ["r1"]


def test_runs_that_cannot_be_listed_are_said_with_the_remedy(store: Store, place: Path) -> None:
    """It was the system's own `[Errno 20]`, as `[Errno 13]` of a folder without rights."""
    runs = place.parents[3]
    runs.rename(runs.with_name("gone"))
    runs.write_text("")
    with pytest.raises(StoreError, match=f"{runs} is a file, or has one where a directory is needed; move it or name"):
        store.list_run_ids()
    denied = explain_error(str(PermissionError(13, "Permission denied", "/s/runs")), "/s", "")
    assert denied == "no permission to use /s/runs; change its permissions or name another place with --store"
