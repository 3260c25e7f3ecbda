"""Files that take the place of others: where one cannot be written whole, the old one stays as it was."""

import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.errors import UserError
from bench.store import Store
from collector.files import read_input, replace_text
from factories import RUN_ID, make_cell, make_failed_result, make_run, put_documents
from measured_runs import make_repeats
from runner.cli import main

MAX_BYTES = 1000
COMMANDS = {
    "report": ["report", RUN_ID, "--output", "out"],
    "tables": ["report", RUN_ID, "--format", "csv,parquet", "--output", "out"],
    "claims": ["audit", "study", "--run", RUN_ID, "--output", "out/claims.md"],
    "plot": ["forecast", "--plot", "out/forecast.png"],
}


def read_files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def call_main(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[object, str]]:
    """Calls the command line in this process; returns exit code and stderr. No file takes what it prints."""

    def call(*words: str) -> tuple[object, str]:
        monkeypatch.setattr(sys, "argv", ["benchmatrix", *words])
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code, capsys.readouterr().err

    return call


@contextmanager
def limit_files(num_bytes: int) -> Iterator[None]:
    """Make writes fail beyond so many bytes of a file, in the middle, as on a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_file_that_cannot_be_written_whole_leaves_the_old_one(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call_main: Callable[..., tuple[object, str]]
) -> None:
    run = make_run([make_cell(), make_cell(batch_size=8)])
    failed = make_failed_result(make_cell(batch_size=8), stderr_tail="x" * 5000)
    put_documents(Store.open(f"file://{tmp_path}/results"), run, [*make_repeats(make_cell(), 0.1, 0.2), failed])
    monkeypatch.chdir(tmp_path)
    assert call_main(*COMMANDS[name]) == (0, "")
    written = read_files(tmp_path / "out")

    with limit_files(MAX_BYTES):
        code, message = call_main(*COMMANDS[name])

    assert read_files(tmp_path / "out") == written
    assert code == 2
    assert "Traceback" not in message
    assert message.startswith("error: out/")
    assert "cannot be written (File too large)" in message


def test_a_new_file_has_the_rights_of_the_umask_and_a_replaced_one_its_own_and_a_link_stays_a_link(
    tmp_path: Path,
) -> None:
    plain, page, link = tmp_path / "plain", tmp_path / "a" / "b" / "page.html", tmp_path / "link.html"
    plain.write_text("")
    replace_text(page, "ü")
    assert page.read_bytes() == "ü".encode()
    assert page.stat().st_mode == plain.stat().st_mode
    page.chmod(0o640)
    link.symlink_to(page)
    replace_text(link, "new")
    assert (page.read_text(), page.stat().st_mode & 0o777, link.is_symlink()) == ("new", 0o640, True)


def test_what_is_no_regular_file_is_written_to_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        replace_text(pipe, "text")
        assert os.read(reader, 10) == b"text"
    finally:
        os.close(reader)
    assert pipe.is_fifo()


@pytest.mark.parametrize("name", ["-", "/dev/stdout"])
def test_stdout_has_a_name(name: str) -> None:
    program = (
        "from pathlib import Path; from collector.files import replace_text; "
        f"print('before'); replace_text(Path('{name}'), 'page\\n'); print('after')"
    )
    found = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True)
    assert found.stdout == b"before\npage\nafter\n"


def test_what_was_read_is_not_replaced(tmp_path: Path) -> None:
    """A file that this process has read is not written to, by any name: `audit mine.csv --output mine.csv`."""
    (tmp_path / "mine.csv").write_text("mine")
    (tmp_path / "link.csv").symlink_to("mine.csv")
    read_input(tmp_path / "mine.csv")
    for name in ("mine.csv", "link.csv"):
        with pytest.raises(UserError, match=f"{name}: is what this command reads; name another file"):
            replace_text(tmp_path / name, "page")
    assert (tmp_path / "mine.csv").read_text() == "mine"


def test_a_url_is_no_path_and_its_password_is_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="^output: takes the path of a file or a folder") as caught:
        replace_text(Path("s3://user:secret@bucket/page.html"), "x")
    assert "secret" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
