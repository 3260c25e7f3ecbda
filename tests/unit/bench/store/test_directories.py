"""Directories as stores: errors of the file system, and writers that were killed."""

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.store import Store, StoreError
from store_calls import wait_until


@pytest.fixture
def mounted_directory(tmp_path: Path) -> Iterator[Path]:
    directory = tmp_path / "mounted"
    directory.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(directory)]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("a tmpfs cannot be mounted here")
    yield directory
    subprocess.run(["umount", "--lazy", str(directory)], check=True)


def test_a_file_in_the_place_of_the_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("")
    with pytest.raises(StoreError, match=r"results is a file"):
        Store.open(f"file://{tmp_path}/results")


def test_a_full_disk_is_named_and_mended_by_freeing_space(mounted_directory: Path) -> None:
    store = Store.open(f"file://{mounted_directory}/results")
    (mounted_directory / "ballast").write_bytes(bytes(1_000_000))
    for call in (store.check_writable, lambda: store.put("x", bytes(100_000))):
        with pytest.raises(StoreError, match=f"the disk of {mounted_directory}/results is full; free some space"):
            call()
    assert list(store.list_keys("")) == []
    (mounted_directory / "ballast").unlink()
    store.put("x", bytes(100_000))
    assert store.get("x") == bytes(100_000)


def test_a_directory_that_may_not_be_written_is_named(mounted_directory: Path) -> None:
    store = Store.open(f"file://{mounted_directory}/results")
    subprocess.run(["mount", "-o", "remount,ro", str(mounted_directory)], check=True)
    for call in (store.check_writable, lambda: Store.open(f"file://{mounted_directory}/other")):
        with pytest.raises(StoreError, match=f"the file system of {mounted_directory}.* is read-only; mount it"):
            call()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_of_somebody_else_is_named(tmp_path: Path) -> None:
    store = Store.open(f"file://{tmp_path}/results")
    (tmp_path / "results").chmod(0o500)
    with pytest.raises(StoreError, match="no permission to use"):
        store.check_writable()


def test_what_a_killed_writer_left_is_not_listed_and_not_in_the_way(tmp_path: Path) -> None:
    program = "import sys; from bench.store import Store; Store.open(sys.argv[1]).put('big', bytes(200_000_000))"
    url = f"file://{tmp_path}/results"
    for _ in range(20):  # until one is killed before it was done
        writer = subprocess.Popen([sys.executable, "-c", program, url])
        wait_until(lambda: any((tmp_path / "results").glob("big*")))
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


def test_a_limit_of_the_size_of_files_is_named(tmp_path: Path) -> None:
    store = Store.open(f"file://{tmp_path}/results")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(StoreError, match=r"no file may be so large at .*results; raise the limit \(`ulimit -f`\)"):
            store.put("x", bytes(100_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(store.list_keys("")) == []
