"""collector.results.frames: frames from rows, and rows from frames."""

import math

import pandas as pd

from collector.results.frames import list_rows, make_frame

COLUMNS = {"name": "str", "number": "Int64", "is_so": "boolean", "size": "float64", "count": "int64"}


def test_rows_come_back_as_they_went_in_with_none_for_what_is_missing() -> None:
    full = {"name": "conv6", "number": 3, "is_so": True, "size": 0.5, "count": 1}
    bare = {"name": None, "number": None, "is_so": None, "size": None, "count": 2}

    first, second = list_rows(make_frame([full, bare], COLUMNS))

    assert first == full
    assert {name: type(value) for name, value in first.items()} == {name: type(value) for name, value in full.items()}
    assert (second["number"], second["is_so"], second["count"]) == (None, None, 2)
    assert math.isnan(second["name"])
    assert math.isnan(second["size"])


def test_a_frame_without_rows_or_without_columns_has_none() -> None:
    assert list_rows(make_frame([], COLUMNS)) == []
    assert list_rows(pd.DataFrame(index=range(2))) == [{}, {}]
