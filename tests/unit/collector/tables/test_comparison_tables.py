"""The tables of comparisons."""

from pathlib import Path

from collector.analysis import analyze_run
from collector.comparisons import DEVICES, FRAMEWORKS
from collector.tables.comparisons import make_comparison_table, make_ranking_table
from collector.tables.table import Table
from factories import make_cell, make_environment, make_validity
from measured_runs import collect_results, make_framework_pair, make_repeats, make_spread
from price_tables import make_price, make_price_table


def read_first_row(table: Table) -> dict[str, str]:
    return dict(zip(table.headings, table.format_rows()[0], strict=True))


def test_comparisons_for_people_hold_ratio_verdict_and_hardware(tmp_path: Path) -> None:
    results = [
        *make_repeats(make_cell(), 0.4, 0.4),
        *make_repeats(make_cell(framework="tensorflow"), 0.5, 0.5),
        *make_repeats(make_cell(device="gpu"), 0.01, 0.01),
    ]
    analysis = analyze_run(collect_results(tmp_path, *results, repeats=2))
    tables = [make_comparison_table(comparison, analysis) for comparison in (FRAMEWORKS, DEVICES)]
    frameworks, devices = map(read_first_row, tables)
    remarks = [table.remark for table in tables]
    assert remarks[0].endswith(" Hardware: Intel(R) Xeon(R) CPU @ 2.20GHz, 2 threads.")
    assert remarks[1].endswith(" GPU: Tesla T4. CPU: Intel(R) Xeon(R) CPU @ 2.20GHz, 2 threads.")
    assert [frameworks[name] for name in ("second, ms", "first, ms")] == ["400.0", "500.0"]
    assert devices["verdict"] == "CPU takes 40.0 times as long"
    assert "Measured on: one machine." in remarks[0]
    assert "Measured on: one card and its host." in remarks[1]
    assert frameworks["verdict"].startswith("TensorFlow eager takes 25")


def test_pairs_that_are_left_out_have_no_row(tmp_path: Path) -> None:
    throttled = make_repeats(make_cell(framework="tensorflow"), 0.2, 0.2, validity=make_validity("throttled"))
    collection = collect_results(tmp_path, *make_repeats(make_cell(), 0.1, 0.1), *throttled, repeats=2)
    assert make_comparison_table(FRAMEWORKS, analyze_run(collection)).rows.empty


def test_a_pair_has_one_interval_in_the_direction_of_its_verdict(tmp_path: Path) -> None:
    # Sides 1 % apart with 3 repeats: the standard error of the log ratio is 0.0081652, with 4 degrees of freedom. Of 2
    # ratios together, t at 1 - 0.05 / 4 is 3.4954: a factor of exp(0.028541) = 1.02895 to either side.
    results = [*make_framework_pair(0.8), *make_framework_pair(1.01, phase="infer")]
    table = make_comparison_table(FRAMEWORKS, analyze_run(collect_results(tmp_path, *results, repeats=3)))
    assert [heading for heading in table.headings if "95 %" in heading or "ratio" in heading] == ["95 % interval"]
    rows = [dict(zip(table.headings, row, strict=True)) for row in table.format_rows()]
    # 0.1 / 0.08 = 1.25: 1.2148 and 1.2862; 1.01: 0.98158 and 1.03924.
    assert [(row["verdict"], row["95 % interval"]) for row in rows] == [
        ("PyTorch eager takes 25.0 % longer", "21.5 to 28.6 %"),
        ("no difference shown", "−1.8 to 3.9 %"),
    ]


def test_a_ratio_that_was_not_tested_has_the_interval_of_its_own(tmp_path: Path) -> None:
    # On two machines: t(4) at 97.5 % is 2.7764, a factor of exp(0.02267) = 1.02293 about 2; the other pair is tested.
    elsewhere = make_environment(hostname="bench-2", versions={"tensorflow": "2.21.0"})
    graph = make_cell(framework="tensorflow", mode="graph", phase="infer")
    untested = [*make_spread(make_cell(phase="infer"), 0.1), *make_spread(graph, 0.2, elsewhere)]
    results = [*make_framework_pair(0.8), *untested]
    table = make_comparison_table(FRAMEWORKS, analyze_run(collect_results(tmp_path, *results, repeats=3)))
    rows = [dict(zip(table.headings, row, strict=True)) for row in table.format_rows()]
    (row,) = (row for row in rows if row["verdict"].startswith("no verdict"))
    assert row["95 % interval"] == "1.96 to 2.05 times"


def test_the_ranking_names_the_share_of_the_machine_and_where_repeats_are_too_few_to_tell(tmp_path: Path) -> None:
    fast, slow = (make_cell(device="gpu", framework=name) for name in ("pytorch", "tensorflow"))
    results = [*make_spread(fast, 0.1), *make_repeats(slow, 0.1, 0.12)]
    prices = make_price_table(make_price("four", 4e-6, gpu="T4", num_gpus=4))
    table = make_ranking_table(analyze_run(collect_results(tmp_path, *results, repeats=3), prices=prices))
    (_, *fastest, _), (_, cheapest, tied, _) = table.format_rows()
    assert fastest == ["fastest: PyTorch eager, 100.0 ms", "TensorFlow eager (2 repeats: too few to tell)"]
    # 15.625 steps of 0.1 s at a millionth of a euro a second
    assert cheapest.endswith(", PyTorch eager, 0.00000156 EUR for 1,000 samples on 1/4 of X north four (4 x T4)")
    assert tied.endswith(", TensorFlow eager (2 repeats: too few to tell)")
