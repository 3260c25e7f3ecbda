"""A wrong argument of the Python API is one message that names it, raised before anything is done."""

import traceback
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

import benchmatrix
from fuzz.python_arguments import RIGHT, WRONG, arguments, list_arguments, list_functions

ROOT = Path(__file__).parents[2]
MAX_CHARACTERS = 500
NUM_EXAMPLES = 10


@pytest.fixture(autouse=True)
def in_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """The right calls name a stored run by its path in the repository."""
    monkeypatch.chdir(ROOT)


def call(function: str, argument: str, value: Any) -> None:
    """Call the function with one argument that may be wrong. Fail unless what it raises is as documented."""
    try:
        list_functions()[function](**(RIGHT[function] | {argument: value}))
    except (benchmatrix.UserError, TypeError) as error:
        check_error(error, argument)


def check_error(error: Exception, argument: str) -> None:
    assert {unicodedata.category(letter) for letter in str(error)} & {"Cc", "Cf", "Cs", "Zl", "Zp"} == set()
    assert len(str(error)) <= MAX_CHARACTERS
    if isinstance(error, TypeError):
        assert argument in str(error).partition(":")[0]
        assert Path(traceback.extract_tb(error.__traceback__)[-1].filename).parent.name == "benchmatrix"


def test_every_argument_of_every_public_function_is_tried() -> None:
    assert {(name, argument) for name, given in RIGHT.items() for argument in given} == set(list_arguments())


@pytest.mark.parametrize("function", RIGHT)
def test_the_right_calls_are_right(function: str) -> None:
    assert list_functions()[function](**RIGHT[function]) is not None


@pytest.mark.parametrize("make", WRONG.values(), ids=WRONG)
def test_a_wrong_argument_is_one_message_that_names_it(make: Callable[[], Any]) -> None:
    for function, argument in list_arguments():
        call(function, argument, make())


@pytest.mark.parametrize(("function", "argument"), [*list_arguments()])
def test_any_argument_is_taken_or_told_of(function: str, argument: str) -> None:
    @settings(derandomize=True, max_examples=NUM_EXAMPLES, database=None, deadline=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(arguments)
    def look(value: Any) -> None:
        call(function, argument, value)

    look()
