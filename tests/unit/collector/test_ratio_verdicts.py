"""Ratios in words: by themselves, and after Holm's adjustment."""

import numpy as np
import pytest
from scipy import stats

from collector.comparisons import FRAMEWORKS, STRONG_SCALING, compare_cells
from collector.ratio_verdicts import adjust_verdicts, count_differences, describe_ratio
from collector.results.frames import Row, make_frame
from collector.results.summary import summarize_cells
from collector.statistics import Estimate
from factories import make_cell, make_environment, make_gpu
from measured_runs import Collect, make_repeats


@pytest.mark.parametrize(
    ("center", "error", "verdict"),
    [
        # Student's t at 4 degrees of freedom and 97.5 %: 2.776445; exp(2.776445 * 0.02) = 1.0571
        (1.12, 0.02, "TensorFlow takes 12.0 % longer"),
        (1 / 1.12, 0.02, "PyTorch takes 12.0 % longer"),
        (3.0, 0.02, "TensorFlow takes 3.00 times as long"),
        (1.2, None, "no verdict: one repeat counts, no interval"),
    ],
)
def test_the_side_that_takes_longer_is_named(center: float, error: float | None, verdict: str) -> None:
    ratio = Estimate(center=center, log_standard_error=error, degrees_of_freedom=4)
    assert describe_ratio(ratio, subject="TensorFlow", reference="PyTorch") == verdict


def test_a_difference_that_the_number_of_tests_explains_is_not_shown_after_the_adjustment() -> None:
    rows: list[Row] = [
        {"p_value": 0.04, "direction": "A is slower", "verdict": "A takes 5 % longer"},
        {"p_value": None},
        {"p_value": 0.001, "direction": "B is faster", "verdict": "A takes 9 % longer"},
    ]
    adjusted = adjust_verdicts(rows)
    # Of two tests, Holm doubles the smaller and leaves the larger.
    assert [row.get("p_adjusted") for row in adjusted] == [pytest.approx(0.04), None, pytest.approx(0.002)]
    (first, *_) = adjust_verdicts([*rows, {"p_value": 0.03, "direction": "C is faster"}])
    assert (first["p_adjusted"], first["adjusted_verdict"]) == (pytest.approx(0.06), "no difference shown")
    assert adjusted[2]["adjusted_verdict"] == "B is faster"
    assert [row.get("verdict") for row in adjusted] == ["A takes 5 % longer", None, "A takes 9 % longer"]
    assert first["verdict"] == "no difference shown"  # one verdict, the adjusted one


@pytest.mark.parametrize(
    ("verdicts", "sentence"),
    [
        ([], ""),
        ([(None, "no verdict: one repeat counts, no interval", None)], ""),
        ([(0.5, "no difference shown", "no difference shown")], "1 ratio is compared; no difference is shown."),
        (
            [
                (0.001, "A takes 2.00 times as long", "A is slower"),
                (0.04, "no difference shown", "no difference shown"),
                (0.9, "no difference shown", "no difference shown"),
            ],
            "3 ratios are compared; after Holm's adjustment 1 of 2 differences remain.",
        ),
    ],
)
def test_the_number_of_comparisons_is_said_in_words(
    verdicts: list[tuple[float | None, str, str | None]], sentence: str
) -> None:
    columns = {"p_value": "float64", "verdict": "str", "adjusted_verdict": "str"}
    rows = [dict(zip(columns, verdict, strict=True)) for verdict in verdicts]
    assert count_differences(make_frame(rows, columns)) == sentence


def test_the_pairs_of_a_comparison_are_one_family_of_welchs_tests(collect: Collect) -> None:
    sides = {8: ((0.11, 0.12, 0.13), (0.10, 0.11, 0.115)), 16: ((0.5, 0.51, 0.52), (0.1, 0.11, 0.12))}
    results = [
        result
        for batch, (over, under) in sides.items()
        for framework, medians in (("tensorflow", over), ("pytorch", under))
        for result in make_repeats(make_cell(framework=framework, batch_size=batch), *medians)
    ]
    single = [
        *make_repeats(make_cell(batch_size=1), 0.1),
        *make_repeats(make_cell(batch_size=1, framework="tensorflow"), 0.2),
    ]
    rows = compare_cells(summarize_cells(collect(*results, *single)), FRAMEWORKS).set_index("batch_size")
    p_values = {
        batch: stats.ttest_ind(np.log(over), np.log(under), equal_var=False).pvalue
        for batch, (over, under) in sides.items()
    }
    assert rows["p_value"].dropna().to_dict() == pytest.approx(p_values)
    assert rows.loc[16, "p_adjusted"] == pytest.approx(2 * p_values[16])
    assert rows.loc[16, "adjusted_verdict"] == "TensorFlow is slower"
    assert rows["adjusted_verdict"].isna().to_dict() == {8: False, 16: False, 1: True}


def test_an_efficiency_is_not_tested(collect: Collect) -> None:
    results = [
        result
        for number in (1, 4)
        for result in make_repeats(
            make_cell(device="gpu", num_gpus=number),
            0.1,
            0.11,
            environment=make_environment(gpus=(make_gpu(),) * number),
        )
    ]
    (row,) = compare_cells(summarize_cells(collect(*results)), STRONG_SCALING).to_dict("records")
    assert np.isnan(row["p_value"])
    assert np.isnan(row["p_adjusted"])
