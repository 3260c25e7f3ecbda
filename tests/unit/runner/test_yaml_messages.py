"""The words of the errors that reading a YAML file ends with, each message once, after the name of the file."""

import pytest

from runner.yaml_input import YamlError, parse_yaml

MESSAGES = [
    (
        "",
        "1: the file is empty, expected a matrix; give it at least the keys 'name' and 'axes'",
    ),
    (
        "a:\n\tb: 1\n",
        "2: is not YAML: found character '\\t' that cannot start any token; indent with spaces",
    ),
    (
        "a: b: c\n",
        "1: is not YAML: mapping values are not allowed here; fix the syntax there or in the line above",
    ),
    (
        "a: 1\n---\nb: 2\n",
        "2: a second document starts; a file holds one document, remove '---'",
    ),
    (
        "a: 1\nb: 2\na: 3\n",
        "3: a: the key stands twice, first in line 1; keep one of the two",
    ),
    (
        "a: &x {b: 1}\nc:\n  <<: *x\n",
        "3: c.<<: merge keys are not read; write the keys out, or, in a matrix, put what is shared under 'defaults'",
    ),
    (
        "a: 1\n? [b]\n: 1\n",
        "2: found a list or mapping as a key; a key is one word",
    ),
    (
        "a: !mine 1\n",
        "1: a: found the tag '!mine', expected a value without a tag; remove the tag",
    ),
    (
        "a: *b\n",
        "1: is not YAML: found undefined alias 'b'; fix the syntax there or in the line above",
    ),
    (
        "a: 1\nb: &b [1, *b]\n",
        "1: is nested too deep, or an alias is inside its own anchor",
    ),
    (
        "a: 010\n",
        "1: a: found '010', which YAML 1.1 does not read as a decimal number; write it without leading zeros, "
        "prefix or colon, or quote it",
    ),
    (
        "a: " + "9" * 5000,
        "1: a: found the number '999999999999999999999999999999999999999999999999999999999999...' of 5000 "
        "digits; write a smaller one",
    ),
    (
        '\na: "\\UFFFFFFFF"\n',
        "1: is not YAML: a number is out of range; write a smaller one",
    ),
    (
        "a: 1\nb: \x00\n",
        "2: is not YAML: it holds the character U+0000; give a text file",
    ),
    (
        "[" * 100_000,
        "1: is nested too deep, or an alias is inside its own anchor",
    ),
]


@pytest.mark.parametrize(("text", "message"), MESSAGES, ids=[message[:40] for _, message in MESSAGES])
def test_an_error_says_what_was_found_and_how_to_mend_it(text: str, message: str) -> None:
    with pytest.raises(YamlError) as caught:
        parse_yaml(text, "demo.yaml")
    assert str(caught.value) == f"demo.yaml:{message}"
