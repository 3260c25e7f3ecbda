"""The one list of doubts: a change of a run, and the code, severity and number that it gives."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from bench.schema import Machine, Result
from collector.analysis import analyze_run
from collector.doubts import Doubt, list_doubts
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


CASES: Sequence[tuple[str, Callable[[], list[Result]], str, str, int]] = [
    ("a failed repeat", lambda: replace_last(make_failed_result(repeat=3)), "repeats-failed", "beware", 1),
    ("a missing repeat", lambda: repeat_three()[:2], "repeats-missing", "beware", 1),
    (
        "a contaminated repeat is left out",
        lambda: replace_last(make_result(repeat=3, validity=make_validity("contaminated"))),
        "repeats-left-out",
        "beware",
        1,
    ),
    (
        "a noisy one counts",
        lambda: replace_last(make_result(repeat=3, validity=make_validity("noisy"))),
        "repeats-uneven",
        "beware",
        1,
    ),
    ("all at fault", lambda: repeat_three(validity=make_validity("throttled")), "unsound", "beware", 1),
    ("one repeat", lambda: repeat_three()[:1], "one-repeat", "beware", 1),
    ("repeats that lie apart", lambda: make_repeats(make_cell(), 0.1, 0.1, 0.12), "repeats-apart", "beware", 1),
    (
        "processes of others",
        lambda: use_gpu(foreign_processes=({"pid": 7, "memory_bytes": 5},)),
        "contaminated",
        "beware",
        3,
    ),
    ("others that cannot be seen", lambda: use_gpu(foreign_processes=None), "others-unseen", "unknown", 1),
    (
        "a virtual machine",
        lambda: repeat_three(environment=make_environment(machine=Machine(is_virtual=True))),
        "others-unseen",
        "unknown",
        1,
    ),
    ("throttled", lambda: repeat_three(GPU, validity=make_validity("throttled")), "throttled", "beware", 3),
    ("reasons of clocks unread", lambda: repeat_three(GPU, gpu_use=()), "clocks-unread", "unknown", 3),
    (
        "two drivers",
        lambda: [
            *repeat_three(GPU)[:2],
            make_result(GPU, repeat=3, environment=make_environment(gpus=(make_gpu(driver_version="570.1"),))),
        ],
        "drivers",
        "beware",
        2,
    ),
    (
        "two versions, in two environments",
        lambda: replace_last(make_result(repeat=3, environment=make_environment(versions={"torch": "2.9.0"}))),
        "environments",
        "beware",
        1,
    ),
    ("one host", repeat_three, "one-machine", "unknown", 1),
    ("unchecked", lambda: repeat_three(validity=make_unchecked()), "unchecked", "unknown", 3),
]


def make_unchecked() -> Any:
    return make_validity().model_copy(update={"unchecked": ("neighbours on the host",)})


@pytest.mark.parametrize(
    ("make", "code", "severity", "count"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_a_change_of_a_run_gives_its_doubt(
    collect: Collect, make: Callable[[], list[Result]], code: str, severity: str, count: int
) -> None:
    found = {doubt.code: doubt for doubt in list_doubts(analyze_run(collect(*make())))}
    assert code in found, sorted(found)
    assert (found[code].severity, found[code].count) == (severity, count)


def test_a_sound_run_has_no_doubt_but_its_one_machine(collect: Collect) -> None:
    results = repeat_three(cpu_use=make_cpu_use())
    assert [doubt.code for doubt in list_doubts(analyze_run(collect(*results)))] == ["one-machine"]


def test_what_to_beware_of_comes_first_and_each_thing_is_said_once(collect: Collect) -> None:
    doubts: list[Doubt] = list_doubts(analyze_run(collect(*make_repeats(make_cell(), 0.1, 0.12))))
    severities = [doubt.severity for doubt in doubts]
    assert severities == sorted(severities)
    assert len({doubt.code for doubt in doubts}) == len(doubts)
    assert all(doubt.text.endswith(".") for doubt in doubts)
