"""Tests that a case can be drawn again, and that every tree can be written as a file."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz.mutations import dump_json, odd_values


@given(st.lists(odd_values, min_size=20, max_size=40))
def test_no_two_documents_share_an_odd_value(values: list[Any]) -> None:
    containers = [id(value) for value in values if isinstance(value, list | dict)]
    assert len(containers) == len(set(containers))


@pytest.mark.parametrize("text", ["\ud800", "a\udcff", "\U0001f600", "ü"])
def test_half_a_character_can_be_written_as_json(text: str) -> None:
    assert json.loads(dump_json({text: [text]})) == {text: [text]}
