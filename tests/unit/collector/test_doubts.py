"""The one list of doubts: a change of a run, and the sign, code and title that it gives."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from bench.schema import Machine, Result
from collector.analysis import analyze_run
from collector.facts import Doubt, list_doubts
from factories import (
    make_cell,
    make_cpu_use,
    make_environment,
    make_failed_result,
    make_gpu,
    make_gpu_use,
    make_result,
    make_validity,
)
from measured_runs import Collect, make_repeats

GPU = make_cell(device="gpu")


def repeat_three(cell: Any = None, **overrides: Any) -> list[Result]:
    return make_repeats(cell or make_cell(), 0.1, 0.1, 0.1, **overrides)


def replace_last(result: Result) -> list[Result]:
    return [*repeat_three()[:2], result]


def use_gpu(**overrides: Any) -> list[Result]:
    return repeat_three(GPU, gpu_use=(make_gpu_use(**overrides),))


OTHER_DRIVER = make_environment(gpus=(make_gpu(driver_version="570.1"),))
UNCHECKED = make_validity().model_copy(update={"unchecked": ("neighbours on the host",)})
CASES: Sequence[tuple[Callable[[], list[Result]], str, str, str]] = [
    (lambda: replace_last(make_failed_result(repeat=3)), "!", "repeats-failed", "1 repeat failed"),
    (lambda: repeat_three()[:2], "!", "repeats-missing", "1 repeat missing"),
    (
        lambda: replace_last(make_result(repeat=3, validity=make_validity("contaminated"))),
        *("!", "repeats-left-out", "1 contaminated, left out"),
    ),
    (
        lambda: replace_last(make_result(repeat=3, validity=make_validity("noisy"))),
        *("!", "repeats-uneven", "1 noisy, counted"),
    ),
    (lambda: repeat_three(validity=make_validity("throttled")), "!", "unsound", "1 cell without a sound repeat"),
    (lambda: repeat_three()[:1], "!", "one-repeat", "1 cell of one repeat"),
    (lambda: make_repeats(make_cell(), 0.1, 0.1, 0.12), "!", "repeats-apart", "repeats up to 20 % apart"),
    (
        lambda: use_gpu(foreign_processes=({"pid": 7, "memory_bytes": 5},)),
        *("!", "contaminated", "others on the machine in 3 repeats"),
    ),
    (lambda: use_gpu(foreign_processes=None), "?", "others-unseen", "others may be unseen"),
    (
        lambda: repeat_three(environment=make_environment(machine=Machine(is_virtual=True))),
        *("?", "others-unseen", "others may be unseen"),
    ),
    (lambda: repeat_three(GPU, validity=make_validity("throttled")), "!", "throttled", "3 repeats throttled"),
    (lambda: repeat_three(GPU, gpu_use=()), "?", "clocks-unread", "clocks not read"),
    (
        lambda: [*repeat_three(GPU)[:2], make_result(GPU, repeat=3, environment=OTHER_DRIVER)],
        *("!", "drivers", "2 drivers"),
    ),
    (
        lambda: replace_last(make_result(repeat=3, environment=make_environment(versions={"torch": "2.9.0"}))),
        *("!", "environments", "1 cell in several environments"),
    ),
    (repeat_three, "?", "one-machine", "one host"),
    (lambda: repeat_three(validity=UNCHECKED), "?", "unchecked", "1 condition not checked"),
]


@pytest.mark.parametrize(("make", "sign", "code", "title"), CASES)
def test_a_change_of_a_run_gives_its_doubt(
    collect: Collect, make: Callable[[], list[Result]], sign: str, code: str, title: str
) -> None:
    found = {doubt.code: (doubt.sign, doubt.title) for doubt in list_doubts(analyze_run(collect(*make())))}
    assert found.get(code) == (sign, title), found


def test_a_sound_run_has_no_doubt_but_its_one_machine(collect: Collect) -> None:
    results = repeat_three(cpu_use=make_cpu_use())
    assert [doubt.code for doubt in list_doubts(analyze_run(collect(*results)))] == ["one-machine"]


def test_what_to_beware_of_comes_first_and_each_thing_is_said_once(collect: Collect) -> None:
    doubts: list[Doubt] = list_doubts(analyze_run(collect(*make_repeats(make_cell(), 0.1, 0.12))))
    severities = [doubt.severity for doubt in doubts]
    assert severities == sorted(severities)
    assert len({doubt.code for doubt in doubts}) == len(doubts)
    assert all(doubt.text.endswith(".") for doubt in doubts)
