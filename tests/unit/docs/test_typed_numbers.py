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
        ("1,234.5 images", "...1,234.5 images..."),
        ("It is twice as fast.", "...It is twice as fast...."),
        ("Half of it", "...Half of it..."),
        ("4{{ x }}", "...4{}..."),
        ("`64` ms", "...`64` ms..."),
        ('{{ "64 ms" }}', "{{ 64 ms }}"),
        ("{{ 64 }}", "{{ 64 }}"),
        ("{% set x = 64 %}{{ x }}", "{{ 64 }}"),
        ('{{ one(cell, "seconds") ~ "64" }}', "{{ 64 }}"),
        ("Thirteen repeats", "...Thirteen repeats..."),
        ("a tenfold gain", "...a tenfold gain..."),
        ("at ½ of the peak", "...at ½ of the peak..."),
        ("it is x2 as fast", "...it is x2 as fast..."),
        ("[the time](64 ms)", "...[the time](64 ms)..."),
        ('{{ things(64, "repeat") }}', "{{ 64 }}"),
        ('{{ "%s ms".__mod__(64) }}', "{{ 64 }}"),
        ("{% for x in [64] %}{{ x }}{% endfor %}", "{{ 64 }}"),
        ("{% with x = 64 %}{{ x }}{% endwith %}", "{{ 64 }}"),
        ("{% macro m(x=64) %}{{ x }}{% endmacro %}{{ m() }}", "{{ 64 }}"),
    ],
)
def test_a_number_in_the_text_or_shown_as_a_constant_is_found(template: str, found: str) -> None:
    assert list_typed_numbers(template, []) == [found]


def test_listed_phrases_are_allowed_as_they_stand_over_the_end_of_a_line_too() -> None:
    assert list_typed_numbers("at batch\n64", ["batch 64"]) == []
    assert list_typed_numbers("at batch 640", ["batch 64"]) == ["...at batch 640..."]
    assert list_typed_numbers("at batch 64.5", ["batch 64"]) == ["...at batch 64.5..."]
    assert list_typed_numbers("0,95 % of it", ["95 %"]) == ["...0,95 % of it..."]
    assert list_typed_numbers("by 3-95 %", ["95 %"]) == ["...by 3-95 %...", "...by 3-95 %..."]
    assert list_typed_numbers("64 ms at batch 64", ["batch 64"]) == ["...64 ms at _..."]


def test_a_phrase_that_the_text_does_not_have_is_listed() -> None:
    assert list_unused_phrases("at batch 64", ["batch 64", "batch 6", "224 px"]) == ["batch 6", "224 px"]
