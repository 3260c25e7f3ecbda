"""Checking values of a YAML file against types: what is expected in words, and the advice how to fix a value."""

from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter

from runner.yaml_input import ExpectedError, NodeValidator, YamlError, parse_yaml

STRICT = ConfigDict(strict=True, allow_inf_nan=False, extra="forbid")


def check_even(text: str) -> str:
    if len(text) % 2:
        raise ExpectedError("an even number of letters")
    return text


class Part(BaseModel):
    model_config = STRICT
    size: Annotated[int, Field(ge=1, le=9)] = 1


class Whole(BaseModel):
    model_config = STRICT
    parts: dict[Literal["left", "right"], Part] = {}
    pair: tuple[int, int] | None = None
    word: Annotated[str, AfterValidator(check_even)] = ""


def catch_error(annotation: Any, text: str) -> YamlError:
    config = None if annotation is Whole else STRICT
    validator: NodeValidator[Any] = NodeValidator(TypeAdapter(annotation, config=config), documentation="the page")
    with pytest.raises(YamlError) as caught:
        validator.validate(parse_yaml(text, "demo.yaml"))
    return caught.value


@pytest.mark.parametrize(
    ("annotation", "text", "message"),
    [
        (int, "'7'", "found the text '7', expected a whole number; write 7 without quotes"),
        (int, "1e3", "found the text '1e3', expected a whole number; write 1000"),
        (int, "7.0", "found the number 7.0, expected a whole number; write 7"),
        (int, "7.5", "found the number 7.5, expected a whole number"),
        (int, "yes", "found `yes`, which YAML 1.1 reads as true, expected a whole number"),
        (int | None, "a", "found the text 'a', expected a whole number, or null"),
        (
            float,
            "'0.5'",
            "found the text '0.5', expected a finite number; write 0.5 without quotes",
        ),
        (float, ".inf", "found the number .inf, expected a finite number"),
        (
            Annotated[int, Field(ge=2, lt=5)],
            "5",
            "found the number 5, expected a whole number, at least 2, below 5",
        ),
        (
            Annotated[int, Field(ge=2)],
            "'1'",
            "found the text '1', expected a whole number, at least 2",
        ),
        (str, "12", "found the number 12, expected a text; put it in quotes"),
        (
            str,
            "on",
            "found `on`, which YAML 1.1 reads as true, expected a text; put it in quotes",
        ),
        (str, "~", "found nothing (`~`), expected a text"),
        (str, "[a]", "found a list, expected a text; write one value"),
        (
            Annotated[str, Field(min_length=1)],
            "''",
            "found the text '', expected a text that is not empty",
        ),
        (bool, "1", "found the number 1, expected true or false"),
        (
            Literal["cpu", "gpu"],
            "GPU",
            "found the text 'GPU', expected 'cpu' or 'gpu'; did you mean 'gpu'?",
        ),
        (Literal["cpu", "gpu"], "tpx", "found the text 'tpx', expected 'cpu' or 'gpu'"),
    ],
)
def test_a_refused_value_is_shown_with_what_was_expected(annotation: Any, text: str, message: str) -> None:
    error = catch_error(annotation, text)
    assert str(error) == f"demo.yaml:1: {message}"


@pytest.mark.parametrize(
    ("text", "line", "key", "message"),
    [
        ("parts:\n  left: {sise: 1}", 2, "parts.left.sise", "unknown key; did you mean 'size'?"),
        (
            "parts:\n  lft: {}",
            2,
            "parts.lft",
            "found the key lft, expected 'left' or 'right'; did you mean 'left'?",
        ),
        (
            "parts:\n  left:\n    size: 10",
            3,
            "parts.left.size",
            "found the number 10, expected a whole number, at least 1, at most 9",
        ),
        ("pair: [1]", 1, "pair", "found a list of 1, expected one more value"),
        ("pair: [1, 2, 3]", 1, "pair", "found a list of 3, expected at most 2"),
        ("pair:\n- 1\n- a", 3, "pair[1]", "found the text 'a', expected a whole number"),
        ("word: odd", 1, "word", "found the text 'odd', expected an even number of letters"),
    ],
)
def test_an_error_in_the_depth_has_its_own_place(text: str, line: int, key: str, message: str) -> None:
    error = catch_error(Whole, text)
    assert (error.line, error.key) == (line, key)
    assert str(error) == f"demo.yaml:{line}: {key}: {message}"


def test_null_is_a_value_or_an_absent_key() -> None:
    tree = parse_yaml("size: ~", "demo.yaml")
    assert NodeValidator(TypeAdapter(Part), is_null_absent=True).validate(tree) == Part(size=1)
    with pytest.raises(YamlError) as caught:
        NodeValidator(TypeAdapter(Part)).validate(tree)
    assert (caught.value.key) == ("size")
