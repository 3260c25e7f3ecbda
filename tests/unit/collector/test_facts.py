"""collector.facts: what was run, in words."""

import pytest

from bench.schema import Machine, Result, Verdict
from collector.facts import describe_windows, list_facts, state_outcome
from factories import make_cell, make_environment, make_failed_result, make_result, make_validity
from measured_runs import Collect

SHORT = make_result(step_seconds=(0.25,) * 4)
LONG = make_result(make_cell(batch_size=1), step_seconds=(0.05,) * 100)


@pytest.mark.parametrize(
    ("results", "words"),
    [
        ((SHORT, LONG), "4 to 100 steps a repeat, 1 to 5 s"),
        ((SHORT,), "4 steps a repeat, 1 s"),
        ((make_failed_result(),), ""),
    ],
)
def test_how_much_was_timed_is_the_span_of_the_repeats_that_ended_ok(
    collect: Collect, results: tuple[Result, ...], words: str
) -> None:
    assert describe_windows(collect(*results, repeats=1)) == words


@pytest.mark.parametrize(("is_virtual", "words"), [(True, " of a virtual machine"), (False, ""), (None, "")])
def test_a_cpu_that_a_virtual_machine_has_a_part_of_is_said_to_be_one(
    collect: Collect, is_virtual: bool | None, words: str
) -> None:
    environment = make_environment().model_copy(update={"machine": Machine(is_virtual=is_virtual)})
    facts = dict(list_facts(collect(make_result(environment=environment))))
    assert facts["CPU"] == f"{environment.cpu_model}, {environment.num_threads} threads{words}"


@pytest.mark.parametrize(
    ("verdicts", "words"),
    [
        (("valid", "valid"), ""),
        (("valid", "not-steady"), "2 count (1 not-steady)."),
        (("valid", "not-steady", "contaminated"), "2 count (1 not-steady), 1 does not (1 contaminated)."),
        (("throttled", "too-short"), "2 are used for lack of sound ones (1 throttled, 1 too-short)."),
    ],
)
def test_the_outcome_says_how_many_repeats_count(collect: Collect, verdicts: tuple[Verdict, ...], words: str) -> None:
    results = [
        make_result(repeat=number, validity=make_validity(*(() if verdict == "valid" else (verdict,))))
        for number, verdict in enumerate(verdicts, start=1)
    ]
    outcome = state_outcome(collect(*results, repeats=len(verdicts)))
    assert outcome == " ".join(
        filter(None, [f"{len(verdicts)} of {len(verdicts)} planned repeats ended ok, in 1 cell.", words])
    )


def test_a_run_without_a_gpu_says_of_what_there_is_none(collect: Collect) -> None:
    facts = dict(list_facts(collect(make_result(make_cell(device="cpu")), repeats=1)))
    assert facts["GPU"] == "no GPU used"
    assert "GPU" not in dict(list_facts(collect(make_failed_result(), repeats=1)))
