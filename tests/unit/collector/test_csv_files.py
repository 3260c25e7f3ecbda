"""Data frames as CSV: the bytes that pandas writes."""

import io

import numpy as np
import pandas as pd
import pytest

from collector import csv_files
from collector.csv_files import write_csv

FRAME = pd.DataFrame(
    {
        "float": pd.Series([0.1, -0.0, 0.0, np.nan, 1e16, 1e-5, np.inf], dtype="float64"),
        "int": pd.Series([1, 2, 3, 4, 5, 6, -7], dtype="int64"),
        "Int": pd.Series([1, None, 2**60 + 1, 1, 1, 1, 0], dtype="Int64"),
        "boolean": pd.Series([True, None, False, True, True, True, True], dtype="boolean"),
        "bool": [True, False, True, True, True, True, True],
        "text": pd.Series(['a,"b"', "", None, "two\nlines", "50 %s", "x", "é"], dtype="str"),
        "time": pd.to_datetime(
            pd.Series(["2026-01-01", "2026-01-01 00:00:00.5", None, *["2026-11-22 10:00:01.000001"] * 4]),
            utc=True,
            format="ISO8601",
        ).astype("datetime64[us, UTC]"),
        "mixed": pd.Series([1, True, 1.0, None, "x", 0, False], dtype="object"),
        "same, 100 %": ["5 %, all"] * 7,
        "none": pd.Series([None] * 7, dtype="str"),
        "no number": pd.Series([None] * 7, dtype="float64"),
    }
)


def format_csv(frame: pd.DataFrame) -> bytes:
    file = io.BytesIO()
    write_csv(frame, file)
    return file.getvalue()


@pytest.mark.parametrize("rows_at_once", [2, 3, 100])
def test_the_bytes_are_those_of_pandas(rows_at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_files, "ROWS_AT_ONCE", rows_at_once)
    assert format_csv(FRAME) == FRAME.to_csv(index=False, lineterminator="\n").encode()


@pytest.mark.parametrize("rows", [slice(0), slice(1), slice(3, 4), slice(6, None, -1)])
def test_parts_of_a_frame_are_written_alike(rows: slice) -> None:
    frame = FRAME.iloc[rows]
    assert format_csv(frame) == frame.to_csv(index=False, lineterminator="\n").encode()


def test_rows_that_are_all_alike_are_all_written() -> None:
    frame = pd.DataFrame({"a": [1.5, 1.5], "b": ["x", "x"]})
    assert format_csv(frame) == b"a,b\n1.5,x\n1.5,x\n"


@pytest.mark.parametrize("text", ["=cmd()", "+1+cmd", "-2+3", "@sum", "\t=x", "=1"])
def test_a_text_that_a_spreadsheet_would_calculate_is_none_any_more(text: str) -> None:
    frame = pd.DataFrame({"a": pd.Series([text, "x"], dtype="str"), "b": pd.Series([text, 1], dtype="object")})
    first = pd.read_csv(io.BytesIO(format_csv(frame)), dtype="str").iloc[0].to_list()
    assert first == [f"'{text}"] * 2


@pytest.mark.parametrize("text", ["-1", "+1.5e-7", "-.5", "-inf", "-", "x=1"])
def test_numbers_are_no_formulas(text: str) -> None:
    assert format_csv(pd.DataFrame({"a": [text], "b": ["y"]})) == f"a,b\n{text},y\n".encode()


def test_a_carriage_return_does_not_end_the_line() -> None:
    frame = pd.DataFrame({"a": ["one\rtwo", "x"], "b": ["y", "z"]})
    assert pd.read_csv(io.BytesIO(format_csv(frame))).to_dict("list") == {"a": ["one\ufffdtwo", "x"], "b": ["y", "z"]}
