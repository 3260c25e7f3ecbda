"""S3: puts outlive servers that restart, break off or are busy, and Ctrl-C ends them."""

import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from bench.store import Store
from s3_server import S3Server
from store_calls import DEADLINE_SECONDS, wait_until

KEY = "runs/r1/run.json"  # of the kind that may be large


def test_a_put_outlives_a_restart_of_the_server(s3_server: S3Server, s3_store: Store) -> None:
    s3_server.stop()
    with ThreadPoolExecutor(1) as pool:
        put = pool.submit(s3_store.put, "x", b"1")
        time.sleep(0.5)
        assert not put.done()
        s3_server.start()
        put.result(DEADLINE_SECONDS)
    assert s3_store.get("x") == b"1"


def test_a_put_outlives_a_server_killed_in_the_middle_of_it(s3_server: S3Server, s3_store: Store) -> None:
    data, bucket = bytes(range(256)) * 250_000, s3_server.root / s3_server.bucket
    with ThreadPoolExecutor(1) as pool:
        for _ in range(20):  # until the server is killed before it has the object
            put = pool.submit(s3_store.put, KEY, data)
            wait_until(lambda: any(bucket.rglob(".rclone_temp_put_*")) or put.done())  # noqa: B023
            s3_server.stop()
            was_cut = not put.done() and not (bucket / KEY).exists()
            s3_server.start()
            put.result(DEADLINE_SECONDS)
            if was_cut:
                break
            (bucket / KEY).unlink()
        else:
            pytest.fail("all puts were too quick")
    assert list(s3_store.list_keys("")) == [KEY]
    assert s3_store.get(KEY) == data


def test_a_busy_server_is_asked_again(answers: list[tuple[int, str]]) -> None:
    answers += [(503, ""), (500, ""), (429, ""), (200, "")]
    Store.open("s3://bkt").put("x", b"1")
    assert answers == [(200, "")]


def test_an_interrupt_ends_a_put_that_is_being_retried(s3_server: S3Server) -> None:
    s3_server.stop()
    program = (
        "import sys; from bench.store import Store; store = Store.open(sys.argv[1]); "
        "print('go', flush=True); store.put('x', b'')"
    )
    command = [sys.executable, "-c", program, f"s3://{s3_server.bucket}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "go\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=DEADLINE_SECONDS)  # the put would go on for two minutes
    assert stderr.splitlines()[-1] == "KeyboardInterrupt"
