"""Where tables are kept if the store takes none: in the home folder, and nowhere without one."""

import os
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest

from bench.store import Store, StoreError
from collector.results.dataset.places import Places, _open_private_folder

NOBODY = 54321
"""A number that no user of a machine has."""


class Refused(Store):
    """A store that takes nothing."""

    def put_with_short_retries(self, key: str, data: bytes) -> None:
        raise StoreError(f"store {self.url}: read-only")


@pytest.fixture
def homeless(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Change to a folder, without a home folder; return it."""
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: NOBODY)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


@pytest.mark.parametrize("cache", [None, "relative/cache"])
def test_without_a_home_folder_nothing_is_written_into_the_current_one(
    homeless: Path, tmp_path: Path, cache: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if cache is not None:
        monkeypatch.setenv("XDG_CACHE_HOME", cache)
    places = Places(Refused.open(f"file://{tmp_path}/store"))

    places.write("results", "r", {"results": pa.table({"key": ["runs/r/results/c-00000000/1-a.json"]})})

    assert os.listdir(homeless) == []
    assert len(places.notices) == 1
    assert "without a home folder (HOME) nowhere else" in places.notices[0]


def test_without_a_folder_for_temporary_files_the_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def find_none() -> list[str]:
        return ["/proc/nowhere"]

    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", find_none)
    with pytest.raises(
        StoreError, match="a folder for tables cannot be made in any of the folders for temporary files"
    ):
        _open_private_folder()
