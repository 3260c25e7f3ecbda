"""Directories as stores: which are opened, errors of the file system, and writers that were killed."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from bench.store import Store, StoreError, result_key
from factories import make_cell
from waiting import wait_for


@pytest.fixture
def mounted_directory(tmp_path: Path) -> Iterator[Path]:
    directory = tmp_path / "mounted"
    directory.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(directory)]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("a tmpfs cannot be mounted here")
    yield directory
    subprocess.run(["umount", "--lazy", str(directory)], check=True)


def test_a_relative_directory_is_made_where_the_process_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = Store.open("file://results/a b")
    monkeypatch.chdir("/")
    assert list(store.list_keys("")) == store.list_run_ids() == []
    assert list(tmp_path.iterdir()) == []
    store.put("x", b"1")
    assert (tmp_path / "results" / "a b" / "x").read_bytes() == b"1"


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("some/results", "not a URL; for a directory write file://some/results"),
        ("ftp://host/results", "'ftp://' is unknown; known are file, s3, gs, az"),
        ("file://", "names no directory; for the current one write file://."),
        ("file://~nosuchuser/x", "cannot be the name of a directory"),
        ("file://x\udcff", "has bytes that are no UTF-8"),
        ("AKIA:secret@b", "not a URL"),
        ("s3:/AKIA:secret@b", "not a URL"),
        ("s3://AKIA1:secret@bkt", "needs a bucket and may have a prefix"),
        ("s3://bkt?region=x", "needs a bucket"),
        ("s3://bkt/../a", "needs a bucket"),
    ],
)
def test_urls_that_name_no_store_are_refused_without_their_credentials(url: str, reason: str) -> None:
    with pytest.raises(StoreError) as caught:
        Store.open(url)
    assert reason in str(caught.value)
    assert "secret" not in str(caught.value)
    assert str(caught.value).isascii()


def test_only_a_bucket_imports_boto3(tmp_path: Path) -> None:
    program = f"import sys; from bench.store import Store; Store.open('file://{tmp_path}'); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not {"boto3", "botocore", "obstore"} & set(done.stdout.split())


def test_a_file_in_the_place_of_the_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("")
    store = Store.open(f"file://{tmp_path}/results")
    for call in (store.check_writable, store.list_run_ids, lambda: list(store.list_keys("")), lambda: store.get("x")):
        with pytest.raises(StoreError, match=r"results is a file"):
            call()


def test_a_full_disk_is_named_and_mended_by_freeing_space(mounted_directory: Path) -> None:
    store = Store.open(f"file://{mounted_directory}/results")
    (mounted_directory / "ballast").write_bytes(bytes(1_000_000))
    calls: list[Callable[[], object]] = [store.check_writable, lambda: store.put("x", bytes(100_000))]
    for call in calls:
        with pytest.raises(StoreError, match=f"the disk of {mounted_directory}/results is full; free some space"):
            call()
    assert list(store.list_keys("")) == []
    (mounted_directory / "ballast").unlink()
    store.put("x", bytes(100_000))
    assert store.get("x") == bytes(100_000)


def test_a_directory_that_may_not_be_written_is_named(mounted_directory: Path) -> None:
    store = Store.open(f"file://{mounted_directory}/results")
    subprocess.run(["mount", "-o", "remount,ro", str(mounted_directory)], check=True)
    for key in ("runs/x", "runs/r/run.json"):
        with pytest.raises(StoreError, match=f"the file system of {mounted_directory}.* is read-only; mount it"):
            store.check_writable(key)


def test_a_folder_that_the_record_will_lie_in_is_tried_and_named() -> None:
    key = result_key("r", make_cell().cell_id, 1, "a")
    with TemporaryDirectory() as root:  # others may enter it
        folder = (Path(root) / key).parent
        folder.mkdir(parents=True)
        for place in (Path(root), Path(root) / "runs"):
            place.chmod(0o777)
        program = f"store.Store.open('file://{root}').check_writable({key!r})"
        code = f"import os; from bench import store; os.getuid() or os.setuid(65534); {program}"
        folder.chmod(0o555)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert f"no permission to use {folder}; change its permissions" in done.stderr.splitlines()[-1]


def test_a_directory_without_hard_links_takes_new_objects_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")  # as exFAT, SMB and FUSE answer

    monkeypatch.setattr("os.link", refuse)
    store = Store.open(f"file://{tmp_path}")
    assert [store.put_new("runs/x", data) for data in (b"1", b"2")] == [True, False]
    assert [path.read_bytes() for path in (tmp_path / "runs").iterdir()] == [b"1"]


def test_what_a_killed_writer_left_is_not_listed_and_not_in_the_way(tmp_path: Path) -> None:
    program = "import sys; from bench.store import Store; Store.open(sys.argv[1]).put('big', bytes(200_000_000))"
    url = f"file://{tmp_path}/results"
    for _ in range(20):  # until one is killed before it was done
        writer = subprocess.Popen([sys.executable, "-c", program, url])
        wait_for(lambda: any((tmp_path / "results").glob("big*")), "its beginning", 0.005)
        writer.kill()
        writer.wait()
        if all(name.startswith("big#") for name in os.listdir(tmp_path / "results")):
            break
        (tmp_path / "results" / "big").unlink()
    else:
        pytest.fail("all were too quick")
    store = Store.open(url)
    assert list(store.list_keys("")) == []
    store.put("big", b"1")
    assert list(store.get_listed(store.list_keys(""))) == [("big", b"1")]


def test_names_and_links_that_cannot_be_read_are_listed_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("absent")
    (tmp_path / "loop").symlink_to(".")
    Path(f"{tmp_path}/x\udcff").write_bytes(b"")
    store = Store.open(f"file://{tmp_path}")
    assert {found.key: found.problem for found in store.list_objects("")} == {
        "link": "cannot be read (No such file or directory)",
        "loop": "is no file",
        "x\\udcff": "has bytes that are no UTF-8 in its name",
    }
    assert list(store.list_keys("")) == []
