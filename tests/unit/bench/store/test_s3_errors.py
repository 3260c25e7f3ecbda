"""S3: each error is one message that names its cause and how to fix it, without secrets."""

import json
import subprocess
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from bench.errors import TransientError, UserError
from bench.exit_codes import EXIT_USER_ERROR
from bench.store import Store, StoreError, StoreUnreachable, StoreUntrusted
from s3_server import S3Server
from store_calls import list_calls


def fail_every_call(store: Store, words: str, kind: type[StoreError] = StoreError) -> None:
    for call in list_calls(store):
        with pytest.raises(kind) as caught:
            call()
        message = str(caught.value)
        assert words in message
        assert message.startswith(f"store {store.url}: ")
        assert "\n" not in message
        assert "hunter2" not in message
        assert isinstance(caught.value, TransientError) == issubclass(kind, StoreUnreachable)


def test_store_errors_are_the_users_to_fix() -> None:
    assert issubclass(StoreError, UserError)


@pytest.mark.parametrize(
    ("variable", "code"),
    [("AWS_SECRET_ACCESS_KEY", "SignatureDoesNotMatch"), ("AWS_ACCESS_KEY_ID", "InvalidAccessKeyId")],
)
def test_wrong_credentials_are_named_but_not_shown(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch, variable: str, code: str
) -> None:
    monkeypatch.setenv(variable, "hunter2hunter2hunter2")
    words = f"does not accept the credentials ({code}); check AWS_ACCESS_KEY_ID"
    fail_every_call(Store.open(f"s3://{s3_server.bucket}"), words)


def test_a_missing_bucket_is_named(s3_server: S3Server) -> None:
    words = f"bucket does not exist at {s3_server.endpoint_url}; make it with `aws s3 mb s3://absent`"
    fail_every_call(Store.open("s3://absent/prefix"), words)


def test_an_endpoint_that_nobody_listens_at_is_named(s3_server: S3Server, few_retries: None) -> None:
    s3_server.stop()
    words = f"{s3_server.endpoint_url} cannot be reached (Connection refused)"
    fail_every_call(Store.open(f"s3://{s3_server.bucket}"), words, StoreUnreachable)


