"""Columns are packed without loss but for digits, and steps are reduced by the stated rule."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.report.packing import (
    compress_document,
    expand_column,
    expand_document,
    make_pools,
    pack_column,
    pack_frame,
    round_number,
)
from collector.report.page_steps import MAX_POINTS, MIN_POINTS, choose_points, pack_steps, reduce_steps
from factories import make_cell, make_result
from measured_runs import collect_results


@given(st.lists(st.none() | st.text()))
def test_texts_are_the_same_after_unpacking(texts: list[str | None]) -> None:
    packed = expand_document(compress_document(pack_column(texts)))
    assert expand_column(packed) == texts


@given(st.lists(st.none() | st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_numbers_keep_seven_digits(numbers: list[float | None]) -> None:
    found = expand_column(expand_document(compress_document(pack_column(numbers))))
    for number, unpacked in zip(numbers, found, strict=True):
        if number is None:
            assert unpacked is None
        else:
            assert unpacked == pytest.approx(number, rel=1e-6, abs=0)


def test_what_is_missing_or_not_finite_is_null() -> None:
    frame = pd.DataFrame({"a": [1.5, math.nan, math.inf], "b": pd.array([1, None, 3], dtype="Int64")})
    frame = frame.assign(c=pd.Series([True, None, False], dtype="boolean"), d=pd.Series(["x", None, "x"], dtype="str"))
    assert pack_frame(frame) == {
        "size": 3,
        "columns": {
            "a": {"numbers": [1.5, None, None]},
            "b": {"numbers": [1, None, 3]},
            "c": {"texts": ["True", "False"], "codes": [0, -1, 1]},
            "d": {"texts": ["x"], "codes": [0, -1, 0]},
        },
    }


@pytest.mark.parametrize(("number", "rounded"), [(0.123456789, 0.1234568), (2.0, 2), (1e300, 1e300), (0.0, 0)])
def test_a_whole_number_is_written_as_one(number: float, rounded: float) -> None:
    found = round_number(number, 7)
    assert (found, type(found)) == (rounded, type(rounded))


def test_the_same_document_is_the_same_text_each_time() -> None:
    assert compress_document({"a": [1, "</script>\u2028"]}) == compress_document({"a": [1, "</script>\u2028"]})


def test_packed_text_can_stand_in_any_element() -> None:
    assert not set("<>&\"'\u2028") & set(compress_document({"a": "</script>\u2028<!--&\"'"}))


def test_fewer_points_are_kept_of_more_repeats() -> None:
    # 600,000 numbers: three for a point, two kinds of steps for a repeat.
    assert [choose_points(number) for number in (0, 1, 1_000, 10_000, 10**6)] == [MAX_POINTS] * 2 + [
        100,
        10,
        MIN_POINTS,
    ]


def test_texts_of_the_cells_are_named_by_their_number_and_rising_numbers_by_their_differences() -> None:
    ids = [f"cell {number}" for number in range(30)]
    cells = pack_frame(pd.DataFrame({"cell_id": ids, "label": "one label"}))
    pools = make_pools(cells)
    assert pack_column(ids[20:25], pools=pools) == {"pool": "cell_id", "deltas": [20, 1, 1, 1, 1]}
    assert expand_column(pack_column([ids[7], None, ids[3]], pools=pools), pools) == [ids[7], None, ids[3]]
    assert pack_column(["cell 1", "another"], pools=pools) == {"texts": ["cell 1", "another"], "codes": [0, 1]}
    assert pack_column([None], pools=pools) == {"numbers": [None]}


def test_steps_stay_as_they_are_where_medians_would_take_as_much_room() -> None:
    # 50,000 repeats leave 3 points for each: 9 steps are as many numbers as 3 points with their ends.
    short, long, alike = reduce_steps([np.arange(1.0, 10.0), np.arange(1.0, 11.0), np.arange(2.0, 11.0)], 3)
    assert short == ([1000 * step for step in range(1, 10)], 1)
    assert alike == ([1000 * step for step in range(2, 11)], 1)
    assert long == ([[2500, 1000, 4000], [6500, 5000, 8000], [9500, 9000, 10000]], 4)


def test_a_short_series_is_whole_and_a_long_one_has_medians_with_ranges(tmp_path: Path) -> None:
    long = [0.001] * 299 + [0.5]
    results = [
        make_result(make_cell(), repeat=1, step_seconds=(0.1, 0.2, 0.3), warmup_step_seconds=(0.9,)),
        make_result(make_cell(), repeat=2, step_seconds=long),
    ]
    columns = pack_steps(collect_results(tmp_path, *results, repeats=2), {})["columns"]
    assert columns["warmup"]["values"][0] == [900]
    assert columns["timed"]["values"][0] == [100, 200, 300]
    assert columns["num_timed"]["numbers"] == [3, 300]
    assert columns["timed_width"]["numbers"] == [1, 2]
    assert columns["timed"]["values"][1] == [[1, 1, 1]] * 149 + [[250.5, 1, 500]]
    assert columns["quantiles"]["values"][0] == [100, 110, 150, 200, 250, 290, 300]
