"""Documents that other programs wrote: valid ones are read, of any other the reason is given in one line."""

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.schema import InvalidDocumentError, Result, Run, read_result, read_run
from factories import make_result, make_run
from schema_cases import change_document

MAX_REASON_CHARACTERS = 300


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "no JSON: EOF while parsing"),
        (make_result().to_json()[:-20], "no JSON: EOF while parsing"),
        (b"\xff\xfe", "no JSON: "),
        (b"[" * 10_000, "no JSON: "),
        (b"[]", "no Result: Input should be an object"),
        (make_run().to_json(), "no Result: cell_id: Field required (and "),
    ],
    ids=["empty", "cut off", "binary", "deep", "array", "run"],
)
def test_what_is_no_result_is_refused_with_the_reason(data: bytes, reason: str) -> None:
    with pytest.raises(InvalidDocumentError) as caught:
        read_result(data)
    assert str(caught.value).startswith(reason)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        ("repeat", 0, "no Result: repeat: Input should be greater than or equal to 1"),
        ("cell.batch_size", 0, "no Result: cell.batch_size: Input should be greater than or equal to 1"),
        ("samples.step_seconds", [0.1, -1.0, 0.1], "no Result: samples.step_seconds.1: "),
        ("cell_id", "conv6-00000000", "no Result: cell_id: 'conv6-00000000' is not the id of its cell"),
    ],
)
def test_the_first_error_is_named_by_its_place(path: str, value: Any, reason: str) -> None:
    with pytest.raises(InvalidDocumentError) as caught:
        read_result(change_document(make_result(), path, value).encode())
    assert str(caught.value).startswith(reason)


@pytest.mark.parametrize(("read", "document"), [(read_result, make_result()), (read_run, make_run())])
def test_another_version_is_the_reason_whatever_else_is_wrong(
    read: Callable[[bytes], Result | Run], document: Result | Run
) -> None:
    content = json.loads(document.to_json()) | {"surprise": 1, "schema_version": 1}
    del content["run_id"]
    with pytest.raises(InvalidDocumentError) as caught:
        read(json.dumps(content).encode())
    assert str(caught.value) == "schema_version is 1, this version reads 2"


def test_a_reason_is_cut_to_a_length_that_fits_a_table() -> None:
    text = change_document(make_result(), "schema_version", "x\n" * 1_000)
    with pytest.raises(InvalidDocumentError) as caught:
        read_result(text.encode())
    assert (len(str(caught.value)), str(caught.value)[-1]) == (MAX_REASON_CHARACTERS, "…")


@given(st.integers(0, len(make_result().to_json()) - 1), st.binary(min_size=1, max_size=4))
def test_damage_anywhere_raises_no_other_error(place: int, damage: bytes) -> None:
    data = make_result().to_json()
    with suppress(InvalidDocumentError):
        read_result(data[:place] + damage + data[place + len(damage) :])


def test_the_signature_of_an_earlier_version_is_ignored() -> None:
    signed = make_result().to_json()[:-2] + b',\n "signature": "ed25519 0123 xyz"\n}'
    assert read_result(signed).to_json() == make_result().to_json()
