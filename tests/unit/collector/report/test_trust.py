"""What speaks for and against trusting a run: each line follows the data, and silence of the data is no proof."""

import re
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from answered_runs import GPU_PYTORCH, GPU_TENSORFLOW, make_spread
from bench.schema import ForeignProcess, Machine, Verdict
from collector.analysis import analyze_run
from collector.report.trust import list_trust_lines, sum_up_trust
from collector.report.trust_line import MEANINGS
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
from measured_runs import Collect
from tenancies import make_shared_result
from trust_lines import make_two, read_lines

GPU_CELL = make_cell(device="gpu")
GPU = make_environment(gpus=(make_gpu(),))


TIMED = "of 3 steps a repeat, 0.3 s."
VALID = "Valid says that no fault was seen, not that the time is typical."


@pytest.mark.parametrize(
    ("results", "state", "text"),
    [
        (make_two(), "good", f"2 of 2 are valid; 2 count in each cell, {TIMED} {VALID}"),
        (make_two()[:1], "beware", f"1 of 2 planned ended ok: 1 valid; 1 counts in each cell, {TIMED} {VALID}"),
        (
            [*make_two()[:1], make_failed_result(repeat=2)],
            "beware",
            f"1 of 2 planned ended ok: 1 valid; 1 counts in each cell, {TIMED} {VALID}",
        ),
        (
            make_two(validity=make_validity("noisy")),
            "beware",
            f"2 of 2 planned ended ok: 0 valid, 2 noisy; 2 count in each cell, {TIMED}",
        ),
    ],
)
def test_repeats_are_good_if_all_ended_ok_are_valid_and_two_count(
    collect: Collect, results: list[Any], state: str, text: str
) -> None:
    line = read_lines(collect, *results)["Repeats"]
    assert (line.state, line.text) == (state, text)


def test_a_line_says_what_was_found_and_then_what_that_leaves_open_in_two_sentences_at_most(collect: Collect) -> None:
    hidden = {"processes_visible": None, "foreign_processes_after": None, "sample_reasons": ()}
    differing = make_two(make_cell(framework="tensorflow", mode="graph"), seconds=(0.1, 0.13))
    results = make_two(GPU_CELL, environment=GPU, gpu_use=(make_gpu_use(**hidden),))
    for line in read_lines(collect, *results, *differing).values():
        sentences = re.split(r"(?<=[a-z)])\. (?=[A-Z])", line.text)
        assert len(sentences) <= 2, line.text
        assert all(sentence[0].isupper() or sentence[0].isdigit() for sentence in sentences), line.text


def test_the_lines_are_summed_up_by_their_states_the_doubts_first(collect: Collect) -> None:
    analysis = analyze_run(collect(*make_two(seconds=(0.1, 0.13))))
    meanings = list(dict.fromkeys(line.meaning for line in list_trust_lines(analysis)))
    assert meanings != sorted(meanings, key=list(MEANINGS.values()).index)  # in the order of the rules they differ
    assert sum_up_trust(analysis) == (
        "Beware: 1 repeat did not end ok; repeats of 1 cell disagree; only one host measured; "
        "the host's speed changed by 30.0 %. Not known: whether results were changed. Nothing against it: idle machine."
    )


@pytest.mark.parametrize(
    ("verdicts", "doubt"),
    [((), "1 repeat did not end ok"), (("noisy",), "1 repeat did not end ok, 1 other is not valid")],
)
def test_the_header_counts_repeats_that_did_not_end_ok_and_others_that_are_not_valid(
    collect: Collect, verdicts: tuple[Verdict, ...], doubt: str
) -> None:
    analysis = analyze_run(collect(*make_two(validity=make_validity(*verdicts))[:1], repeats=2))
    assert sum_up_trust(analysis).startswith(f"Beware: {doubt}; ")