def test_a_host_that_does_not_exist_is_named(
    s3_server: S3Server, few_retries: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://absent.invalid:9000")
    words = "http://absent.invalid:9000 cannot be reached (its name cannot be resolved)"
    fail_every_call(Store.open("s3://bkt"), words, StoreUnreachable)


@pytest.mark.usefixtures("few_retries")
def test_a_certificate_that_is_not_accepted_is_named(open_served: Callable[..., Store], tmp_path: Path) -> None:
    request = "openssl req -x509 -newkey rsa:2048 -nodes -keyout both -out cert -days 2 -subj /CN=other"
    subprocess.run(request.split(), cwd=tmp_path, capture_output=True, check=True)
    with (tmp_path / "both").open("ab") as both:
        both.write((tmp_path / "cert").read_bytes())
    store = open_served(BaseHTTPRequestHandler, tmp_path / "both")
    fail_every_call(store, f"the certificate of {store.backend.place} is not accepted (", StoreUntrusted)


@pytest.mark.parametrize(
    ("status", "body", "words", "kind"),
    [
        (503, "<Code>SlowDown</Code>", "answers with status 503 (SlowDown)", StoreUnreachable),
        (429, "<Code>TooManyRequests</Code>", "answers with status 429 (TooManyRequests)", StoreUnreachable),
        (403, "<Code>AccessDenied</Code>", "does not permit this (status 403); the account needs", StoreError),
        (
            403,
            "<Code>RequestTimeTooSkewed</Code>",
            "this machine's clock is wrong, or the server's; set it",
            StoreError,
        ),
        (
            400,  # rclone's
            "<Code>AccessDenied</Code><Message>The difference between the request time and the server&#39;s time "
            "exceeds the maximum allowed.</Message>",
            "this machine's clock is wrong, or the server's; set it",
            StoreError,
        ),
        (400, "<Code>ExpiredToken</Code><Token-0>hunter2</Token-0>", "credentials (ExpiredToken)", StoreError),
        (301, "<Code>PermanentRedirect</Code>", "the bucket is not in the region that was asked", StoreError),
        (400, "<Code>AuthorizationHeaderMalformed</Code>", "the bucket is not in the region", StoreError),
    ],
)
@pytest.mark.usefixtures("few_retries")
def test_what_a_server_answers_is_explained(
    answers: list[tuple[int, str]], status: int, body: str, words: str, kind: type[StoreError]
) -> None:
    answers.append((status, body))
    fail_every_call(Store.open("s3://bkt"), words, kind)


def test_absent_credentials_are_named(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(StoreError, match="no AWS credentials found; set AWS_ACCESS_KEY_ID"):
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
    assert list(store.get_listed(store.list_keys(""))) == [("x", b"1")]
    monkeypatch.setenv("AWS_PROFILE", "absent")
    with pytest.raises(StoreError, match="absent"):
        Store.open("s3://bkt")


def test_credentials_that_cannot_be_renewed_are_named(
    s3_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticket = tmp_path / "ticket.json"
    keys = {"AccessKeyId": s3_server.access_key, "SecretAccessKey": s3_server.secret_key, "SessionToken": "t"}
    ticket.write_text(json.dumps({"Version": 1, **keys, "Expiration": "2020-01-01T00:00:00Z"}))
    use_profile(monkeypatch, tmp_path / "config", s3_server, f"credential_process = cat {ticket}")
    store = Store.open(f"s3://{s3_server.bucket}")
    ticket.unlink()
    for call in (store.check_writable, store.list_run_ids):
        with pytest.raises(StoreError, match=r"AWS credentials cannot be renewed \(.*ticket\.json.*\); log in again"):
            call()


@pytest.mark.parametrize("value", ["hunter2\n", " hunter2", "hünter2", "hunter2\x01"])
@pytest.mark.parametrize("name", ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"])
def test_a_key_that_no_header_can_carry_is_refused_by_name(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(StoreError, match=f"{name} has a space, a line break") as caught:
        Store.open("s3://bkt")
    assert "nter2" not in str(caught.value)


@pytest.mark.parametrize(
    "endpoint",
    ["localhost", "http://host:99999", "http://a b", "http://me:hunter2@h_h", "http://me:hunter2@host\n", "http://["],
)
def test_an_endpoint_that_is_none_is_one_message(
    s3_server: S3Server, few_retries: None, monkeypatch: pytest.MonkeyPatch, endpoint: str
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    with pytest.raises(StoreError) as caught:
        Store.open("s3://bkt").check_writable()
    assert "\n" not in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_the_region_is_that_of_aws_region_before_boto3s_own(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-north-1")
    assert "eu-north-1" in Store.open("s3://bkt").backend.place
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    assert "eu-central-1" in Store.open("s3://bkt").backend.place


def test_what_the_library_alone_refuses_is_one_message(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_CONDITIONAL_PUT", "garbage")
    with pytest.raises(StoreError, match=r"store s3://bkt: .*AWS_\*"):
        Store.open("s3://bkt")


def test_a_container_with_a_bad_setting_ends_with_the_exit_code_of_a_users_error(s3_server: S3Server) -> None:
    lines = (
        "import os, sys; os.environ['AWS_SESSION_TOKEN'] = 'x\\n'",
        "from bench.store import Store",
        "from bench.errors import UserError",
        "try: Store.open('s3://b')",
        "except UserError: sys.exit(2)",
    )
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], check=False)
    assert done.returncode == EXIT_USER_ERROR


def make_handler(requests: Callable[[BaseHTTPRequestHandler], None]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requests(self)

        def log_message(self, *_: object) -> None:
            pass

    return Handler


def reply(handler: BaseHTTPRequestHandler, body: bytes, *, num_sent: int | None = None) -> None:
    start = int(handler.headers.get("Range", "bytes=0-")[6:].partition("-")[0])
    handler.send_response(206 if start else 200)
    handler.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
    body = body[start:]
    handler.send_header("ETag", '"1"')
    handler.send_header("Last-Modified", "Sun, 22 Nov 2026 10:00:00 GMT")
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body[:num_sent])
    handler.close_connection = True


def test_one_key_with_two_slashes_does_not_end_a_listing(open_served: Callable[..., Store]) -> None:
    entry = "<Contents><Key>{}</Key><Size>2</Size><LastModified>2026-11-22T10:00:00.000Z</LastModified></Contents>"
    keys = ("runs/r1/run.json", "runs/r1//x", "runs/r1/")
    page = f"<ListBucketResult><Name>b</Name>{''.join(map(entry.format, keys))}</ListBucketResult>".encode()
    store = open_served(make_handler(lambda handler: reply(handler, page)))
    assert list(store.list_keys("runs")) == ["runs/r1/run.json"]
    assert [found.problem for found in store.list_objects("runs")][1] == "the part '' is not allowed"


@pytest.mark.parametrize("page", [b"<!DOCTYPE html><p>Hello<br>", b"<html><p>Hello</p></html>"])
@pytest.mark.usefixtures("few_retries")
def test_a_web_page_is_no_listing(open_served: Callable[..., Store], page: bytes) -> None:
    store = open_served(make_handler(lambda handler: reply(handler, page)))
    for call in (store.list_run_ids, lambda: list(store.list_keys("runs"))):
        with pytest.raises(StoreError, match="and not as S3 does; is it the address of the S3 server"):
            call()


def test_an_answer_that_is_cut_is_asked_for_again(open_served: Callable[..., Store]) -> None:
    lengths = [5, 0]

    def answer(handler: BaseHTTPRequestHandler) -> None:
        reply(handler, b"0123456789", num_sent=lengths.pop() if lengths else None)

    assert open_served(make_handler(answer)).get("x") == b"0123456789"
