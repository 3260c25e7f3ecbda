"""Which program is fastest for a kind of work: named alone only where it differs from all others."""

from answered_runs import TENSORFLOW, answer, make_framework_pair, make_spread, select_texts
from bench.schema import Result
from collector.analysis import analyze_run
from collector.answers.fastest_rules import make_fastest_table
from factories import make_cell, make_environment
from measured_runs import Collect, make_repeats

JAX = make_environment(versions={"jax": "0.11.2", "keras": "3.13.0"})


def make_three(graph: float, compiled: float) -> list[Result]:
    """Return PyTorch at 0.1 s, TensorFlow at `graph` and JAX at `compiled` seconds, on the same host."""
    jax = make_cell(framework="jax", mode="compiled")
    return [
        *make_spread(make_cell(), 0.1),
        *make_spread(make_cell(framework="tensorflow", mode="graph"), graph, TENSORFLOW),
        *make_spread(jax, compiled, JAX),
    ]


def test_those_that_are_not_told_from_the_fastest_stand_beside_it(collect: Collect) -> None:
    # JAX over PyTorch 1.005 is 0.6 standard errors of 0.0081652. TensorFlow over PyTorch 1.5: of the table's two ratios
    # together, t(4) at 1 - 0.05 / 4 is 3.4954, so the interval is a factor of exp(0.028541) = 1.02895 to either side.
    analysis = analyze_run(collect(*make_three(0.15, 0.1005)))
    table = make_fastest_table(analysis)
    assert table is not None
    assert table.headings[1:7] == [
        *("first", "step, ms", "samples/s", "second", "step, ms", "the second takes"),
    ]
    ((*row, longer, interval, programs, repeats, further),) = table.format_rows()
    # Nobody may take the first of a tie for the winner.
    assert row == [
        "conv6 train",
        "not told apart: PyTorch eager, JAX compiled",
        "100.0",
        "640.0",
        "JAX compiled",
        "100.5",
    ]
    # Together with TensorFlow's: 1.005 * exp(-/+ 0.028541) is 0.9767 to 1.0341.
    assert (longer, interval) == ("no difference shown", "−2.3 to 3.4 %")
    assert (programs, repeats) == ("3 of 3", "3 and 3")
    assert table.alike == "fp32 without TF32"
    assert further == "TensorFlow graph: 50.0 % longer than the first (45.8 to 54.3)"
    (text,) = select_texts(answer(collect, make_three(0.15, 0.1005)), "fastest")
    assert text.startswith(
        "conv6 train, CPU, batch 64, 32 px: no difference shown between PyTorch eager (100.0 ms) and JAX compiled "
        "(100.5 ms); TensorFlow graph takes 50.0 % longer than PyTorch eager (45.8 to 54.3)."
    )


def test_a_row_says_who_is_second_and_by_how_much(collect: Collect) -> None:
    # A reader took the lead over the third program for that of the first: the second stands beside it in every row.
    table = make_fastest_table(analyze_run(collect(*make_framework_pair(1.2))))
    assert table is not None
    ((_, first, seconds, _, second, other, longer, interval, *_),) = table.format_rows()
    assert (first, seconds, second, other) == ("PyTorch eager", "100.0", "TensorFlow graph", "120.0")
    # Of one ratio, t(4) is 2.7764: 1.2 * exp(-/+ 2.7764 * 0.0081652) is 1.1731 to 1.2275.
    assert (longer, interval) == ("20.0 % longer", "17.3 to 22.8 %")


def test_a_slower_one_that_is_less_well_known_is_named_as_not_told_apart(collect: Collect) -> None:
    # TensorFlow over PyTorch 1.05 is 6.0 standard errors, p = 0.004: of two it differs. JAX over PyTorch 1.1, whose
    # repeats lie 10 % apart, is 1.7 of its own.
    results = [result for result in make_three(0.105, 0.11) if result.cell.framework != "jax"]
    jax = make_repeats(make_cell(framework="jax", mode="compiled"), 0.1, 0.11, 0.121, environment=JAX)
    table = make_fastest_table(analyze_run(collect(*results, *jax)))
    assert table is not None
    ((_, first, _, _, second, _, longer, *_, further),) = table.format_rows()
    assert (first, second) == ("PyTorch eager", "TensorFlow graph")
    assert longer == "5.0 % longer"
    assert further == ("JAX compiled (110.0 ms; 100 to 121 ms, repeats disagree): no difference shown from the first")


def test_a_pair_that_no_table_has_is_judged_too(collect: Collect) -> None:
    # JAX is fastest: its table has PyTorch, which takes 1.25 times as long. TensorFlow, which comes next and takes 10 %
    # longer, has no table with JAX: a family of its own, of one pair; 1.1 * exp(-/+ 0.02267).
    (text,) = select_texts(answer(collect, make_three(0.088, 0.08)), "fastest")
    assert text.startswith(
        "conv6 train, CPU, batch 64, 32 px: JAX compiled (80.00 ms), then TensorFlow graph (88.00 ms), which takes "
        "10.0 % longer (7.5 to 12.5)."
    )