def test_every_line_that_is_not_good_names_its_doubt(collect: Collect) -> None:
    hidden = {"processes_visible": None, "foreign_processes_after": None, "sample_reasons": ()}
    environment = GPU.model_copy(update={"machine": Machine(is_virtual=True)})
    results = make_two(GPU_CELL, environment=environment, gpu_use=(make_gpu_use(**hidden),))
    lines = list_trust_lines(analyze_run(collect(*results)))
    assert {line.state for line in lines} == {"good", "beware", "unknown"}
    summed_up = sum_up_trust(analyze_run(collect(*results)))
    assert all(line.state == "good" or (line.doubt and line.doubt in summed_up) for line in lines)


HIDDEN = {"processes_visible": None, "foreign_processes_after": None}
FOREIGN = (ForeignProcess(pid=7, memory_bytes=None),)


@pytest.mark.parametrize(
    ("use", "verdicts", "state", "words"),
    [
        ({}, (), "good", "No other process seen on the GPU before or after 2 repeats; one in between would not be."),
        (HIDDEN, (), "unknown", "Whether others used the GPU was not visible in 2 of 2 repeats."),
        ({"foreign_processes": None}, (), "unknown", "not visible in 2 of 2"),
        ({"foreign_processes": FOREIGN}, ("contaminated",), "beware", "2 repeats contaminated by others"),
        (HIDDEN, ("contaminated",), "beware", "2 repeats contaminated by others"),
        ({}, ("over-peak", "contaminated"), "beware", "2 repeats contaminated by others"),
    ],
)
def test_a_gpu_was_idle_only_if_others_would_have_been_seen(
    collect: Collect, use: dict[str, Any], verdicts: tuple[Verdict, ...], state: str, words: str
) -> None:
    given: dict[str, Any] = {
        "gpu_use": (make_gpu_use(**use),),
        "cpu_use": make_cpu_use(),
        "validity": make_validity(*verdicts),
    }
    line = read_lines(collect, *make_two(GPU_CELL, environment=GPU, **given))["Idle machine"]
    assert (line.state, words in line.text) == (state, True), line.text


@pytest.mark.parametrize(("is_virtual", "state"), [(True, "unknown"), (False, "good"), (None, "good")])
def test_a_virtual_machine_does_not_see_what_others_of_its_host_use(
    collect: Collect, is_virtual: bool | None, state: str
) -> None:
    environment = GPU.model_copy(update={"machine": Machine(is_virtual=is_virtual)})
    given: dict[str, Any] = {"gpu_use": (make_gpu_use(),), "cpu_use": make_cpu_use(), "validity": make_validity()}
    line = read_lines(collect, *make_two(GPU_CELL, environment=environment, **given))["Idle machine"]
    assert line.state == state
    assert line.text.endswith(" Other virtual machines are never seen.") == (is_virtual is True)


@pytest.mark.parametrize(
    ("verdicts", "state", "words"),
    [
        ((), "good", "The GPU's clock was at"),
        (("throttled",), "beware", "2 repeats throttled"),
        (("over-peak",), "good", "The GPU's clock was at"),
        (("over-peak", "throttled"), "beware", "2 repeats throttled; the GPU's clock was at"),
        (("contaminated", "throttled", "throttled"), "beware", "2 repeats throttled; the GPU's clock was at"),
        (("contaminated", "noisy"), "good", "The GPU's clock was at"),
    ],
)
def test_throttled_repeats_are_counted_below_graver_verdicts_too(
    collect: Collect, verdicts: tuple[Verdict, ...], state: str, words: str
) -> None:
    given: dict[str, Any] = {"gpu_use": (make_gpu_use(),), "validity": make_validity(*verdicts)}
    line = read_lines(collect, *make_two(GPU_CELL, environment=GPU, **given))["Clocks"]
    assert (line.state, words in line.text) == (state, True), line.text


def test_a_clock_of_which_nobody_asked_why_it_was_lowered_is_not_known_to_have_been_left_alone(
    collect: Collect,
) -> None:
    unread = make_gpu_use(sample_reasons=())
    line = read_lines(collect, *make_two(GPU_CELL, environment=GPU, gpu_use=(unread,)))["Clocks"]
    assert line.state == "unknown"
    assert line.text.endswith("Whether the driver held it down at times is not recorded (2 of 2 repeats).")


