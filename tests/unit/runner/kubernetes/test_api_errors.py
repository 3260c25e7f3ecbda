"""What an API server, or what stands in its place, says of a refusal: on one line, and without the credentials."""

import json
from pathlib import Path

import pytest
import urllib3

from bench.errors import TransientError
from bench.redaction import remember_secret
from runner.kubernetes.api_errors import ApiError, BusyError, read_refusal, read_watch_error, to_user_error

TOKEN = "token-of-a-service-account"


def refuse(status: int, body: object) -> ApiError:
    text = body if isinstance(body, str) else json.dumps(body)
    response = urllib3.HTTPResponse(status=status, reason="Refused", preload_content=False)
    return read_refusal("get", response, text.encode())


@pytest.mark.parametrize("body", [{"message": f"no: Bearer {TOKEN}"}, f"<pre>Authorization: Bearer {TOKEN}</pre>"])
@pytest.mark.parametrize("status", [400, 401, 500, 503])
def test_a_token_that_the_server_repeats_is_hidden(status: int, body: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.redaction._secrets", set())
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
    monkeypatch.setattr("bench.redaction._secrets", set())
    remember_secret(TOKEN)
    status = {"code": code, "reason": f"No\n{TOKEN}", "message": f"no\nerror: all is well: {TOKEN}"}
    error = read_watch_error(status)
    assert (error.reason, error.message) == ("No (hidden)", "no error: all is well: (hidden)")


def test_a_server_that_is_busy_is_named_with_its_status() -> None:
    error = to_user_error(refuse(429, {"message": "slow down"}), "c")
    assert isinstance(error, TransientError)
    assert str(error).startswith("--on c: the API server answers 429: slow down;")


@pytest.mark.parametrize(
    ("user", "words"),
    [
        ({"client-certificate": "a", "client-key": "b"}, "its client certificate (client-certificate or"),
        ({"client-certificate-data": "YQ==", "client-key-data": "YQ=="}, "its client certificate (client-certificate"),
        ({"client-certificate": "a", "client-key": "b", "token": "t"}, "its token (token, tokenFile, exec or"),
        ({"exec": {"command": "cat"}}, "its token (token, tokenFile, exec or auth-provider)"),
    ],
)
def test_refused_credentials_are_named_as_what_they_are(
    user: dict[str, object], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "lab", "user": "me"}}],
        "clusters": [{"name": "lab", "cluster": {"server": "https://127.0.0.1"}}],
        "users": [{"name": "other", "user": {"token": "t"}}, {"name": "me", "user": user}],
    }
    (tmp_path / "kubeconfig").write_text(json.dumps(document))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    message = str(to_user_error(refuse(401, {"message": "Unauthorized"}), "c"))
    assert f"which may have expired: {tmp_path}/kubeconfig: user `me`: {words}" in message


def test_a_refusal_of_millions_of_values_is_told_by_its_start() -> None:
    """It is no Status, and is not decoded."""
    error = refuse(403, '{"message": "m", "reason": [' + "{}," * 1_000_000 + "7]}")
    assert error.message.startswith('{"message": "m", "reason": [{},{}')
    assert len(error.message) <= 300


def test_half_a_character_in_a_refusal_is_replaced() -> None:
    assert refuse(403, {"message": "no \ud800"}).message == "no ?"


@pytest.mark.parametrize("message", [None, "", {"b": 1}, ["a"], 7])
def test_an_error_in_a_watch_without_a_message_has_words(message: object) -> None:
    error = read_watch_error({"code": 403, "reason": message, "message": message})
    assert (error.reason, error.message) == ("", "the API server ended a watch with an error and no message (code 403)")


@pytest.mark.parametrize("code", [True, "410", None, 500, {}])
def test_an_error_in_a_watch_whose_code_is_none_is_one_of_the_server(code: object) -> None:
    error = read_watch_error({"code": code, "message": "x"})
    assert (type(error), error.status) == (BusyError, 500)
