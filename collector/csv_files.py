"""Write data frames as CSV: the bytes of `DataFrame.to_csv(index=False)`, in a third of its time.

pandas formats every value by itself. Most columns of a run's tables hold few different values, or none: here each
value of a column is formatted once for many rows, and columns with one value become a part of the line's template.

Two differences: a text that a spreadsheet would calculate (`=HYPERLINK(...)`) has an apostrophe before it, and what
steers a terminal is replaced (`collector.visible_text`).
"""

import re
from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import Any, BinaryIO

import numpy as np
import pandas as pd

from collector.visible_text import replace_steering

ROWS_AT_ONCE = 8192
NEEDS_QUOTES = re.compile(r'[,"\r\n]')
"""As csv.QUOTE_MINIMAL with commas and newlines, and a carriage return besides, which ends a line for most readers."""

FORMULA = re.compile(r"[=@\t\r]|[+-](?!(?:\d*\.?\d+(?:[eE][-+]?\d+)?|inf)?\Z)")
"""What a spreadsheet takes for a formula: hosts and error messages can have any text. Numbers are none."""


def write_csv(frame: pd.DataFrame, file: BinaryIO) -> None:
    """Write the columns of `frame`, of which there are several, in UTF-8 with a line of names; missing is empty."""
    file.write((",".join(_quote(map(str, frame.columns))) + "\n").encode())
    # How a time is written depends on the others of its column: with microseconds where one of them has some.
    times = frame.select_dtypes(["datetime", "datetimetz"])
    frame = frame.assign(**{str(name): times[name].astype("str") for name in times})
    for first in range(0, len(frame), ROWS_AT_ONCE):
        lines = _format_lines(frame.iloc[first : first + ROWS_AT_ONCE])
        file.write("".join(f"{line}\n" for line in lines).encode())


def _format_lines(rows: pd.DataFrame) -> Iterator[str]:
    columns = [_format_column(rows.iloc[:, number]) for number in range(rows.shape[1])]
    template = ",".join(column.replace("%", "%%") if isinstance(column, str) else "%s" for column in columns)
    varying = [column for column in columns if not isinstance(column, str)]
    return map(template.__mod__, zip(*varying, strict=True) if varying else repeat((), len(rows)))


def _format_column(column: "pd.Series[Any]") -> str | list[str]:
    """Return the text of each value; one text where it is the same for all."""
    if column.dtype == np.float64:
        # By their bits: 0.0 and -0.0 are equal, and are written differently.
        codes, bits = pd.factorize(np.ascontiguousarray(column.to_numpy()).view(np.int64))
        known = ["" if value != value else repr(value) for value in bits.view(np.float64).tolist()]
    elif column.dtype == np.object_:  # 1, 1.0 and True are equal, and are written differently
        return _quote("" if is_missing else str(value) for value, is_missing in zip(column, column.isna(), strict=True))
    else:
        codes, values = pd.factorize(column.array)
        known = _quote(map(str, values.tolist()))
    if len(known) <= 1 and (codes == codes[0]).all():
        return known[codes[0]] if codes[0] >= 0 else ""
    found: list[str] = np.array([*known, ""], dtype=np.object_)[codes].tolist()  # the code of a missing value is -1
    return found


def _quote(texts: Iterable[str]) -> list[str]:
    visible = map(replace_steering, texts)
    harmless = (f"'{text}" if FORMULA.match(text) else text for text in visible)
    return ['"' + text.replace('"', '""') + '"' if NEEDS_QUOTES.search(text) else text for text in harmless]
