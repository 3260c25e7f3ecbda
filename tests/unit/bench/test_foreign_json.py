"""bench.foreign_json: a text that two readers could read differently is refused, and so is one that has no end."""

from collections.abc import Callable
from typing import Any

import pytest

from bench.foreign_json import (
    ForeignJsonError,
    check_keys,
    decode_json,
    decode_object,
)

DOUBLE = [
    ('{"a": 1, "a": 1}', "the key 'a' stands twice in an object"),
    ('{"a": 1, "b": 2, "\\u0061": 3}', "the key 'a' stands twice in an object"),
    ('[{"x": {"a" : 1, "a": 2}}]', "the key 'a' stands twice in an object"),
    ('{"' + "k" * 5_000 + '": 1, "' + "k" * 5_000 + '": 2}', f"the key '{'k' * 100}' stands twice in an object"),
]


@pytest.mark.parametrize(("text", "reason"), DOUBLE, ids=["flat", "escaped", "deep", "long"])
@pytest.mark.parametrize("read", [decode_json, check_keys])
def test_a_key_that_stands_twice_is_named(read: Callable[[str], Any], text: str, reason: str) -> None:
    with pytest.raises(ForeignJsonError) as caught:
        read(text)
    assert str(caught.value) == reason


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "no JSON: Expecting value at line 1 column 1"),
        (b"\xff", "no JSON: not UTF-8 text"),
        (b"[" * 100_000, "no JSON: nested too deep"),
        (b'{"a":' * 100_000, "no JSON: nested too deep"),
        (b"[NaN]", "no JSON: found NaN"),
        (b"[-Infinity]", "no JSON: found -Infinity"),
        (b"1e400", "no JSON: a number is out of range"),
        (b"9223372036854775808", "no JSON: a number is out of range"),
        (b"9" * 5_000, "no JSON: a number is out of range"),
        (b"{} {}", "no JSON: Extra data at line 1 column 4"),
    ],
    ids=lambda value: repr(value[:12]),
)
def test_what_no_other_program_reads_in_the_same_way_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(ForeignJsonError) as caught:
        decode_json(data)
    assert str(caught.value) == reason


def test_an_object_is_asked_for_and_nothing_else_given() -> None:
    assert decode_object(b'{"a": [1, 2.5, null]}') == {"a": [1, 2.5, None]}
    with pytest.raises(ForeignJsonError, match="^no JSON object$"):
        decode_object(b"[]")
