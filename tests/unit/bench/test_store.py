"""The store against directories and a real S3 server: what it keeps, what it refuses, and what it says about faults."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from bench.errors import UserError
from bench.store import (
    KeyMissing,
    ResultKey,
    Store,
    StoreError,
    cancelled_key,
    cancelled_prefix,
    parse_result_key,
    result_key,
    results_prefix,
    run_key,
)
from s3_server import S3Server

CELL_ID = "conv6-pytorch-cpu-train-fp32-eager-b64-0a1b2c3d"
DEADLINE_SECONDS = 30


@pytest.fixture(params=["file", "s3", "s3-prefix"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "file":
        return Store.open(f"file://{tmp_path}/results")
    server = request.getfixturevalue("s3_server")
    return Store.open(f"s3://{server.bucket}" + ("/team/a b" if request.param == "s3-prefix" else ""))


@pytest.fixture
def s3_store(s3_server: S3Server) -> Store:
    return Store.open(f"s3://{s3_server.bucket}")


@pytest.fixture
def few_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.store.backend.RETRY_SECONDS", 0.1)
    monkeypatch.setattr("bench.store.backend.PUT_RETRY_SECONDS", 0.1)


@pytest.fixture
def mounted_directory(tmp_path: Path) -> Iterator[Path]:
    directory = tmp_path / "mounted"
    directory.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(directory)]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("a tmpfs cannot be mounted here")
    yield directory
    subprocess.run(["umount", "--lazy", str(directory)], check=True)


def wait_until(is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.005)


# What every store keeps


@pytest.mark.parametrize("data", [b"", b"{}", bytes(range(256)) * 40_000], ids=["empty", "small", "10 MB"])
def test_what_is_put_is_got(store: Store, data: bytes) -> None:
    store.put("runs/r1/run.json", data)
    assert data == store.get("runs/r1/run.json")


def test_a_missing_object_is_named(store: Store) -> None:
    with pytest.raises(KeyMissing, match=r"no object 'runs/r1/run\.json'"):
        store.get("runs/r1/run.json")


def test_a_folder_is_no_object(store: Store) -> None:
    store.put("runs/r1/run.json", b"{}")
    with pytest.raises(KeyMissing):
        store.get("runs/r1")


def test_a_second_put_replaces_the_object(store: Store) -> None:
    store.put("runs/r1/run.json", b"first and longer")
    store.put("runs/r1/run.json", b"second")
    assert b"second" == store.get("runs/r1/run.json")
    assert ["runs/r1/run.json"] == list(store.list_keys(""))


def test_listing_is_recursive_and_stays_in_its_folder(store: Store) -> None:
    for key in (
        "runs/r1/run.json",
        "runs/r1/results/c/1-a.json",
        "runs/r1/results/c/2-b.json",
        "runs/r10/results/c/1-a.json",
    ):
        store.put(key, b"{}")
    assert {"runs/r1/results/c/1-a.json", "runs/r1/results/c/2-b.json"} == set(store.list_keys("runs/r1/results/"))
    assert {"runs/r1/results/c/1-a.json", "runs/r1/results/c/2-b.json"} == set(store.list_keys("runs/r1/results"))
    assert 4 == len(list(store.list_keys("")))
    assert [] == list(store.list_keys("runs/r2/"))


def test_run_ids_are_the_names_of_folders_in_order(store: Store) -> None:
    assert [] == store.list_run_ids()
    for key in (
        "runs/r2/run.json",
        "runs/r1/results/c/1-a.json",
        "runs/notes.txt",
        "runs/Not a run/x",
        "other/r3/run.json",
    ):
        store.put(key, b"{}")
    assert ["r1", "r2"] == store.list_run_ids()


def test_many_objects_are_got(store: Store) -> None:
    objects = {f"runs/r1/results/c/{i}-a.json": str(i).encode() * i for i in range(1, 301)}
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(store.put, objects.keys(), objects.values()))
    assert objects == dict(store.get_many(store.list_keys("runs/r1/results/"), num_parallel=7))
    assert {} == dict(store.get_many([]))


def test_a_missing_object_among_many_is_named(store: Store) -> None:
    store.put("a", b"1")
    with pytest.raises(KeyMissing, match="no object 'b'"):
        list(store.get_many(["a", "b"]))


def test_a_reader_never_sees_part_of_an_object(store: Store) -> None:
    versions = [bytes([i]) * 8_000_000 for i in range(4)]
    seen = []
    with ThreadPoolExecutor(1) as pool:
        writer = pool.submit(lambda: list(map(store.put, ["big"] * 4, versions)))
        while not writer.done():
            try:
                seen.append(store.get("big"))
            except KeyMissing:
                continue
        writer.result()
    assert len(seen) > 1
    assert set(seen) <= set(versions)


def test_the_check_leaves_nothing_behind(store: Store, tmp_path: Path) -> None:
    store.check_writable()
    assert [] == list(store.list_keys(""))
    assert [] == [path for path in (tmp_path / "results").rglob("*")]


@pytest.mark.parametrize(
    "key", ["", "/a", "a/", "a//b", "..", "../a", "a/../b", ".", "a/./b", "a\\b", "a\nb", "a\0b", "a.json#1", "a#2/b"]
)
def test_hostile_keys_are_refused(tmp_path: Path, key: str) -> None:
    store = Store.open(f"file://{tmp_path}/results")
    for call in (lambda: store.put(key, b""), lambda: store.get(key), lambda: list(store.get_many([key]))):
        with pytest.raises(ValueError, match="is not allowed"):
            call()
    assert [] == list((tmp_path / "results").iterdir())


def test_a_hostile_prefix_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is not allowed"):
        list(Store.open(f"file://{tmp_path}/results").list_keys("../"))


def test_awkward_keys_of_others_can_be_read(store: Store) -> None:
    for key in ("notes/.hidden", "notes/50% + é & more.txt", "notes/a#b"):
        store.put(key, key.encode())
    assert {key: key.encode() for key in store.list_keys("notes")} == dict(store.get_many(store.list_keys("notes")))
    assert {"notes/.hidden", "notes/50% + é & more.txt", "notes/a#b"} == set(store.list_keys("notes"))


# URLs


def test_a_relative_directory_is_made_where_the_process_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = Store.open("file://results/a b")
    monkeypatch.chdir("/")
    store.put("x", b"1")
    assert b"1" == (tmp_path / "results" / "a b" / "x").read_bytes()
    assert "file://results/a b" == store.url


def test_the_prefix_of_a_bucket_is_part_of_every_object_name(s3_server: S3Server) -> None:
    Store.open(f"s3://{s3_server.bucket}/team/a/").put("x", b"1")
    assert b"1" == (s3_server.root / s3_server.bucket / "team" / "a" / "x").read_bytes()


def test_a_plain_path_is_refused_with_the_url_to_write() -> None:
    with pytest.raises(StoreError, match="write file://some/results"):
        Store.open("some/results")


def test_an_unknown_scheme_is_refused_with_those_known() -> None:
    with pytest.raises(StoreError, match="'ftp://' is unknown; known are file, s3, gs, az"):
        Store.open("ftp://host/results")


@pytest.mark.parametrize(
    "url", ["file://", "s3://", "s3:///a", "s3://bkt?region=x", "s3://bkt/../a", "s3://bkt//a", "gs://"]
)
def test_urls_that_name_no_place_are_refused(url: str) -> None:
    with pytest.raises(StoreError):
        Store.open(url)


def test_credentials_in_a_url_are_refused_and_not_repeated() -> None:
    with pytest.raises(StoreError) as caught:
        Store.open("s3://AKIA1:hunter2@bkt")
    assert "hunter2" not in str(caught.value)


def test_credentials_in_the_endpoint_are_refused_and_not_repeated(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://me:hunter2@127.0.0.1:9000")
    with pytest.raises(StoreError, match="holds credentials") as caught:
        Store.open("s3://bkt")
    assert "hunter2" not in str(caught.value)


def test_settings_that_a_cloud_lacks_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_USE_EMULATOR"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(StoreError, match=r"Account must be specified; the settings come from .* AZURE_\* variables"):
        Store.open("az://container/prefix")


# Directories: faults and killed writers


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
    assert [] == list(store.list_keys(""))
    (mounted_directory / "ballast").unlink()
    store.put("x", bytes(100_000))
    assert bytes(100_000) == store.get("x")


def test_a_directory_that_may_not_be_written_is_named(mounted_directory: Path) -> None:
    store = Store.open(f"file://{mounted_directory}/results")
    subprocess.run(["mount", "-o", "remount,ro", str(mounted_directory)], check=True)
    for call in (store.check_writable, lambda: Store.open(f"file://{mounted_directory}/other")):
        with pytest.raises(StoreError, match=f"no permission to use {mounted_directory}"):
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
    writer = subprocess.Popen([sys.executable, "-c", program, url])
    wait_until(lambda: any((tmp_path / "results").glob("big*")))
    writer.kill()
    writer.wait()
    assert ["big#1"] == os.listdir(tmp_path / "results")  # else it was too quick, or obstore stages elsewhere
    store = Store.open(url)
    assert [] == list(store.list_keys(""))
    store.put("big", b"1")
    assert [("big", b"1")] == list(store.get_many(store.list_keys("")))


# S3: faults of the server and the network


def test_a_put_outlives_a_restart_of_the_server(s3_server: S3Server, s3_store: Store) -> None:
    s3_server.stop()
    with ThreadPoolExecutor(1) as pool:
        put = pool.submit(s3_store.put, "x", b"1")
        time.sleep(0.5)
        assert not put.done()
        s3_server.start()
        put.result(DEADLINE_SECONDS)
    assert b"1" == s3_store.get("x")


def test_a_put_outlives_a_server_killed_in_the_middle_of_it(s3_server: S3Server, s3_store: Store) -> None:
    data = bytes(range(256)) * 250_000
    with ThreadPoolExecutor(1) as pool:
        put = pool.submit(s3_store.put, "big", data)
        wait_until(lambda: any((s3_server.root / s3_server.bucket).glob(".rclone_temp_put_*")))
        s3_server.stop()
        assert not put.done()
        assert not (s3_server.root / s3_server.bucket / "big").exists()
        s3_server.start()
        put.result(DEADLINE_SECONDS)
    assert ["big"] == list(s3_store.list_keys(""))
    assert data == s3_store.get("big")


def call_all(store: Store) -> list[Callable[[], object]]:
    return [
        store.check_writable,
        lambda: store.put("x", b"1"),
        lambda: store.get("x"),
        lambda: list(store.get_many(["x"])),
        lambda: list(store.list_keys("")),
        store.list_run_ids,
    ]


@pytest.mark.parametrize(
    ("variable", "code"),
    [("AWS_SECRET_ACCESS_KEY", "SignatureDoesNotMatch"), ("AWS_ACCESS_KEY_ID", "InvalidAccessKeyId")],
)
def test_wrong_credentials_are_named_but_not_shown(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch, variable: str, code: str
) -> None:
    monkeypatch.setenv(variable, "hunter2hunter2hunter2")
    for call in call_all(Store.open(f"s3://{s3_server.bucket}")):
        with pytest.raises(
            StoreError, match=rf"does not accept the credentials \({code}\); check AWS_ACCESS_KEY_ID"
        ) as caught:
            call()
        assert "hunter2" not in str(caught.value)


def test_a_missing_bucket_is_named(s3_server: S3Server) -> None:
    store = Store.open("s3://absent/prefix")
    for call in call_all(store):
        with pytest.raises(StoreError) as caught:
            call()
        assert (
            f"store s3://absent/prefix: the bucket does not exist at {s3_server.endpoint_url}; make it with "
            "`aws s3 mb s3://absent` or name another with --store"
        ) == str(caught.value)


def test_an_endpoint_that_nobody_listens_at_is_named(s3_server: S3Server, few_retries: None) -> None:
    s3_server.stop()
    for call in call_all(Store.open(f"s3://{s3_server.bucket}")):
        with pytest.raises(StoreError, match=rf"{s3_server.endpoint_url} cannot be reached \(Connection refused\)"):
            call()


def test_a_host_that_does_not_exist_is_named(
    s3_server: S3Server, few_retries: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://absent.invalid:9000")
    with pytest.raises(StoreError, match=r"http://absent.invalid:9000 cannot be reached \(failed to lookup address"):
        Store.open("s3://bkt").check_writable()


def test_an_endpoint_that_is_no_url_is_named(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "localhost")
    with pytest.raises(StoreError, match="Invalid endpoint: localhost; mend the AWS_"):
        Store.open("s3://bkt")


def test_absent_credentials_are_named(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(StoreError, match="no AWS credentials found; set AWS_ACCESS_KEY_ID"):
        Store.open("s3://bkt")


def test_an_unknown_profile_is_named(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "absent")
    with pytest.raises(StoreError, match="absent"):
        Store.open("s3://bkt")


def use_profile(monkeypatch: pytest.MonkeyPatch, config: Path, server: S3Server, credentials: str) -> None:
    config.write_text(f"[profile lab]\nendpoint_url = {server.endpoint_url}\nregion = us-east-1\n{credentials}\n")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    monkeypatch.setenv("AWS_PROFILE", "lab")


def test_endpoint_and_credentials_come_from_a_profile(
    s3_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = f"aws_access_key_id = {s3_server.access_key}\naws_secret_access_key = {s3_server.secret_key}"
    use_profile(monkeypatch, tmp_path / "config", s3_server, keys)
    store = Store.open(f"s3://{s3_server.bucket}")
    store.put("x", b"1")
    assert b"1" == store.get("x")


def test_credentials_that_cannot_be_renewed_are_named(
    s3_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticket = tmp_path / "ticket.json"
    keys = {"AccessKeyId": s3_server.access_key, "SecretAccessKey": s3_server.secret_key, "SessionToken": "t"}
    ticket.write_text(json.dumps({"Version": 1, **keys, "Expiration": "2020-01-01T00:00:00Z"}))
    use_profile(monkeypatch, tmp_path / "config", s3_server, f"credential_process = cat {ticket}")
    store = Store.open(f"s3://{s3_server.bucket}")
    ticket.unlink()
    with pytest.raises(StoreError, match=r"the AWS credentials cannot be renewed \(.*ticket\.json.*\); log in again"):
        store.check_writable()


def test_an_interrupt_ends_a_put_that_is_being_retried(s3_server: S3Server) -> None:
    s3_server.stop()
    program = (
        "import sys; from bench.store import Store; store = Store.open(sys.argv[1]); "
        "print('go', flush=True); store.put('x', b'')"
    )
    command = [sys.executable, "-c", program, f"s3://{s3_server.bucket}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert "go\n" == process.stdout.readline()
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=DEADLINE_SECONDS)  # the put would go on for two minutes
    assert "KeyboardInterrupt" == stderr.splitlines()[-1]


# Answers that rclone does not give


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch, s3_server: S3Server) -> Iterator[list[tuple[int, str]]]:
    """A list of (status, S3 error code) that the endpoint answers with in turn, the last one for ever."""
    queue: list[tuple[int, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, code = queue.pop(0) if len(queue) > 1 else queue[0]
            body = f"<Error><Code>{code}</Code></Error>".encode()
            self.send_response(status)
            self.send_header("ETag", '"0"')
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = do_POST = answer  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
    yield queue
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_busy_server_is_asked_again(answers: list[tuple[int, str]]) -> None:
    answers += [(503, "SlowDown"), (500, "InternalError"), (429, "TooManyRequests"), (200, "")]
    Store.open("s3://bkt").put("x", b"1")
    assert [(200, "")] == answers


def test_a_server_that_stays_busy_is_named_with_its_answer(answers: list[tuple[int, str]], few_retries: None) -> None:
    answers += [(503, "SlowDown")]
    with pytest.raises(StoreError, match=r"^store s3://bkt: .*503 Service Unavailable"):
        Store.open("s3://bkt").put("x", b"1")


def test_a_missing_right_is_named(answers: list[tuple[int, str]]) -> None:
    answers += [(403, "AccessDenied")]
    for call in call_all(Store.open("s3://bkt")):
        with pytest.raises(StoreError, match=r"does not permit this \(status 403\); the account needs the right to"):
            call()


@pytest.mark.parametrize("answer", [(301, "PermanentRedirect"), (400, "AuthorizationHeaderMalformed")])
def test_a_bucket_in_another_region_is_named(answers: list[tuple[int, str]], answer: tuple[int, str]) -> None:
    answers += [answer]
    with pytest.raises(StoreError, match=r"not in the region that was asked .* set AWS_DEFAULT_REGION"):
        Store.open("s3://bkt").check_writable()


# Keys


def test_keys_follow_the_layout() -> None:
    assert "runs/smoke-1/run.json" == run_key("smoke-1")
    assert "runs/smoke-1/results/" == results_prefix("smoke-1")
    assert "runs/smoke-1/cancelled/ab12.json" == cancelled_key("smoke-1", "ab12")
    assert f"runs/smoke-1/results/{CELL_ID}/3-ab12.json" == result_key("smoke-1", CELL_ID, 3, "ab12")


def test_a_result_key_is_parsed_into_its_parts() -> None:
    key = f"runs/smoke-1/results/{CELL_ID}/12-pod-7.json"
    assert ResultKey(run_id="smoke-1", cell_id=CELL_ID, repeat=12, attempt="pod-7") == parse_result_key(key)


@pytest.mark.parametrize(
    "key",
    [
        "runs/smoke-1/run.json",
        f"runs/smoke-1/results/{CELL_ID}/1.json",
        f"runs/smoke-1/results/{CELL_ID}/0-a.json",
        f"runs/smoke-1/results/{CELL_ID}/01-a.json",
        f"runs/smoke-1/results/{CELL_ID}/1-a.json.bak",
        f"runs/smoke-1/results/{CELL_ID}/1-a.json\n",
        f"runs/smoke-1/results/{CELL_ID}/x/1-a.json",
        f"runs/smoke/1/results/{CELL_ID}/1-a.json",
        f"x/runs/smoke-1/results/{CELL_ID}/1-a.json",
        "runs/smoke-1/results/no-hash/1-a.json",
        "",
    ],
)
def test_foreign_keys_are_no_result_keys(key: str) -> None:
    assert parse_result_key(key) is None


@pytest.mark.parametrize(
    ("run_id", "cell_id", "repeat", "attempt"),
    [
        ("../x", CELL_ID, 1, "a"),
        ("r", "../x", 1, "a"),
        ("r", CELL_ID, 0, "a"),
        ("r", CELL_ID, 1, "A/b"),
        ("", CELL_ID, 1, "a"),
    ],
)
def test_result_keys_of_hostile_parts_are_refused(run_id: str, cell_id: str, repeat: int, attempt: str) -> None:
    with pytest.raises(ValueError, match="is no key of a result"):
        result_key(run_id, cell_id, repeat, attempt)


@pytest.mark.parametrize("run_id", ["", "..", "a/b", "A", "a b"])
def test_run_keys_of_hostile_names_are_refused(run_id: str) -> None:
    for make_key in (run_key, results_prefix, cancelled_prefix):
        with pytest.raises(ValueError, match="is no run id"):
            make_key(run_id)


def test_store_errors_are_the_users_to_mend() -> None:
    assert issubclass(StoreError, UserError)
