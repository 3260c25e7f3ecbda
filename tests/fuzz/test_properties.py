"""Whatever the commands are fed, what `fuzz.judging` says holds: for the corpus, and for a few cases of each input."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from fuzz.cases import Case, list_corpus, load_case
from fuzz.driver import Driver
from fuzz.targets import list_targets

FINDINGS = Path(".fuzz")
NUM_EXAMPLES = 2
"""Of each input: `make fuzz` tries thousands."""
MORE_EXAMPLES = {"api-server": 5, "rows": 3}
"""Of inputs whose values lie deep inside."""
REAL_CASES = ("matrix/render", "result/status", "words/words")
"""Where the first case of the corpus is also run in a process of its own, as users start it."""


@pytest.fixture(scope="module")
def driver() -> Iterator[Driver]:
    with Driver() as started:
        yield started


def name_case(path: Path) -> str:
    return "/".join(path.parts[-3:])


def check(driver: Driver, case: Case, *, is_real: bool = False) -> None:
    faults = driver.run(case, is_real=is_real)
    if faults:
        path = case.save(FINDINGS)
        pytest.fail("\n".join(f"{fault.signature}: {fault.detail}" for fault in faults) + f"\nmake fuzz CASE={path}")


@pytest.mark.parametrize("path", list_corpus(), ids=name_case)
def test_what_was_found_once_stays_mended(path: Path, driver: Driver) -> None:
    check(driver, load_case(path))


@pytest.mark.parametrize("name", list_targets())
def test_what_must_hold_holds_for_a_few_odd_inputs(name: str, driver: Driver) -> None:
    number = MORE_EXAMPLES.get(name, NUM_EXAMPLES)

    @settings(derandomize=True, max_examples=number, database=None, deadline=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(list_targets()[name].draw_cases(is_cheap=True))
    def look(case: Case) -> None:
        check(driver, case)

    look()


@pytest.mark.parametrize("name", REAL_CASES)
def test_a_process_of_its_own_does_as_a_fork(name: str, driver: Driver) -> None:
    path = next(path for path in list_corpus() if name_case(path).startswith(name))
    check(driver, load_case(path), is_real=True)