@pytest.mark.parametrize(
    ("verdicts", "state", "words"),
    [
        (("over-peak", "throttled"), "unknown", "hether 2 repeats that a graver verdict names were throttled too is"),
        (("throttled", "noisy"), "beware", "2 repeats throttled; the GPU's clock was at"),
        (("over-peak",), "good", "The GPU's clock was at"),
    ],
)
def test_what_rows_of_an_older_version_do_not_say_of_throttling_is_not_known(
    collect: Collect, verdicts: tuple[Verdict, ...], state: str, words: str
) -> None:
    given: dict[str, Any] = {"gpu_use": (make_gpu_use(),), "validity": make_validity(*verdicts)}
    collection = collect(*make_two(GPU_CELL, environment=GPU, **given))
    older = replace(collection, results=collection.results.assign(fault_verdicts=pd.Series(dtype="str")))
    (line,) = (line for line in list_trust_lines(analyze_run(older)) if line.title == "Clocks")
    assert (line.state, words in line.text) == (state, True), line.text


def test_of_the_repeats_with_a_device_of_their_own_those_contaminated_below_a_graver_verdict_are_counted(
    collect: Collect,
) -> None:
    shared = [make_shared_result(repeat=repeat) for repeat in (1, 2)]
    contaminated = make_two(GPU_CELL, environment=GPU, validity=make_validity("over-peak", "contaminated"))
    line = read_lines(collect, *shared, *contaminated)["Idle machine"]
    assert line.state == "beware"
    assert "2 repeats contaminated by others" in line.text
    assert "not known here" not in line.text


def test_signatures_that_were_not_checked_are_not_known(collect: Collect) -> None:
    lines = read_lines(collect, *make_two())
    assert lines["Signatures"].state == "unknown"
    assert lines["Signatures"].text.startswith("Not checked")


def test_several_versions_of_a_framework_and_several_drivers_are_named(collect: Collect) -> None:
    first, second = (
        make_environment(versions={"torch": version}, gpus=(make_gpu(driver_version=driver),))
        for version, driver in (("2.10.0", "570.1"), ("2.11.0", "580.1"))
    )
    results = [
        make_result(GPU_CELL, repeat=repeat, environment=environment)
        for repeat, environment in ((1, first), (2, second))
    ]
    lines = read_lines(collect, *results)
    assert (lines["Versions"].state, lines["Machine"].state) == ("beware", "beware")
    assert "PyTorch 2.10.0, 2.11.0" in lines["Versions"].text
    assert "driver 570.1, 580.1" in lines["Machine"].text


def test_where_it_ran_and_with_what_is_no_line_if_it_is_no_reason_for_doubt(collect: Collect) -> None:
    lines = read_lines(collect, *make_two(GPU_CELL, environment=GPU))
    assert not {"Machine", "Versions", "Tool"} & set(lines)


def test_a_run_of_which_nothing_ended_ok_says_no_more_than_that(collect: Collect) -> None:
    lines = read_lines(collect, make_failed_result(repeat=1), make_failed_result(repeat=2))
    assert set(lines) == {"Repeats", "Signatures"}
    assert lines["Repeats"].text == "0 of 2 planned ended ok."


def test_what_the_figures_rest_on_stands_among_what_to_beware_of(collect: Collect) -> None:
    """A reader who looks for reasons to doubt reads there, and had to find the single card below the answers."""
    work = {"device": "gpu", "model": "resnet18", "input_size": 32}  # whose batch norms Keras computes in another way
    graph = make_cell(framework="tensorflow", mode="graph", **work)
    pair = [*make_spread(make_cell(**work), 0.1, GPU_PYTORCH), *make_spread(graph, 0.2, GPU_TENSORFLOW)]
    lines = read_lines(collect, *pair, repeats=3)
    assert (lines["Machines"].state, lines["Machines"].anchor) == ("beware", "environments")
    assert lines["Machines"].text.startswith("Measured on one card (")
    assert (lines["Frameworks"].state, lines["Frameworks"].anchor) == ("beware", "comparisons")
    assert lines["Frameworks"].text.endswith("How much of a ratio that explains is not known.")
    assert "Frameworks" not in read_lines(collect, *make_two())
