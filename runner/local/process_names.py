"""Names a process of this machine by its program, what it runs and its user, without what may be a secret."""

import pwd
import re
from collections.abc import Sequence
from pathlib import Path

from bench.redaction import hide_secrets
from runner.terminal_text import join_printable

MAX_CHARACTERS = 60
MODULE_OPTION = "-m"
HIDDEN = "(hidden)"


def describe_command(arguments: Sequence[str], name: str) -> str:
    """Return the program with the script or module that it runs: `python3 train.py`, `python3 -m http.server`.

    Nothing else of the command line is shown, as any option and what follows it may be a password. `name`: what the
    kernel calls the process, where it shows no command line.
    """
    if not arguments or not arguments[0]:
        return join_printable(name)
    words = [Path(arguments[0]).name or name]
    rest = list(arguments[1:3])
    if rest[:1] == [MODULE_OPTION] and len(rest) > 1:
        words += rest
    elif rest and not rest[0].startswith("-"):
        words.append(_mask(rest[0]))
    text = hide_secrets(join_printable(" ".join(words)))
    return text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}..."


def _mask(argument: str) -> str:
    """Return an argument without credentials of a URL, without what stands behind `=`, and a path by its last part."""
    if "://" in argument:
        return re.sub(r"://.*", f"://{HIDDEN}", argument)
    key, equals, _ = argument.partition("=")
    return f"{key}={HIDDEN}" if equals else Path(argument).name or argument


def read_command(proc: Path, pid: int) -> tuple[str, ...]:
    """Return the command line of a process; nothing where the kernel does not show it."""
    try:
        text = (proc / str(pid) / "cmdline").read_text(errors="replace")
    except OSError:  # ended meanwhile
        return ()
    return tuple(text.rstrip("\0").split("\0"))


def read_user(proc: Path, pid: int) -> str | None:
    """Return the name of the user that a process belongs to, or the number of one without a name; None if it ended."""
    try:
        owner = (proc / str(pid)).stat().st_uid
    except OSError:
        return None
    try:
        return pwd.getpwuid(owner).pw_name
    except KeyError:
        return str(owner)
