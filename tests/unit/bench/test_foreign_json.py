"""bench.foreign_json: a text that two readers could read differently is refused, and so is one that has no end."""

import pytest

from bench.foreign_json import (
    ForeignJsonError,
    decode_json,
    decode_object,
)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "no JSON: Expecting value at line 1 column 1"),
        (b"\xff", "no JSON: not UTF-8 text"),
        (b"[" * 100_000, "no JSON: nested too deep"),
        (b"[NaN]", "no JSON: found NaN"),
        (b"1e400", "no JSON: a number is out of range"),
        (b'[{"x": {"a" : 1, "a": 2}}]', "the key 'a' stands twice in an object"),
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
