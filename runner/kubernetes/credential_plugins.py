"""Bounds a login: a kubeconfig may name a program that gives credentials, and it may fail, hang, or print without end.

The official client starts such a plugin and waits for it, however long that takes.
"""

import logging
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from bench.bounded_work import WorkTooLargeError, WorkTooSlowError, run_bounded

LOGIN_SECONDS = 60.0
"""The command line tools of the clouds take a few seconds."""
BROWSER_LOGIN_SECONDS = 300.0
"""Where somebody sits at a terminal, the plugin may wait for a login in the browser: kubelogin does for 180 s
(--authentication-timeout-sec, https://github.com/int128/kubelogin/blob/master/docs/usage.md)."""

MAX_LOGIN_BYTES = 50 * 2**20
"""Of memory: the client keeps all that a plugin prints, which is 2 KB."""

T = TypeVar("T")


class LoginEndedError(Exception):
    """A login was given up; the message is the reason in words, to stand behind what gives the credentials."""


def find_limit_seconds() -> float:
    """Return how long a login may take: longer where somebody can be asked."""
    is_terminal = sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()
    return BROWSER_LOGIN_SECONDS if is_terminal else LOGIN_SECONDS


def limit_login(log_in: Callable[[], T], limit_seconds: float) -> T:
    """Return what `log_in` returns or raise what it raises; LoginEndedError where it takes longer, or too much memory.

    The programs that it started are ended then. LoginEndedError also where one of them has failed.
    """
    with _collect_complaints() as complaints:
        try:
            found = run_bounded(log_in, limit_seconds=limit_seconds, max_bytes=MAX_LOGIN_BYTES)
        except WorkTooSlowError:
            raise LoginEndedError(
                f"has not answered after {limit_seconds:g} s, or something that it left running keeps its stdout open; "
                "call it by hand to see what it waits for"
            ) from None
        except WorkTooLargeError:
            raise LoginEndedError("prints without end; call it by hand to see what") from None
    if complaints:
        raise LoginEndedError(f"{complaints[0]}; call it by hand to see why")
    return found


@contextmanager
def _collect_complaints() -> Iterator[list[str]]:
    """Yield a list that gets why a plugin failed; nothing of what it printed, which may be a token, is in it.

    The client logs such errors, with all that the plugin has printed, and goes on without credentials.
    """
    handler = _Complaints(logging.ERROR)
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield handler.reasons
    finally:
        root.removeHandler(handler)


class _Complaints(logging.Handler):
    """Keeps the reasons of errors that are logged while a login is awaited."""

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self.reasons: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the reason, if the record is one of the client, which logs to the root."""
        if record.name == "root":
            self.reasons.append(_read_reason(record.getMessage()))


def _read_reason(message: str) -> str:
    """Return in words why a plugin failed, of what the client logged."""
    if code := re.match(r"exec: process returned (-?[0-9]+)", message):
        return f"ended with exit code {code[1]}"
    if missing := re.fullmatch(r"\[Errno [0-9]+\] ([A-Z][A-Za-z ]+): '([^'\n]{1,255})'", message):  # of Popen
        return f"cannot be started: {missing[2]}: {missing[1]}; install it, or write where it is"
    return "answers with what is no credentials"
