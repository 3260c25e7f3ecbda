"""S3: each error is one message that names its cause and how to fix it, without secrets."""

import json
from pathlib import Path

import pytest

from bench.errors import UserError
from bench.store import Store, StoreError, StoreUnreachable
from s3_server import S3Server
from store_calls import list_calls


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
    for call in list_calls(Store.open(f"s3://{s3_server.bucket}")):
        with pytest.raises(
            StoreError, match=rf"does not accept the credentials \({code}\); check AWS_ACCESS_KEY_ID"
        ) as caught:
            call()
        assert "hunter2" not in str(caught.value)


def test_a_missing_bucket_is_named(s3_server: S3Server) -> None:
    store = Store.open("s3://absent/prefix")
    for call in list_calls(store):
        with pytest.raises(StoreError) as caught:
            call()
        assert f"bucket does not exist at {s3_server.endpoint_url}" in str(caught.value)
        assert "`aws s3 mb s3://absent`" in str(caught.value)


def test_an_endpoint_that_nobody_listens_at_is_named(s3_server: S3Server, few_retries: None) -> None:
    s3_server.stop()
    for call in list_calls(Store.open(f"s3://{s3_server.bucket}")):
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
    with pytest.raises(StoreError, match="Invalid endpoint: localhost; fix the AWS_"):
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
    assert store.get("x") == b"1"


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


def test_a_server_that_stays_busy_is_named_with_its_answer(answers: list[tuple[int, str]], few_retries: None) -> None:
    answers += [(503, "SlowDown")]
    with pytest.raises(StoreError, match=r"^store s3://bkt: .*503 Service Unavailable"):
        Store.open("s3://bkt").put("x", b"1")


def test_what_the_server_repeats_of_the_credentials_is_hidden(
    s3_server: S3Server, answers: list[tuple[int, str]], few_retries: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "token-of-a-session")
    answers += [(500, f"{s3_server.secret_key}</Code><Token-0>token-of-a-session</Token-0>")]
    for call in list_calls(Store.open("s3://bkt")):
        with pytest.raises(StoreError, match="500 Internal Server Error: .*hidden") as caught:
            call()
        assert "token-of-a-session" not in str(caught.value)
        assert s3_server.secret_key not in str(caught.value)


def test_a_server_that_asks_for_patience_may_be_asked_later(answers: list[tuple[int, str]], few_retries: None) -> None:
    answers += [(429, "TooManyRequests")]
    for call in list_calls(Store.open("s3://bkt")):
        with pytest.raises(StoreUnreachable, match="429 Too Many Requests"):
            call()


def test_a_missing_right_is_named(answers: list[tuple[int, str]]) -> None:
    answers += [(403, "AccessDenied")]
    for call in list_calls(Store.open("s3://bkt")):
        with pytest.raises(StoreError, match=r"does not permit this \(status 403\); the account needs the right to"):
            call()


@pytest.mark.parametrize(
    "answer",
    [
        (403, "RequestTimeTooSkewed"),
        (
            400,  # rclone's
            "AccessDenied</Code><Message>The difference between the request time and the server&#39;s time exceeds the "
            "maximum allowed.</Message><Code>",
        ),
    ],
)
def test_a_clock_that_is_wrong_is_named(answers: list[tuple[int, str]], answer: tuple[int, str]) -> None:
    answers += [answer]
    for call in list_calls(Store.open("s3://bkt")):
        with pytest.raises(StoreError, match=r"this machine's clock is wrong, or the server's; set it"):
            call()


@pytest.mark.parametrize("answer", [(301, "PermanentRedirect"), (400, "AuthorizationHeaderMalformed")])
def test_a_bucket_in_another_region_is_named(answers: list[tuple[int, str]], answer: tuple[int, str]) -> None:
    answers += [answer]
    with pytest.raises(StoreError, match=r"not in the region that was asked .* set AWS_REGION"):
        Store.open("s3://bkt").check_writable()
