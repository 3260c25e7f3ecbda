"""What a run does not say, and why; and how many sentences there are at most."""

from collections.abc import Sequence
from typing import Any

from answered_runs import (
    GPU_PYTORCH,
    GPU_TENSORFLOW,
    TENSORFLOW,
    answer,
    make_framework_pair,
    make_spread,
    select_texts,
)
from bench.schema import Decision, Result, Shift, Suspicion
from bench.schema.night import Outcome
from collector.analysis import analyze_run
from collector.answers.anchors import name_anchor
from collector.answers.rules import RULES
from collector.answers.run_answers import CERTAINTY_RULE, MAX_FASTEST, MORE_RULE, answer_run, share_places
from collector.answers.texts import list_lines
from collector.nights.records import ChangeHistory, RecordedChange
from collector.report.sections import SECTIONS, list_tables
from factories import (
    RUN_ID,
    START,
    make_cell,
    make_environment,
    make_failed_result,
    make_gpu,
    make_result,
    make_validity,
)
from measured_runs import Collect, make_repeats

EXTRA_RULES = {CERTAINTY_RULE, MORE_RULE}


def test_what_a_small_run_leaves_open_is_counted(collect: Collect) -> None:
    graph, jax = (make_cell(framework=name, mode=mode) for name, mode in (("tensorflow", "graph"), ("jax", "compiled")))
    noisy = {"validity": make_validity("noisy")}
    results = [
        *make_repeats(make_cell(), 0.1, environment=make_environment(), **noisy),
        *make_spread(graph, 0.2, TENSORFLOW, validity=make_validity("contaminated")),
        make_failed_result(jax, status="oom"),
    ]
    answers = [one for one in answer(collect, results) if one.kind == "unknown"]
    assert {one.rule: one.text for one in answers} == {
        "no-result": "5 of 9 planned repeats did not end ok: 4 missing, 1 oom (conv6 train, PyTorch eager; "
        "conv6 train, JAX compiled). 1 cell has no figure at all. The "
        f"command of the run measures what is missing if it is given again, with --run-id {RUN_ID}.",
        "not-valid": "Of 4 repeats that ended ok: 1 uneven in their steps, and counted (1 noisy); 3 used for lack of "
        "sound ones (3 contaminated). 1 of 2 rows of step times "
        "have "
        "no repeat under sound conditions: no sentence here rests on them.",
        "one-repeat": "1 of 2 step times without an interval, as one repeat counts: nothing is known of the spread "
        "between "
        "repeats, and no sentence here rests on them.",
        "not-compared": "2 of 2 pairs have no ratio: 1 left out: no repeat of TensorFlow was measured under sound "
        "conditions; 1 not compared: no ok repeat of JAX.",
        "one-machine": "Measured on one host (Intel(R) Xeon(R) CPU @ 2.20GHz): by how much others of the kind differ "
        "is not known.",
        "not-planned": "3 of 6 combinations of work and program, whatever the batch, were not planned. "
        "Not measured on any work: PyTorch compiled, "
        "TensorFlow eager, TensorFlow compiled.",
        "no-prices": f"Costs need prices: benchmatrix cost {RUN_ID} computes them.",
        "one-kind": "Measured with one phase (training, not inference), one kind of device (CPU, not GPU), one "
        "precision (fp32, not tf32, fp16 or bf16), synthetic data and one batch of conv6 train: how others compare is "
        "not known. Accuracy was not measured.",
        "short-windows": "The speed over hours is not known: at most 0.61 s were timed in one go.",
    }


def test_a_ratio_of_two_machines_is_said_to_be_confounded(collect: Collect) -> None:
    other = make_environment(hostname="bench-2", versions={"tensorflow": "2.21.0"})
    results = [*make_spread(make_cell(), 0.1), *make_spread(make_cell(framework="tensorflow"), 0.2, other)]
    (text,) = select_texts(answer(collect, results), "confounded")
    assert text.startswith("1 ratio (Frameworks) of sides on different machines, one of them a single one: ")


def test_cards_of_one_host_are_one_set_of_cards_for_each_number_of_gpus(collect: Collect) -> None:
    gpus = (make_gpu(uuid="GPU-1"), make_gpu(uuid="GPU-2"))
    results = [
        result
        for number in (1, 2)
        for result in make_spread(make_cell(device="gpu", num_gpus=number), 0.1, make_environment(gpus=gpus[:number]))
    ]
    (text,) = select_texts(answer(collect, results), "one-machine")
    assert text == (
        "Measured on one card (Tesla T4) and one set of 2 cards (Tesla T4): by how much others of the kind "
        "differ is not known."
    )


def test_two_cards_of_a_kind_are_not_one(collect: Collect) -> None:
    environments = [make_environment(gpus=(make_gpu(uuid=uuid),)) for uuid in ("GPU-1", "GPU-2")]
    cells = [make_cell(device="gpu", phase=phase) for phase in ("train", "infer")]
    results = [
        result
        for cell, environment in zip(cells, environments, strict=True)
        for result in make_spread(cell, 0.1, environment)
    ]
    assert select_texts(answer(collect, results), "one-machine") == []


