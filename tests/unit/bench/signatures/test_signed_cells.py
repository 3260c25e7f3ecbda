"""`python -m bench` with a signing key, as in a container: its record is signed, in the store and in the log."""

import sys
import time
from pathlib import Path

import pytest

from bench.delivery import Delivery, find_marked_record
from bench.exit_codes import EXIT_RESULT_IN_LOG, EXIT_UNTRUSTED_KEY, EXIT_USER_ERROR
from bench.signatures.signed_store import SignedStore
from bench.store import Store, result_key
from bench_process import run_bench
from factories import RUN_ID, make_cell, make_result
from s3_server import S3Server
from signing import make_key, write_keys

DIGEST = "ab" * 32


def test_a_record_is_signed_for_its_place_and_its_runs_plan(tmp_path: Path) -> None:
    (path,) = write_keys(tmp_path, "cells")
    ending = run_bench(
        sys.executable, make_cell(), tmp_path, BENCH_SIGNING_KEY_FILE=path, BENCH_RUN_DIGEST=DIGEST
    )  # the tool's own Python has no PyTorch, which is a record as well
    assert ending.result is not None
    assert ending.result.signature is not None
    key = result_key("test-1", make_cell().cell_id, 2, "a1")
    public = [make_key("cells").public]
    plain = Store.open(f"file://{tmp_path}/store")
    trusting = SignedStore.over(plain, trusted=public, run_digests={"test-1": DIGEST})
    assert trusting.get(key) == ending.result.to_json()
    of_another_plan = SignedStore.over(plain, trusted=public, run_digests={"test-1": "cd" * 32})
    ((_, found),) = of_another_plan.try_many([key])
    assert "wrong signature" in str(found)
    assert make_key("cells").to_pem().splitlines()[1].decode() not in ending.output


def test_without_its_key_a_cell_measures_nothing(tmp_path: Path) -> None:
    ending = run_bench(
        sys.executable, make_cell(), tmp_path, BENCH_SIGNING_KEY_FILE="/no/key.pem", BENCH_RUN_DIGEST=DIGEST
    )
    assert (ending.exit_code, ending.result) == (EXIT_USER_ERROR, None)
    assert "error: BENCH_SIGNING_KEY_FILE /no/key.pem: there is no such file" in ending.output


@pytest.mark.parametrize(("trusted", "is_measured"), [(("own", "cells"), True), (("own",), False)])
def test_a_cell_whose_key_the_runner_does_not_trust_measures_nothing_and_says_so(
    tmp_path: Path, trusted: tuple[str, ...], is_measured: bool
) -> None:
    (path,) = write_keys(tmp_path, "cells")
    ids = ",".join(make_key(name).public.key_id for name in trusted)
    ending = run_bench(
        sys.executable,
        make_cell(),
        tmp_path,
        BENCH_SIGNING_KEY_FILE=path,
        BENCH_RUN_DIGEST=DIGEST,
        BENCH_TRUSTED_KEYS=ids,
    )
    assert (ending.result is not None) == is_measured
    if not is_measured:
        assert ending.exit_code == EXIT_UNTRUSTED_KEY
        own, cells = make_key("own").public.key_id, make_key("cells").public.key_id
        assert f"the cells sign with the key {cells}, and the runner trusts {own}; give " in ending.output


def test_a_record_in_the_log_is_signed_as_in_the_store(s3_server: S3Server, capsys: pytest.CaptureFixture[str]) -> None:
    store = SignedStore.over(
        Store.open(f"s3://{s3_server.bucket}"), signer=make_key("cells"), run_digests={RUN_ID: DIGEST}
    )
    s3_server.stop()
    result = make_result()

    assert Delivery(store=store).deliver(result, deadline=time.monotonic()) == EXIT_RESULT_IN_LOG

    found = find_marked_record(capsys.readouterr().err)
    assert found is not None
    key = result_key(RUN_ID, result.cell_id, result.repeat, result.attempt)
    assert store.unseal(key, found) == result.to_json()
