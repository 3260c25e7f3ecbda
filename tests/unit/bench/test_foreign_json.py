"""bench.foreign_json: a text that two readers could read differently is refused, and so is one that has no end."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.foreign_json import (
    MAX_GAP_BYTES,
    ForeignJsonError,
    JsonAmounts,
    check_amounts,
    check_keys,
    decode_json,
    decode_object,
    read_members,
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


@given(st.dictionaries(st.text(), st.lists(st.integers(-(2**63) + 1, 2**63 - 1) | st.booleans() | st.none())))
def test_what_is_written_once_is_read(value: dict[str, Any]) -> None:
    import json

    assert decode_json(json.dumps(value)) == value
    check_keys(json.dumps(value))


AMOUNTS = JsonAmounts(max_containers=3, max_members=2, max_values=6)


@pytest.mark.parametrize("text", ["[[], {}, 1, 1]", '{"a": {"b": 1}}', "[1,1,1,1,1,1]"])
def test_as_much_as_is_allowed_is_read(text: str) -> None:
    check_amounts(text, AMOUNTS)
    check_amounts(text.encode(), AMOUNTS)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("[[],[],{}]", "more than 3 objects and lists"),
        ('{"a" : 1, "b": 1, "c": 1}', "more than 2 members of objects"),
        ("[1,1,1,1,1,1,1]", "more than 6 values"),
    ],
)
def test_more_than_is_allowed_is_refused_before_it_is_read(text: str, what: str) -> None:
    for data in (text, text.encode()):
        with pytest.raises(ForeignJsonError, match=f"^too much in it: {what}$"):
            check_amounts(data, AMOUNTS)


@given(st.lists(st.integers(0, 2 * MAX_GAP_BYTES), max_size=4), st.sampled_from("{}[]"))
def test_a_gap_is_found_wherever_it_is(gaps: list[int], bracket: str) -> None:
    """Compared with what a plain split finds."""
    text = bracket.join(" " * gap for gap in gaps)
    amounts = JsonAmounts(max_containers=9, max_members=9, max_values=9, has_small_parts=True)
    try:
        check_amounts(text.encode(), amounts)
        is_refused = False
    except ForeignJsonError:
        is_refused = True
    if max(gaps, default=0) >= 2 * MAX_GAP_BYTES:
        assert is_refused
    if max(gaps, default=0) < MAX_GAP_BYTES:
        assert not is_refused


def test_a_gap_of_the_limit_is_none_and_one_more_is() -> None:
    amounts = JsonAmounts(max_containers=9, max_members=9, max_values=9, has_small_parts=True)
    for before in (b"", b"[", b"[" + b" " * 100 + b"]"):
        check_amounts(before + b" " * MAX_GAP_BYTES, amounts)
        with pytest.raises(ForeignJsonError, match="too much in it: an object or a list of more than 1,048,576 bytes"):
            check_amounts(before + b" " * (MAX_GAP_BYTES + 1), amounts)


def test_members_are_read_without_the_objects_in_them() -> None:
    assert read_members('{"a": {"b": [1, {"c": 2}]}, "d": [{}, 3], "e": "x"}') == {"a": None, "d": [None, 3], "e": "x"}
    for text in ("[]", "7", '[{"a": 1}]'):
        with pytest.raises(ForeignJsonError, match="no JSON object"):
            read_members(text)
    with pytest.raises(ForeignJsonError, match="the key 'b' stands twice"):
        read_members('{"a": {"b": 1, "b": 2}}')
