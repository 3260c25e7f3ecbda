"""Bounds the time of a login: a kubeconfig may name a program that gives credentials, and it may never end.

The official client starts such a plugin and waits for it, however long that takes.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

LOGIN_SECONDS = 60.0
"""The command line tools of the clouds take a few seconds."""
BROWSER_LOGIN_SECONDS = 300.0
"""Where somebody sits at a terminal, the plugin may wait for a login in the browser: kubelogin does for 180 s
(--authentication-timeout-sec, https://github.com/int128/kubelogin/blob/master/docs/usage.md)."""

T = TypeVar("T")


class LoginTooSlow(Exception):  # noqa: N818  (what became of a login, not an error of this program)
    """A login took longer than `find_limit_seconds`; the programs that it started are ended."""


def find_limit_seconds() -> float:
    """Return how long a login may take: longer where somebody can be asked."""
    is_terminal = sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()
    return BROWSER_LOGIN_SECONDS if is_terminal else LOGIN_SECONDS


def limit_login(log_in: Callable[[], T], limit_seconds: float) -> T:
    """Return what `log_in` returns or raise what it raises; LoginTooSlow where it takes longer."""
    ended: list[tuple[T | None, BaseException | None]] = []

    def work() -> None:
        try:
            ended.append((log_in(), None))
        except BaseException as error:  # raised in the thread that waits
            ended.append((None, error))

    thread = threading.Thread(target=work, name="login", daemon=True)
    thread.start()
    thread.join(limit_seconds)
    if not ended:
        _end_children(thread)
        raise LoginTooSlow
    value, error = ended[0]
    if error is not None:
        raise error
    return value  # type: ignore[return-value]  # it is None only where `log_in` returned None


def _end_children(thread: threading.Thread) -> None:
    """End the programs that the thread started and waits for; nobody else's can be among a thread's children."""
    with suppress(OSError, ValueError):  # Linux alone lists them; elsewhere the program ends by itself, or never
        for pid in Path(f"/proc/self/task/{thread.native_id}/children").read_text().split():
            with suppress(OSError):  # it has ended
                os.kill(int(pid), signal.SIGTERM)
