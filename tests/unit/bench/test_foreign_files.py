"""Files that anybody may have put in their place."""

import os
from pathlib import Path

import pytest

from bench.foreign_files import FileProblem, ForeignFileError, read_foreign_file


def test_a_file_is_read_to_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "matrix.yaml"
    path.write_bytes(b"12345")
    assert read_foreign_file(path, max_bytes=5) == b"12345"
    with pytest.raises(ForeignFileError, match="is larger than 4 bytes, the limit") as caught:
        read_foreign_file(path, max_bytes=4)
    assert caught.value.problem == FileProblem.TOO_LARGE


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("absent", FileProblem.MISSING),
        ("folder", FileProblem.DIRECTORY),
        ("pipe", FileProblem.NOT_REGULAR),
        ("zero", FileProblem.NOT_REGULAR),
        ("loop", FileProblem.UNREADABLE),
    ],
)
def test_what_is_no_file_is_refused_in_words(tmp_path: Path, name: str, problem: FileProblem) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(ForeignFileError) as caught:
        read_foreign_file(tmp_path / name, max_bytes=10)
    assert caught.value.problem == problem
    assert str(caught.value)
