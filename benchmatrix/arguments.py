"""Reads the arguments of the public functions: a wrong one is one message that names it, before anything is done.

An argument of a wrong type is a TypeError. What is wrong with a text, a number or a file is a UserError.
"""

import math
import numbers
import reprlib
import unicodedata
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import islice
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Never

from bench.errors import UserError

MAX_ITEMS = 100_000
"""Of runs and of files: more is an iterator that does not end."""
MAX_TEXT = 4096
"""Characters of a text, as many as a path may have: more names nothing."""
STEERING = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Categories of characters that no name has, and that would steer the terminal that shows a message: line breaks, ESC,
marks of direction, halves of characters."""
SHOWN = (str, bytes, int, float, bool, type(None))
"""Types whose values messages show; of others they show the type: a value may be large, or fail to be shown."""


def read_text(value: object, name: str, expected: str = "a text") -> str:
    """Return an argument that is a text without steering characters; TypeError if it is no text."""
    if not isinstance(value, str):
        _refuse(name, expected, value)
    if len(value) > MAX_TEXT or any(unicodedata.category(letter) in STEERING for letter in value):
        reason = f"which has more than {MAX_TEXT:,} characters, or one that no name has"
        raise UserError(f"{name}: expected {expected}; got {reprlib.repr(value)}, {reason}")
    return value


def read_optional_text(value: object, name: str) -> str | None:
    """Return an argument that is a text or None; TypeError if it is neither."""
    return None if value is None else read_text(value, name, "a text or None")


def read_flag(value: object, name: str) -> bool:
    """Return an argument that is True or False; TypeError if it is neither."""
    if not isinstance(value, bool):
        _refuse(name, "True or False", value)
    return value


def read_percents(value: object, name: str) -> float | None:
    """Return an argument that is a number of percents or None; TypeError if it is neither."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        _refuse(name, "a number of percents, or None", value)
    try:
        percents = float(value)
    except OverflowError:
        percents = math.inf
    if not 0 < percents <= 100:
        raise UserError(f"{name}: expected percents above 0, 100 at the most, such as 5; got {percents:g}")
    return percents


def read_ids(value: object, name: str) -> list[str] | None:
    """Return an argument that is the id of a run, several or None; TypeError if it is none of these."""
    expected = "the id of a run, several of them, or None"
    if value is None:
        return None
    if isinstance(value, str):
        return [read_text(value, name, expected)]
    return [read_text(item, name, expected) for item in _list_items(value, name, expected)]


def read_path(value: object, name: str, expected: str = "the path of a file") -> str:
    """Return an argument that is a path, a text or a PathLike; TypeError if it is neither."""
    return read_text(fspath(value) if isinstance(value, PathLike) else value, name, expected)


def read_files(value: object, name: str) -> tuple[Path, ...]:
    """Return an argument that is several paths or None; TypeError if it is anything else, such as a single path.

    UserError where it has none: whoever lists keys and finds none would believe that signatures were checked.
    """
    if value is None:
        return ()
    expected = "a list of paths of files, or None"
    files = tuple(Path(read_path(item, name, expected)) for item in _list_items(value, name, expected))
    if not files:
        raise UserError(f"{name}: expected at least one file; give None to check no signatures")
    return files


def read_conditions(value: object, name: str) -> tuple[str, ...]:
    """Return an argument with fields and their values as the command line takes them: `batch_size=64`, `tf32=true`.

    TypeError if it is something else.
    """
    expected = "fields with texts, numbers or truth values, such as {'framework': 'jax'}"
    if not isinstance(value, Mapping):
        _refuse(name, expected, value)
    return tuple(_write_condition(key, wanted, name, expected) for key, wanted in value.items())


def _write_condition(key: object, wanted: object, name: str, expected: str) -> str:
    field = read_text(key, name, expected)
    if "=" in field:
        raise UserError(f"{name}: {reprlib.repr(field)} is no field; expected {expected}")
    if isinstance(wanted, bool):
        return f"{field}={str(wanted).lower()}"
    if not isinstance(wanted, str | numbers.Real):
        _refuse(f"{name}[{reprlib.repr(field)}]", "a text, a number or a truth value", wanted)
    try:  # a number as the values are written that it is held against: 30.0 is 30
        text = str(wanted) if isinstance(wanted, str | numbers.Integral) else f"{float(wanted):g}"
    except (ValueError, OverflowError):  # as in `_show`
        raise UserError(f"{name}[{reprlib.repr(field)}]: the number is too large") from None
    return f"{field}={read_text(text, name, expected)}"


def _list_items(value: object, name: str, expected: str) -> list[Any]:
    if isinstance(value, str | bytes | bytearray | PathLike | Mapping) or not isinstance(value, Iterable):
        _refuse(name, expected, value)
    items = list(islice(value, MAX_ITEMS + 1))
    if len(items) > MAX_ITEMS:
        raise UserError(f"{name}: has more than {MAX_ITEMS:,} items; expected {expected}")
    return items


def _refuse(name: str, expected: str, value: object) -> Never:
    raise TypeError(f"{name}: expected {expected}; got {_show(value)}")


def _show(value: object) -> str:
    kind = type(value).__name__
    if type(value) in SHOWN:
        with suppress(ValueError):  # Python writes no integer of more than 4,300 digits
            return f"{reprlib.repr(value)} ({kind})"
    return f"a value of the type {kind}"
