"""Decodes JSON that anybody may have written: no key twice, no number out of bounds, not nested without end.

Python's decoder and pydantic's take the last of two equal keys, so what is read would depend on who reads it: a tool
that takes the first shows another result. RFC 8259 (section 4) calls what such an object means unpredictable.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MAX_INTEGER = 2**63 - 1
"""Integers fit 64 bits, as in the columns of a table and in Go, which most of the other programs are written in."""


MAX_GAP_BYTES = 2**20
"""Of a text whose objects and lists are all small: so many bytes without the start or end of one are none of it."""


@dataclass(frozen=True, kw_only=True)
class JsonAmounts:
    """How much may be in a JSON text. A value of two characters takes hundreds of bytes of memory when it is read."""

    max_containers: int
    """Objects and lists: 1.1 KB each while pydantic reads them."""
    max_members: int
    """Of all objects: 1.8 KB each where each is an error of pydantic, 230 bytes as a value of Python."""
    max_values: int
    """All values: 370 bytes each where pydantic shows them in errors, 32 as a number of Python."""
    has_small_parts: bool = False
    """No object and no list goes on for MAX_GAP_BYTES without another one."""


ANY_AMOUNTS = JsonAmounts(max_containers=200_000, max_members=500_000, max_values=1_000_000)
"""Of a text of no particular kind, such as what a program printed: 250 MB."""


class ForeignJsonError(ValueError):
    """A text is no JSON that can be relied on; the message is the reason in words, in one line without the place."""


def check_amounts(data: bytes | str, amounts: JsonAmounts) -> None:
    """Raise ForeignJsonError where a text has more values than amounts allow, before one of them is made.

    Marks within texts are counted too, so fewer values may be refused: limits leave room for them.
    """
    num_containers = _count(data, "{") + _count(data, "[")
    for what, found, limit in (
        ("objects and lists", num_containers, amounts.max_containers),
        ("members of objects", _count(data, ":"), amounts.max_members),
        ("values", num_containers + _count(data, ","), amounts.max_values),
    ):
        if found > limit:
            raise ForeignJsonError(f"too much in it: more than {limit:,} {what}")
    if amounts.has_small_parts and _has_gap(data):
        raise ForeignJsonError(f"too much in it: an object or a list of more than {MAX_GAP_BYTES:,} bytes")


def _count(data: bytes | str, mark: str) -> int:
    return data.count(mark) if isinstance(data, str) else data.count(mark.encode())


def _has_gap(data: bytes | str) -> bool:
    """Return whether MAX_GAP_BYTES in a row have no bracket. Two steps go as far, so the time grows with the length."""
    start = 0
    brackets = "{}[]" if isinstance(data, str) else (b"{", b"}", b"[", b"]")
    while len(data) - start > MAX_GAP_BYTES:
        last = max(data.rfind(bracket, start, start + MAX_GAP_BYTES) for bracket in brackets)  # type: ignore[arg-type]
        if last < 0:
            return True
        start = last + 1
    return False


def decode_json(data: bytes | str) -> Any:
    """Return the value of a JSON text; raise ForeignJsonError where it is none, or a key stands twice in an object."""
    check_amounts(data, ANY_AMOUNTS)
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


def read_members(data: bytes | str) -> Mapping[str, Any]:
    """Return the members of a JSON object, those that are objects as None; ForeignJsonError as `check_keys`.

    Objects within it are not kept, so a large text takes little memory.
    """
    latest: dict[str, Any] = {}

    def keep_latest(pairs: list[tuple[str, Any]]) -> None:
        nonlocal latest  # the outermost object ends last
        latest = _keep_members(pairs)

    if _decode(json.JSONDecoder(object_pairs_hook=keep_latest), data) is not None:
        raise ForeignJsonError("no JSON object")
    return latest


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
