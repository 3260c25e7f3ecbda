"""What an API server, or what stands in its place, says of a refusal: on one line, and without the credentials."""

import json
from pathlib import Path

import pytest
import urllib3

from bench.errors import TransientError
from bench.redaction import remember_secret
from kubeconfigs import write_kubeconfig
from runner.kubernetes.connection import ApiError, read_refusal, read_watch_error, to_user_error

TOKEN = "token-of-a-service-account"


def refuse(status: int, body: object) -> ApiError:
    text = body if isinstance(body, str) else json.dumps(body)
    response = urllib3.HTTPResponse(status=status, reason="Refused", preload_content=False)
    return read_refusal("get", response, text.encode())


@pytest.mark.parametrize("body", [{"message": f"no: Bearer {TOKEN}"}, f"<pre>Authorization: Bearer {TOKEN}</pre>"])
@pytest.mark.parametrize("status", [400, 401, 500, 503])
def test_a_token_that_the_server_repeats_is_hidden(status: int, body: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.redaction._remembered", set())
    remember_secret(TOKEN)
    error = refuse(status, body)
    assert "Bearer (hidden)" in error.message
    assert TOKEN not in str(to_user_error(error, "c"))


def test_a_message_of_several_lines_is_one() -> None:
    message = str(to_user_error(refuse(403, {"message": "no\n\nerror: all is well\r\n"}), "c"))
    assert message.startswith("--on c: no error: all is well;")
    assert "\n" not in message


@pytest.mark.parametrize("code", [403, 500])
def test_an_error_in_a_watch_is_one_line_without_the_token(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.redaction._remembered", set())
    remember_secret(TOKEN)
    status = {"code": code, "message": f"no\nerror: all is well: {TOKEN}"}
    assert read_watch_error(status).message == "no error: all is well: (hidden)"


def test_a_server_that_is_busy_is_named_with_its_status() -> None:
    error = to_user_error(refuse(429, {"message": "slow down"}), "c")
    assert isinstance(error, TransientError)
    assert str(error).startswith("--on c: the API server answers 429: slow down;")


def test_refused_credentials_name_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_kubeconfig(tmp_path / "kubeconfig", context="c")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    message = str(to_user_error(refuse(401, {"message": "Unauthorized"}), "c"))
    assert f"which may have expired: {tmp_path}/kubeconfig: user `me`; log in again" in message


def test_half_a_character_in_a_refusal_is_replaced() -> None:
    assert refuse(403, {"message": "no \ud800"}).message == "no ?"


def test_an_error_in_a_watch_without_a_message_has_words() -> None:
    error = read_watch_error({"code": 403})
    assert (error.reason, error.message) == ("", "the API server ended a watch with an error and no message (code 403)")


def test_of_a_long_refusal_the_beginning_is_told() -> None:
    message = refuse(422, {"message": "Job is invalid: " + "x" * 20_000}).message
    assert (message[:16], len(message)) == ("Job is invalid: ", 4000)
