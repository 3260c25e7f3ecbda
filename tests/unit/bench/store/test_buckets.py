"""Buckets: each error is one message that says how to fix it, without secrets; puts outlive servers, and Ctrl-C not."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from itertools import product
from pathlib import Path

import pytest

import benchmatrix
from bench.errors import TransientError, UserError
from bench.store import Store, StoreError, StoreUnreachable
from s3_server import S3Server
from store_calls import Answers, list_calls, serve
from waiting import DEADLINE_SECONDS

SKEWED = "The difference between the request time and the server&#39;s time exceeds the maximum allowed."  # rclone's


def fail_every_call(store: Store, words: str, kind: type[StoreError] = StoreError) -> None:
    assert issubclass(kind, UserError)
    for call in list_calls(store):
        with pytest.raises(kind) as caught:
            call()
        message = str(caught.value)
        assert words in message
        assert message.startswith(f"store {store.url}: ")
        assert "\n" not in message
        assert "hunter2" not in message
        assert isinstance(caught.value, TransientError) == issubclass(kind, StoreUnreachable)


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
    words = f"bucket does not exist at {s3_server.endpoint_url}; make it or name another"
    fail_every_call(Store.open("s3://absent/prefix"), words)


@pytest.mark.usefixtures("few_retries")
def test_an_endpoint_that_cannot_be_reached_is_named(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    s3_server.stop()
    words = f"{s3_server.endpoint_url} cannot be reached (Connection refused)"
    fail_every_call(Store.open(f"s3://{s3_server.bucket}"), words, StoreUnreachable)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://absent.invalid:9000")
    words = "http://absent.invalid:9000 cannot be reached (its name cannot be resolved)"
    fail_every_call(Store.open("s3://bkt"), words, StoreUnreachable)


@pytest.mark.usefixtures("few_retries", "s3_server")
def test_a_certificate_that_is_not_accepted_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request = "openssl req -x509 -newkey rsa:2048 -nodes -keyout both -out cert -days 2 -subj /CN=other"
    subprocess.run(request.split(), cwd=tmp_path, capture_output=True, check=True)
    with (tmp_path / "both").open("ab") as both:
        both.write((tmp_path / "cert").read_bytes())
    with serve([(200, "")], tmp_path / "both") as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        fail_every_call(Store.open("s3://b"), f"the certificate of {url} is not accepted (")


@pytest.mark.parametrize(
    ("status", "body", "words", "kind"),
    [
        (503, "<Code>SlowDown</Code>", "answers with status 503 (SlowDown)", StoreUnreachable),
        (429, "<Code>TooManyRequests</Code>", "answers with status 429 (TooManyRequests)", StoreUnreachable),
        (403, "<Code>AccessDenied</Code>", "does not permit this (status 403); the account needs", StoreError),
        (403, "<Code>RequestTimeTooSkewed</Code>", "this machine's clock is wrong, or the server's", StoreError),
        (400, f"<Code>AccessDenied</Code><Message>{SKEWED}</Message>", "clock is wrong, or the server's", StoreError),
        (400, "<Code>ExpiredToken</Code><Token-0>hunter2</Token-0>", "credentials (ExpiredToken)", StoreError),
        (
            403,
            "<Code>QuotaExceeded</Code><Message>Your quota\nis used up</Message>",
            "(QuotaExceeded: Your quota is used up)",
            StoreError,
        ),
        (403, "<Code>KMS.DisabledException</Code>", "refuses this with status 403 (KMS.DisabledException)", StoreError),
        (403, "<html><p>Blocked</p></html>", "answers with status 403, and not as S3 does", StoreError),
        (301, "<Code>PermanentRedirect</Code>", "the bucket is not in the region that was asked", StoreError),
        (400, "<Code>AuthorizationHeaderMalformed</Code>", "the bucket is not in the region", StoreError),
    ],
)
@pytest.mark.usefixtures("few_retries")
def test_what_a_server_answers_is_explained(
    answers: Answers, status: int, body: str, words: str, kind: type[StoreError]
) -> None:
    answers.append((status, f"<Error>{body}</Error>" if "<Code>" in body else body))
    fail_every_call(Store.open("s3://bkt"), words, kind)


@pytest.mark.parametrize("page", ["<!DOCTYPE html><p>Hello<br>", "<html><p>Hello</p></html>"])
@pytest.mark.usefixtures("few_retries")
def test_a_web_page_is_no_listing(answers: Answers, page: str) -> None:
    answers.append((200, page))
    store = Store.open("s3://bkt")
    for call in (store.list_run_ids, lambda: list(store.list_keys("runs"))):
        with pytest.raises(StoreError, match="and not as S3 does; is it the address of the S3 server"):
            call()


def test_one_key_with_two_slashes_does_not_end_a_listing(answers: Answers) -> None:
    entry = "<Contents><Key>{}</Key><Size>2</Size><LastModified>2026-11-22T10:00:00.000Z</LastModified></Contents>"
    keys = ("runs/r1/run.json", "runs/r1//x", "runs/r1/")
    answers.append((200, f"<ListBucketResult><Name>b</Name>{''.join(map(entry.format, keys))}</ListBucketResult>"))
    store = Store.open("s3://b")
    assert list(store.list_keys("runs")) == ["runs/r1/run.json"]
    assert [found.problem for found in store.list_objects("runs")][1] == "the part '' is not allowed"


@pytest.mark.parametrize(
    ("url", "variables", "words"),
    [
        (
            "s3://bkt",
            {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""},
            "no AWS credentials found; set AWS_ACCESS_KEY_ID",
        ),
        ("s3://bkt", {"AWS_ACCESS_KEY_ID": "hunter2\n"}, "AWS_ACCESS_KEY_ID (found by env) has a space, a line break"),
        ("s3://bkt", {"AWS_SECRET_ACCESS_KEY": " hünter2"}, "AWS_SECRET_ACCESS_KEY (found by env) has a space"),
        ("s3://bkt", {"AWS_SESSION_TOKEN": "hunter2\x01"}, "AWS_SESSION_TOKEN (found by env) has a space"),
        ("s3://bkt", {"AWS_ENDPOINT_URL": "http://me:hunter2@127.0.0.1:9000"}, ", without credentials"),
        ("s3://bkt", {"AWS_ENDPOINT_URL": "http://host:99999"}, "Port out of range"),
        ("s3://bkt", {"AWS_PROFILE": "absent"}, "absent"),
        ("s3://bkt", {"AWS_CONDITIONAL_PUT": "garbage"}, "the settings come from the variables AWS_*"),
        ("az://container/prefix", {"AZURE_STORAGE_ACCOUNT_NAME": ""}, "Account must be specified; the settings come"),
    ],
)
def test_settings_that_cannot_be_right_are_one_message(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch, url: str, variables: dict[str, str], words: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value) if value else monkeypatch.delenv(name, raising=False)
    with pytest.raises(StoreError) as caught:
        Store.open(url)
    assert str(caught.value).startswith(f"store {url}: ")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "nter2" not in str(caught.value)


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


def test_the_bucket_is_a_part_of_the_host_where_the_profile_says_so(
    answers: Answers, s3_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = "aws_access_key_id = a\naws_secret_access_key = b\ns3 =\n  addressing_style = virtual"
    monkeypatch.setenv("http_proxy", os.environ["AWS_ENDPOINT_URL"])  # knows every name
    use_profile(monkeypatch, tmp_path / "config", s3_server, keys)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://oss.example")
    answers.append((403, "<Error><Code>PathStyleDomainForbidden</Code><Message>{host}</Message></Error>"))
    fail_every_call(Store.open("s3://bkt"), "(PathStyleDomainForbidden: bkt.oss.example)")


def test_a_forked_process_is_told_to_be_spawned(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
    store = Store.open(f"s3://{s3_server.bucket}")
    store.put("x", b"1")
    with multiprocessing.get_context("fork").Pool(1) as pool:
        for work, url in product((_list_keys, _read_cells), (store.url, "gs://b", "az://b")):
            with pytest.raises(UserError, match=r'was forked .*get_context\("spawn"\)'):
                pool.apply(work, (url,))
    assert list(store.list_keys("")) == ["x"]


def _list_keys(url: str) -> list[str]:
    return list(Store.open(url).list_keys(""))


def _read_cells(url: str) -> None:
    benchmatrix.load_cells("run", url)


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


def test_the_region_is_that_of_aws_region_before_boto3s_own(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-north-1")
    assert "eu-north-1" in repr(Store.open("s3://bkt").backend)
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    assert "eu-central-1" in repr(Store.open("s3://bkt").backend)


def test_the_prefix_of_a_bucket_is_part_of_every_object_name(s3_server: S3Server) -> None:
    Store.open(f"s3://{s3_server.bucket}/team/a/").put("x", b"1")
    assert (s3_server.root / s3_server.bucket / "team" / "a" / "x").read_bytes() == b"1"


def test_a_busy_server_is_asked_again(answers: Answers) -> None:
    answers += [(503, ""), (500, ""), (429, ""), (200, "")]
    Store.open("s3://bkt").put("x", b"1")
    assert answers == [(200, "")]


def test_a_server_without_conditional_writes_gets_a_plain_one(
    answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.store.buckets.RETRY_SECONDS", 0)
    answers += [(501, "<Error><Code>NotImplemented</Code></Error>"), (200, "")]
    assert Store.open("s3://bkt").put_new("x", b"1")
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
