"""A request to an API server has an end, whatever the server does."""

from functools import partial
from pathlib import Path

import pytest

from kubeconfigs import write_kubeconfig
from raw_server import Answer, continue_for_long, drip_body, drip_headers, serve
from runner.kubernetes import connection
from runner.kubernetes.api_errors import ApiError
from runner.kubernetes.connection import Connection


def connect(url: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Connection:
    write_kubeconfig(folder / "kubeconfig", url)
    monkeypatch.setenv("KUBECONFIG", str(folder / "kubeconfig"))
    return Connection(context="tests", patience_seconds=0.0)


def watch(asked: Connection) -> list[bytes]:
    with asked.stream("/api/v1/pods", {}, idle_seconds=60.0) as lines:
        return list(lines)


@pytest.mark.parametrize(
    ("answer", "is_watch"),
    [
        (continue_for_long, False),
        (drip_headers, False),
        (drip_body, False),
        (continue_for_long, True),
        (drip_headers, True),
    ],
)
def test_an_answer_that_does_not_end_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Answer, is_watch: bool
) -> None:
    monkeypatch.setattr(connection, "FIRST_ANSWER_SECONDS", 0.5)
    with serve(answer) as url:
        asked = connect(url, tmp_path, monkeypatch)
        ask = partial(watch, asked) if is_watch else partial(asked.request, "get", "/version")
        with pytest.raises(ApiError, match="the API server does not answer: not done after 0.5 s"):
            ask()
