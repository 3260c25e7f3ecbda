"""bench.worker.delivery: a record reaches the store, or the log, and nothing is lost on the way."""

import errno
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.errors import EXIT_OK, EXIT_RESULT_IN_LOG
from bench.store import Store
from bench.worker.delivery import deliver, find_marked_record, mark_record
from s3_server import S3Server


def put(store: Store, key: str, *, seconds: float) -> int:
    return deliver(store, key, b"record", is_ok=True, deadline=time.monotonic() + seconds)


def test_a_store_that_stays_away_leaves_the_record_in_the_log(
    s3_server: S3Server, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store.open(f"s3://{s3_server.bucket}")
    s3_server.stop()
    assert put(store, "r/1.json", seconds=0) == EXIT_RESULT_IN_LOG
    err = capsys.readouterr().err
    assert find_marked_record(f"before\n{err}after\n") == b"record"
    assert "cannot be reached" in err


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.EDQUOT])
def test_a_directory_that_cannot_be_written_is_not_waited_for_and_the_record_lies_in_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number), f"{tmp_path}/r/1.json")

    monkeypatch.setattr("bench.store.directory.Directory.write", refuse)
    store, spare = Store.open(f"file://{tmp_path}"), tmp_path / "spare"
    deadline = time.monotonic() + 1e9  # a second try would hang
    monkeypatch.setattr("bench.store.store.time.sleep", lambda _: pytest.fail("it waits"))
    assert deliver(store, "r/1.json", b"record", is_ok=True, deadline=deadline, spare=spare) == EXIT_RESULT_IN_LOG
    assert spare.read_bytes() == b"record"
    assert f"{tmp_path}/r" in (err := capsys.readouterr().err)
    assert f"the record lies in {spare}" in err
    assert deliver(store, "r/1.json", b"other", is_ok=True, deadline=deadline, spare=spare) == EXIT_RESULT_IN_LOG
    assert find_marked_record(capsys.readouterr().err) == b"other"  # the file is not written over
    assert spare.read_bytes() == b"record"


def test_a_store_that_comes_back_gets_the_record(s3_server: S3Server) -> None:
    store = Store.open(f"s3://{s3_server.bucket}", on_wait=lambda _: s3_server.start())
    s3_server.stop()
    assert put(store, "r/1.json", seconds=600) == EXIT_OK
    assert store.get("r/1.json") == b"record"


@given(st.binary(max_size=5000), st.text(max_size=50))
def test_what_is_marked_is_found_among_other_lines(data: bytes, noise: str) -> None:
    assert find_marked_record(f"{noise}\n{mark_record(data)}\n{noise}") == data


@pytest.mark.parametrize(
    "damage", [lambda line: line[:-4], lambda line: line.replace("A", "B"), lambda line: "x" + line]
)
def test_a_damaged_line_is_no_record(damage: object) -> None:
    line = mark_record(b"AAAA" * 100)
    assert find_marked_record(damage(line)) is None  # type: ignore[operator]
