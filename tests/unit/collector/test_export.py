"""Tables written to files."""

import io
from pathlib import Path

import pandas as pd
import pytest

from collector.export import write_collection, write_csv
from factories import make_failed_result, make_result
from measured_runs import collect_results


def test_written_tables_read_back_as_they_were(tmp_path: Path) -> None:
    results = [make_result(), make_failed_result(repeat=2, stderr_tail='a,"b"\nc')]
    collection = collect_results(tmp_path / "store", *results)
    paths = write_collection(collection, tmp_path / "new" / "tables")
    by_name = {path.name: path for path in paths}
    pd.testing.assert_frame_equal(collection.results, pd.read_parquet(by_name["results.parquet"]))
    pd.testing.assert_frame_equal(collection.samples, pd.read_parquet(by_name["samples.parquet"]))
    rows = pd.read_csv(by_name["results.csv"])
    assert rows["status"].to_list() == ["ok", "failed", "missing"]
    assert rows["stderr_tail"][1] == 'a,"b"\nc'
    assert pd.read_csv(by_name["cells.csv"])["center_step_seconds"].to_list() == [0.1]
    assert pd.read_csv(by_name["failures.csv"])["status"].to_list() == ["failed", "missing"]
    assert pd.read_csv(by_name["skipped.csv"]).columns.to_list() == ["key", "reason"]


def format_csv(frame: pd.DataFrame) -> bytes:
    file = io.BytesIO()
    write_csv(frame, file)
    return file.getvalue()


@pytest.mark.parametrize("text", ["=cmd()", "+1+cmd", "-2+3", "@sum", "\t=x", "=1"])
def test_a_text_that_a_spreadsheet_would_calculate_is_none_any_more(text: str) -> None:
    frame = pd.DataFrame({"a": pd.Series([text, None], dtype="str"), "b": pd.Series([text, 1], dtype="object")})
    first = pd.read_csv(io.BytesIO(format_csv(frame)), dtype="str").iloc[0].to_list()
    assert first == [f"'{text}"] * 2


@pytest.mark.parametrize("text", ["-1", "+1.5e-7", "-.5", "-inf", "-", "x=1"])
def test_numbers_are_no_formulas(text: str) -> None:
    assert format_csv(pd.DataFrame({"a": [text], "b": ["y"]})) == f"a,b\n{text},y\n".encode()


def test_a_carriage_return_does_not_end_the_line() -> None:
    frame = pd.DataFrame({"a": ["one\rtwo", "x"], "b": ["y", "z"]})
    assert pd.read_csv(io.BytesIO(format_csv(frame))).to_dict("list") == {"a": ["one\ufffdtwo", "x"], "b": ["y", "z"]}