def test_the_verdict_is_that_of_the_table_of_comparisons(collect: Collect) -> None:
    # A log ratio of 0.0245 is 3.0 standard errors: p = 0.040. Alone it differs; of ten, 0.005 is asked for.
    pair = make_framework_pair(1.0248)
    others = [result for size in range(1, 10) for result in make_framework_pair(1.0, batch_size=size)]
    (alone,) = select_texts(answer(collect, pair), "fastest")
    assert "PyTorch eager (100.0 ms), then TensorFlow graph" in alone
    beside = analyze_run(collect(*pair, *others))
    table = make_fastest_table(beside)
    assert table is not None
    (first,) = (row for row in table.format_rows() if "batch 64" in row[0])
    # Welch's t of 10 ratios, 4 degrees of freedom, at 1 - 0.05 / 20 is 5.5976: exp(-/+ 5.5976 * 0.0081652) = 0.955,
    # 1.047; of 1.0248 that is -2.1 to 7.3 %. What is known of them stands there though nothing is shown.
    assert first[4:8] == ("TensorFlow graph", "102.5", "no difference shown", "−2.1 to 7.3 %")
    assert all(row[6] == "no difference shown" for row in table.format_rows() if row != first)
    assert set(beside.comparisons["frameworks"]["verdict"]) == {"no difference shown"}


def test_programs_on_different_machines_or_of_one_repeat_are_not_ranked(collect: Collect) -> None:
    graph = make_cell(framework="tensorflow", mode="graph")
    elsewhere = make_environment(hostname="bench-2", versions={"tensorflow": "2.21.0"})
    for others in (make_spread(graph, 0.2, elsewhere), make_repeats(graph, 0.2, environment=TENSORFLOW)):
        assert make_fastest_table(analyze_run(collect(*make_spread(make_cell(), 0.1), *others))) is None


def test_repeats_that_disagree_are_named_in_the_row_and_as_unknown(collect: Collect) -> None:
    graph = make_cell(framework="tensorflow", mode="graph")
    results = [*make_spread(make_cell(), 0.1), *make_repeats(graph, 0.096, 0.096, 0.12, environment=TENSORFLOW)]
    table = make_fastest_table(analyze_run(collect(*results)))
    assert table is not None
    (row,) = table.format_rows()
    # No repeat took the mean of them: their own times stand beside it.
    assert row[5] == "103.4"
    assert row[-1] == "TensorFlow graph: 96.0 to 120 ms, repeats disagree"
    (text,) = select_texts(answer(collect, results), "repeats-disagree")
    assert text == (
        "Repeats disagree by more than their steps spread in 1 cell (conv6 train, TensorFlow graph: 1 of 3 takes 25 "
        "% longer: 96.0, 96.0 and 120 ms): which speed is the usual one is not known, and takes more repeats."
    )


def test_a_row_names_its_programs_and_is_of_all_of_them(collect: Collect) -> None:
    """That one program is first in all rows must not take its name out of them."""
    results = [result for size in (1, 2, 3) for result in make_framework_pair(1.5, batch_size=size)]
    table = make_fastest_table(analyze_run(collect(*results)))
    assert table is not None
    assert {"first", "second"} <= set(table.lift_alike().headings)
    assert [len(cells.split()) for cells in table.rows["cell_id"]] == [2, 2, 2]


def test_a_row_says_how_many_programs_were_measured_and_how_many_repeats_count_on_each_side(collect: Collect) -> None:
    graph = make_repeats(make_cell(framework="tensorflow", mode="graph"), 0.2, 0.2, environment=TENSORFLOW)
    table = make_fastest_table(analyze_run(collect(*make_spread(make_cell(), 0.1), *graph)))
    assert table is not None
    (row,) = (dict(zip(table.headings, texts, strict=True)) for texts in table.format_rows())
    assert (row["programs that did it"], row["their repeats"]) == ("2 of 2", "3 and 2")


def test_a_row_says_of_how_many_programs_of_the_run_it_is(collect: Collect) -> None:
    """JAX did one of two kinds of work: of the other, nobody knows whether it were first."""
    table = make_fastest_table(analyze_run(collect(*make_three(0.15, 0.12), *make_framework_pair(1.5, batch_size=1))))
    assert table is not None
    column = table.headings.index("programs that did it")
    found = {row[0]: row[column] for row in table.format_rows()}
    assert found == {"conv6 train, batch 64": "3 of 3", "conv6 train, batch 1": "2 of 3"}


def test_those_that_are_not_told_from_the_second_stand_beside_it(collect: Collect) -> None:
    """JAX over TensorFlow is 1.005, of 0.6 standard errors; PyTorch is ahead of both by half."""
    table = make_fastest_table(analyze_run(collect(*make_three(0.15, 0.1507))))
    assert table is not None
    (row,) = (dict(zip(table.headings, texts, strict=True)) for texts in table.format_rows())
    assert (row["first"], row["second"]) == (
        "PyTorch eager",
        "TensorFlow graph; not told from it: JAX compiled (150.7 ms)",
    )
    apart = make_fastest_table(analyze_run(collect(*make_three(0.15, 0.18))))
    assert apart is not None
    assert [texts[4] for texts in apart.format_rows()] == ["TensorFlow graph"]


def test_what_is_said_of_all_rows_stays_beside_what_they_have_in_common(collect: Collect) -> None:
    results = [result for size in (1, 2, 3) for result in make_framework_pair(1.5, batch_size=size)]
    table = make_fastest_table(analyze_run(collect(*results)))
    assert table is not None
    assert table.alike.startswith("fp32 without TF32 · ")
