"""typed_numbers: which numbers of a template count as typed by hand."""

import pytest

from typed_numbers import list_typed_numbers, list_unused_phrases


@pytest.mark.parametrize(
    "template",
    [
        "VGG16 in fp32 on an H200, in [one table](../2026-11-21-h100/README.md).",
        'It takes {{ time(gpu.summary(model="conv6", batch_size=64)) }}.',
        "{# measured 64 ms #}It is fast.",
        '{% set cell = gpu.summary(batch_size=64) %}{{ one(cell, "seconds") }}',
        '{{ names["64 px"] }}',
        '{{ rows.query("num_steps_taken < 6") | length }}',
        "{% if rows | length > 6 %}It is long.{% endif %}",
    ],
)
def test_names_addresses_and_arguments_are_no_typed_numbers(template: str) -> None:
    assert list_typed_numbers(template, []) == []


@pytest.mark.parametrize(
    ("template", "found"),
    [
        ("It takes 64 ms.", "...It takes 64 ms...."),
        ("It is twice as fast.", "...It is twice as fast...."),
        ("Half of it", "...Half of it..."),
        ("{{ 64 }}", "{{ 64 }}"),
        ("Thirteen repeats", "...Thirteen repeats..."),
    ],
)
def test_a_number_in_the_text_or_shown_as_a_constant_is_found(template: str, found: str) -> None:
    assert list_typed_numbers(template, []) == [found]


def test_listed_phrases_are_allowed_as_they_stand_and_those_that_are_not_there_are_listed() -> None:
    assert list_typed_numbers("at batch\n64", ["batch 64"]) == []
    assert list_typed_numbers("64 ms at batch 64", ["batch 64"]) == ["...64 ms at _..."]
    assert list_unused_phrases("at batch 64", ["batch 64", "batch 6", "224 px"]) == ["batch 6", "224 px"]