def test_ratios_without_a_difference_are_not_called_equal(collect: Collect) -> None:
    (text,) = select_texts(answer(collect, make_framework_pair(1.01)), "no-difference")
    assert text == (
        "1 of 1 ratio of frameworks shows no difference, which does not say that sides are equal. To show a "
        "difference of its size, each takes at least about 17 repeats a side (`repeats:` in the matrix)."
    )
    (text,) = select_texts(answer(collect, make_framework_pair(1.0001)), "no-difference")
    assert text.endswith("Ratios so near to 1 would take more than 50 repeats a side.")


def make_sides(one: Sequence[float], other: Sequence[float], *hosts: str) -> list[Result]:
    """Return repeats of PyTorch and of TensorFlow with these step times; `hosts`: where each of them ran."""
    sides = ((make_cell(), one), (make_cell(framework="tensorflow", mode="graph"), other))
    machines = [make_environment(hostname=host) for host in hosts or ["bench-1"] * len(one)]
    return [
        make_result(cell, repeat=number, step_seconds=(own,) * 3, environment=machine)
        for cell, seconds in sides
        for number, (own, machine) in enumerate(zip(seconds, machines, strict=True), start=1)
    ]


def test_more_than_three_repeats_tell_in_how_many_cases_others_would_show_a_ratio(collect: Collect) -> None:
    results = make_sides((0.099, 0.101, 0.099, 0.101), (0.1, 0.102, 0.1, 0.101))
    (text,) = select_texts(answer(collect, results, repeats=4), "no-difference")
    assert " repeats a side would show differences of this size in most cases, as far as so few repeats" in text


def test_no_repeats_are_proposed_where_each_has_its_own_machine(collect: Collect) -> None:
    results = make_sides((0.1, 0.112, 0.09), (0.103, 0.11256, 0.09108), "bench-1", "bench-2", "bench-3")
    (text,) = select_texts(answer(collect, results), "no-difference")
    assert text.endswith("which does not say that sides are equal.")


def test_repeats_are_proposed_for_as_many_tests_as_the_table_has(collect: Collect) -> None:
    # Asked for, ratios of repeats at fault are adjusted with the others, though no sentence rests on them; alone: 17.
    at_fault = [
        result.model_copy(update={"validity": make_validity("contaminated")})
        for result in make_framework_pair(3.0, phase="infer")
    ]
    results = [*make_framework_pair(1.01), *at_fault]
    (text,) = select_texts(answer(collect, results, include_invalid=True), "no-difference")
    assert text.startswith("1 of 1 ratio of frameworks shows no difference, ")
    assert "each takes at least about 21 repeats a side" in text


def test_the_end_of_a_run_has_fewer_sentences_than_the_report_and_counts_the_others(collect: Collect) -> None:
    found = answer(collect, make_framework_pair(1.01))
    short, long = ("\n".join(list_lines(found, is_short=is_short)) for is_short in (True, False))
    num_left_out = sum(not one.is_on_terminal for one in found)
    assert num_left_out > 0
    assert short.splitlines()[-1] == f"The report has {num_left_out} more sentences, and all tables."
    assert "no difference, which" in short
    assert [one.text in short for one in found] == [one.is_on_terminal for one in found]
    assert all(one.text in long for one in found)


def test_certainty_is_the_median_and_the_widest_of_the_intervals(collect: Collect) -> None:
    # Three repeats 1 % apart: t(2) = 4.3027 times 0.010000 / sqrt(3) is 0.024842; exp of it is 1.02515.
    (text,) = select_texts(answer(collect, make_spread(make_cell(), 0.1)), "certainty")
    few = "How wide one of 3 repeats or fewer is, is partly chance."
    assert text == (
        f"The 95 % interval of the step time reaches 2.5 % above it (conv6 train, PyTorch eager, of 3 repeats). {few}"
    )
    # Of two repeats as far apart as 0.99 and 1.01: t(1) = 12.706 times 0.014142 / sqrt(2) is 0.12706; exp is 1.1355.
    two = [*make_spread(make_cell(), 0.1), *make_spread(make_cell(batch_size=8), 0.1)[::2]]
    (text,) = select_texts(answer(collect, two), "certainty")
    assert text == (
        "Half of the 95 % intervals of 2 step times reach at most 8.0 % above them, the "
        f"widest 13.5 % (conv6 train, batch 8, PyTorch eager, of 2 repeats). {few}"
    )


def test_moderated_intervals_are_said_to_be_such(collect: Collect) -> None:
    cells = [make_cell(batch_size=size) for size in (1, 2, 4)]
    answers = answer(collect, [result for cell in cells for result in make_spread(cell, 0.1)], moderated=True)
    assert len(select_texts(answers, "moderated")) == 1


