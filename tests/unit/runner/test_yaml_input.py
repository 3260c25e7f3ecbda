"""What is wrong in a YAML file: its line and key, what was found, what was expected, and how to mend it."""

from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter

from runner.yaml_input import YamlError, parse_yaml, validate

STRICT = ConfigDict(strict=True, allow_inf_nan=False, extra="forbid")


def check_even(text: str) -> str:
    if len(text) % 2:
        raise ValueError("expected an even number of letters")
    return text


class Part(BaseModel):
    model_config = STRICT
    size: Annotated[int, Field(ge=1, le=9)] = 1


class Whole(BaseModel):
    model_config = STRICT
    parts: dict[Literal["left", "right"], Part] = {}
    pair: tuple[int, int] | None = None
    word: Annotated[str, AfterValidator(check_even)] = ""
    cost: float | None = None


def check(text: str, model: type[BaseModel] = Whole) -> Any:
    return validate(parse_yaml(text.encode(), "demo.yaml", expected="a whole"), TypeAdapter(model), "the page")


ANY, MEND = "cannot start any token", "; fix the syntax there or in the line above"
TOO_DEEP = "1: is nested too deep, an alias is inside its own anchor, or a number has too many digits"

ERRORS = [
    ("", "1: the file is empty, expected a whole"),
    ("cost: 1\nword: !include x.yaml", "2: word: found the tag '!include'; leave it out"),
    ("\nword: !!bool maybe", "2: word: found 'maybe', which is not what its tag says; leave the tag out"),
    ("- 1", "1: found no keys, expected a whole"),
    ("a:\n\tb: 1\n", f"2: is not YAML: while scanning for the next token found character '\\t' that {ANY}{MEND}"),
    ("a: b: c\n", f"1: is not YAML: mapping values are not allowed here{MEND}"),
    ("a: 1\n---\nb: 2\n", f"2: is not YAML: expected a single document in the stream but found another document{MEND}"),
    ("a: 1\nb: 2\na: 3\n", "3: a: the key stands twice, first in line 1; keep one of the two"),
    ("a: 1\n? [b]\n: 1\n", "2: found a list or mapping as a key; a key is one word"),
    ("a: 1\nb: \x00\n", "2: is not UTF-8 text; give a YAML file and save it as UTF-8"),
    ("a: 1\nb: &b [1, *b]\n", TOO_DEEP),
    ("[" * 100_000, TOO_DEEP),
    ("parts: 1", "1: parts: found the number 1, expected keys with values"),
    ("parts:\n  left: {sise: 1}", "2: parts.left.sise: unknown key; did you mean 'size'?"),
    ("parts:\n  lft: {}", "2: parts.lft: found the key lft, expected 'left' or 'right'; did you mean 'left'?"),
    ("parts:\n  left:\n    size: 10", "3: parts.left.size: found the number 10, expected less than or equal to 9"),
    ("parts: {left: {size: '7'}}", "found the text '7', expected a valid integer"),
    ("parts: {left: {size: 1:30}}", "found the text '1:30', expected a valid integer"),
    ("parts: {left: {size: 010}}", "found the number 010, expected a valid integer"),
    ("parts: {left: {size: 7.0}}", "found the number 7.0, expected a valid integer"),
    ("parts: {left: {size: 7.5}}", "found the number 7.5, expected a valid integer"),
    ("parts: {left: {size: true}}", "found `true`, expected a valid integer"),
    ("parts: {left: {size: yes}}", "found the text 'yes', expected a valid integer"),
    ("pair: [1, 2, 3]", "1: pair: found a list, expected at most 2 items, not 3"),
    ("pair:\n- 1\n- a", "3: pair[1]: found the text 'a', expected a valid integer"),
    ("word: odd", "1: word: found the text 'odd', expected an even number of letters"),
    ("word: 12", "found the number 12, expected a text"),
    ("word: [a]", "found a list, expected a text"),
    ("cost: '0.5'", "found the text '0.5', expected a valid number"),
    ("cost: .inf", "found the number .inf, expected a finite number"),
]


@pytest.mark.parametrize(("text", "message"), ERRORS, ids=[message[:40] for _, message in ERRORS])
def test_an_error_says_where_it_is_what_was_found_and_how_to_mend_it(text: str, message: str) -> None:
    with pytest.raises(YamlError) as caught:
        check(text)
    assert str(caught.value).startswith("demo.yaml:")
    assert str(caught.value).endswith(message)


def test_a_key_with_null_counts_as_absent() -> None:
    assert check("parts: {left: {size: ~}}").parts["left"] == Part(size=1)


def test_words_are_read_as_yaml_1_2_reads_them() -> None:
    whole = check("{word: no, cost: 1e3}")
    assert (whole.word, whole.cost, check("word: on").word) == ("no", 1000.0, "on")


def test_a_missing_key_is_named_with_the_page_that_explains_it() -> None:
    class Needy(BaseModel):
        part: Any

    with pytest.raises(YamlError, match="^demo.yaml:1: part: is missing; the page says what it takes"):
        check("other: 1", Needy)
