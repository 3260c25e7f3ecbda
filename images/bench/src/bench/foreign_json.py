"""Decodes JSON that anybody may have written: no key twice, no number out of bounds, not nested without end.

Python's decoder and pydantic's take the last of two equal keys, so what is read would depend on who reads it: a tool
that takes the first shows another result. RFC 8259 (section 4) calls what such an object means unpredictable.
"""

import json
import math
from typing import Any

MAX_INTEGER = 2**63 - 1
"""Integers fit 64 bits, as in the columns of a table and in Go, which most of the other programs are written in."""


class ForeignJsonError(ValueError):
    """A text is no JSON that can be relied on; the message is the reason in words, in one line without the place."""


def decode_json(data: bytes | str) -> Any:
    """Return the value of a JSON text; raise ForeignJsonError where it is none, or a key stands twice in an object."""
    return _decode(_STRICT, data)


def decode_object(data: bytes | str) -> dict[str, Any]:
    """Return the members of a JSON object as `decode_json`; raise ForeignJsonError for any other value."""
    value = decode_json(data)
    if not isinstance(value, dict):
        raise ForeignJsonError("no JSON object")
    return value


def check_keys(data: bytes | str) -> None:
    """Raise ForeignJsonError where a key stands twice in an object; the values are not kept."""
    _decode(_KEYS_ONLY, data)


def _decode(decoder: json.JSONDecoder, data: bytes | str) -> Any:
    try:
        return decoder.decode(data if isinstance(data, str) else data.decode())
    except ForeignJsonError:
        raise
    except UnicodeDecodeError:
        raise ForeignJsonError("no JSON: not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise ForeignJsonError(f"no JSON: {error.msg} at line {error.lineno} column {error.colno}") from None
    except RecursionError:
        raise ForeignJsonError("no JSON: nested too deep") from None
    except ValueError:  # of int(): more digits than Python converts
        raise ForeignJsonError("no JSON: a number is out of range") from None


def _keep_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        _refuse_double(pairs)
    return members


def _drop_members(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) != len(pairs):
        _refuse_double(pairs)


def _refuse_double(pairs: list[tuple[str, Any]]) -> None:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise ForeignJsonError(f"the key {key[:100]!r} stands twice in an object")
        seen.add(key)


def _read_integer(text: str) -> int:
    number = int(text)
    if abs(number) > MAX_INTEGER:
        raise ValueError
    return number


def _read_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError
    return number


def _refuse_constant(name: str) -> None:
    raise ForeignJsonError(f"no JSON: found {name}")


_STRICT = json.JSONDecoder(
    object_pairs_hook=_keep_members,
    parse_int=_read_integer,
    parse_float=_read_float,
    parse_constant=_refuse_constant,
)
_KEYS_ONLY = json.JSONDecoder(object_pairs_hook=_drop_members)