def make_change(low: float, *, is_confirmed: bool) -> RecordedChange:
    """Return a change of one cell by 10 %, with a decision."""
    shift = Shift(ratio=1.1, low=low, high=1.2, p_value=1e-6, num_nights_before=7, num_nights_after=1)
    cell_id = make_cell().cell_id
    named: dict[str, Any] = {"matrix": "smoke", "change_id": "0011aabb", "night_run_id": "night-9"}
    suspicion = Suspicion(
        **named,
        direction="slower",
        cell_ids=(cell_id,),
        num_cells=1,
        device="cpu",
        hardware="Xeon",
        first_run_id="night-8",
        seen_at=START,
        shift=shift,
        night_deviation=0.01,
    )
    outcome: Outcome = "confirmed" if is_confirmed else "dismissed"
    decision = Decision(**named, outcome=outcome, reason="", num_repeats=10, shift=shift, decided_at=START)
    return RecordedChange(suspicion=suspicion, decision=decision)


def test_only_confirmed_changes_whose_interval_excludes_1_are_findings(collect: Collect) -> None:
    collection = collect(*make_spread(make_cell(), 0.1))
    changes = (
        make_change(1.05, is_confirmed=True),
        make_change(0.99, is_confirmed=True),
        make_change(1.05, is_confirmed=False),
    )
    answers = answer_run(analyze_run(collection, history=ChangeHistory(changes=changes)))
    assert select_texts(answers, "changes") == [
        f"Since run night-8, {make_cell().cell_id} on Xeon: step time +10.0 % (+5.0 to +20.0), confirmed by 10 more "
        "repeats."
    ]


def test_the_number_of_findings_is_bounded_and_the_rest_is_counted(collect: Collect) -> None:
    models = ("conv6", "vgg16", "resnet18")
    results = [
        result
        for model in models
        for phase in ("train", "infer")
        for batch_size in (1, 8)
        for result in make_framework_pair(2.0, model=model, phase=phase, batch_size=batch_size)
    ]
    answers = answer(collect, results)
    findings = [one for one in answers if one.kind == "finding"]
    # Of each of 12 kinds of work the fastest, of which 10 are shown; over all work 1, batches 2 (one for each phase),
    # roofline 1, certainty 1.
    *_, certainty, more = findings
    assert len(findings) == MAX_FASTEST + 5 + 2
    assert more.text == "More such findings are in the tables: 2 of fastest."
    # All ran on one machine: none of them says so by itself. Both tables have 12 ratios.
    assert certainty.text == (
        "All ratios above: on one machine, 3 repeats a side. A difference is stated where its interval excludes "
        "equality; the intervals of a table (12 ratios of frameworks, 12 ratios of batches) all hold the truth in 95 % "
        "of cases, if both sides vary alike."
    )
    assert not [one for one in findings[:-2] if "On one machine" in one.text or "together" in one.text]
    order = [rule.id for rule in RULES]
    positions = [order.index(one.rule) for one in answers if one.rule not in EXTRA_RULES]
    assert positions == sorted(positions)


def test_places_go_to_every_rule_before_any_has_a_second_one() -> None:
    assert share_places([5, 0, 1, 3], 6) == [3, 0, 1, 2]
    assert share_places([1, 1], 10) == [1, 1]
    assert share_places([2, 2, 2], 2) == [1, 1, 0]


def test_every_anchor_is_a_section_or_a_table_of_the_report(collect: Collect) -> None:
    results = [
        *make_framework_pair(1.5),
        *make_framework_pair(1.5, batch_size=8),
        make_failed_result(make_cell(framework="jax", mode="compiled"), status="oom"),
        *make_spread(make_cell(phase="infer"), 0.1, validity=make_validity("contaminated")),
    ]
    analysis = analyze_run(collect(*results))
    known = {name_anchor(table.caption) for table in list_tables(analysis)} | {section.anchor for section in SECTIONS}
    answers = answer_run(analysis)
    assert {one.anchor for one in answers if one.anchor.startswith("table-")}
    assert [one for one in answers if one.anchor not in known] == []


def test_every_sentence_comes_from_a_rule_of_its_kind(collect: Collect) -> None:
    kinds = {rule.id: rule.kind for rule in RULES} | dict.fromkeys(EXTRA_RULES, "finding")
    assert len({rule.id for rule in RULES}) == len(RULES)
    answers = answer(collect, make_framework_pair(1.5))
    assert answers
    assert all(kinds[one.rule] == one.kind for one in answers)


def test_programs_that_were_not_planned_stand_under_their_precision(collect: Collect) -> None:
    """`PyTorch eager, bf16, TensorFlow graph, bf16` was read as four things."""
    cells = [
        (make_cell(device="gpu"), GPU_PYTORCH),
        (make_cell(device="gpu", mode="compiled", precision="bf16"), GPU_PYTORCH),
        (make_cell(device="gpu", framework="tensorflow", mode="graph"), GPU_TENSORFLOW),
    ]
    results = [result for cell, environment in cells for result in make_spread(cell, 0.1, environment)]
    (text,) = [one.text for one in answer(collect, results) if one.rule == "not-planned"]
    assert "bf16 in PyTorch eager, TensorFlow eager, TensorFlow graph and TensorFlow compiled" in text
    assert "fp32 in PyTorch compiled, TensorFlow eager and TensorFlow compiled" in text
