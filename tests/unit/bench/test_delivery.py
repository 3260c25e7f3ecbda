"""bench.worker.delivery: a record reaches the store, or the log, and nothing is lost on the way."""

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.exit_codes import EXIT_NOT_OK, EXIT_OK, EXIT_RESULT_IN_LOG
from bench.schema import Result
from bench.store import Store, result_key
from bench.worker.delivery import Delivery, find_marked_record, mark_record
from factories import make_failed_result, make_result
from s3_server import S3Server


def find_key(result: Result) -> str:
    return result_key(result.run_id, result.cell_id, result.repeat, result.attempt)


@pytest.mark.parametrize(("result", "code"), [(make_result(), EXIT_OK), (make_failed_result(), EXIT_NOT_OK)])
def test_a_record_lies_in_the_store_and_the_exit_code_says_how_it_ended(
    tmp_path: Path, result: Result, code: int
) -> None:
    store = Store.open(f"file://{tmp_path}")
    assert Delivery(store=store).deliver(result, deadline=time.monotonic() + 600) == code
    assert Result.model_validate_json(store.get(find_key(result))) == result


def test_a_store_that_stays_away_leaves_the_record_in_the_log(
    s3_server: S3Server, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store.open(f"s3://{s3_server.bucket}")
    s3_server.stop()
    result = make_result()

    assert Delivery(store=store).deliver(result, deadline=time.monotonic()) == EXIT_RESULT_IN_LOG

    err = capsys.readouterr().err
    found = find_marked_record(f"before\n{err}after\n")
    assert found is not None
    assert Result.model_validate_json(found) == result
    assert "cannot be reached" in err


def test_a_store_that_comes_back_gets_the_record(s3_server: S3Server, capsys: pytest.CaptureFixture[str]) -> None:
    store = Store.open(f"s3://{s3_server.bucket}")
    s3_server.stop()
    result = make_result()

    class ReturningStore:
        """The real store; its server is started again after the first try."""

        def put_with_short_retries(self, key: str, data: bytes) -> None:
            try:
                store.put_with_short_retries(key, data)
            finally:
                if s3_server.process is None:
                    s3_server.start()

    delivery = Delivery(store=ReturningStore())  # type: ignore[arg-type]
    assert delivery.deliver(result, deadline=time.monotonic() + 600) == EXIT_OK
    assert "waiting for the store: " in capsys.readouterr().err
    assert Result.model_validate_json(store.get(find_key(result))) == result


@given(st.binary(max_size=5000), st.text(max_size=50))
def test_what_is_marked_is_found_among_other_lines(data: bytes, noise: str) -> None:
    assert find_marked_record(f"{noise}\n{mark_record(data)}\n{noise}") == data


@pytest.mark.parametrize(
    "damage", [lambda line: line[:-4], lambda line: line.replace("A", "B"), lambda line: "x" + line]
)
def test_a_damaged_line_is_no_record(damage: object) -> None:
    line = mark_record(b"AAAA" * 100)
    assert find_marked_record(damage(line)) is None  # type: ignore[operator]
