"""Pack what the page draws on demand: columns instead of rows, texts by number, compressed, as text in an element.

A browser that opens a report of 10,000 cells reads ten times less than with rows of JSON. `templates/scripts/packed.js`
unpacks with DecompressionStream (gzip), which all major browsers have since 2023. The ids and labels of cells stand in
almost every table and plot: they are packed once, with the cells, and elsewhere by their number there.
"""

import base64
import gzip
import json
import math
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import pandas as pd

from collector.results.frames import Row

Packed = dict[str, Any]
Pools = Mapping[str, Mapping[str, int]]
"""Texts that the page has already, by the column of the cells that has them: each with its number there."""
POOLED_COLUMNS = ("cell_id", "label")
NUM_DIGITS = 7
"""Significant digits of packed numbers: four more than are ever shown, so that what is computed of them agrees."""
NUM_DRAWN_DIGITS = 5
"""Significant digits of what is only drawn or shown: one more than a plot's texts have."""
EXACT_DIGITS = 17
"""Significant digits from which every number can be read back."""
NUM_STEP_DIGITS = 4
"""Significant digits of single step times: one more than is shown."""
COMPRESSION_LEVEL = 9


def pack_frame(frame: pd.DataFrame, *, num_digits: int = NUM_DIGITS, pools: Pools | None = None) -> Packed:
    """Return the columns of `frame` by name, each as `pack_column` packs it, and the number of rows."""
    columns = {str(name): pack_column(frame[name].tolist(), num_digits=num_digits, pools=pools) for name in frame}
    return {"size": len(frame), "columns": columns}


def pack_rows(rows: Sequence[Row], *, num_digits: int = NUM_DIGITS, pools: Pools | None = None) -> Packed:
    """Return the same of rows, of which each may lack some of the names; what is true or false is 1 or 0."""
    names = dict.fromkeys(name for row in rows for name in row)
    values = {name: [_count_bool(row.get(name)) for row in rows] for name in names}
    columns = {name: pack_column(values[name], num_digits=num_digits, pools=pools) for name in names}
    return {"size": len(rows), "columns": columns}


def _count_bool(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value


def make_pools(cells: Packed) -> Pools:
    """Return the texts that a page has of its packed cells, for what is packed after them."""
    texts = {name: cells["columns"][name]["texts"] for name in POOLED_COLUMNS if "texts" in cells["columns"][name]}
    return {name: {text: number for number, text in enumerate(own)} for name, own in texts.items()}


def pack_column(values: Sequence[Any], *, num_digits: int = NUM_DIGITS, pools: Pools | None = None) -> Packed:
    """Return numbers as `{"numbers": [...]}`, anything else as `{"texts": [...], "codes": [...]}`.

    Numbers are rounded to `num_digits` significant digits; what is missing is null, or the code -1. Texts stand in the
    order in which they first occur, each once; where one of `pools` has all of them, its name stands there as `pool`.
    Codes are given as `deltas`, each less the one before it, where that is shorter.
    """
    known = [None if _is_missing(value) else value for value in values]
    if all(value is None or _is_number(value) for value in known):
        return {"numbers": [None if value is None else round_number(value, num_digits) for value in known]}
    if any(isinstance(value, list | dict) for value in known):
        return {"values": known}
    texts = [None if value is None else str(value) for value in known]
    used = dict.fromkeys(text for text in texts if text is not None)
    for name, pool in (pools or {}).items():
        if used and all(text in pool for text in used):
            return {"pool": name, **_pack_codes([-1 if text is None else pool[text] for text in texts])}
    codes = {text: code for code, text in enumerate(used)}
    return {"texts": list(codes), **_pack_codes([-1 if text is None else codes[text] for text in texts])}


def _pack_codes(codes: Sequence[int]) -> Packed:
    deltas = [code - before for code, before in zip(codes, [0, *codes], strict=False)]
    is_shorter = sum(len(str(delta)) for delta in deltas) < sum(len(str(code)) for code in codes)
    return {"deltas": deltas} if is_shorter else {"codes": list(codes)}


def round_number(value: float, num_digits: int) -> float:
    """Return a number with so many significant digits, as an integer where it is one: `1` is shorter than `1.0`."""
    rounded = float(f"{value:.{num_digits}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 2**53 else rounded


def compress_document(document: object) -> str:
    """Return a JSON document as base64 of gzip, which can stand in any element; the same bytes each time."""
    text = json.dumps(document, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode(), compresslevel=COMPRESSION_LEVEL, mtime=0)).decode()


def expand_document(text: str) -> Any:
    """Return the document that `compress_document` made `text` of."""
    return json.loads(gzip.decompress(base64.b64decode(text)))


def expand_column(packed: Mapping[str, Any], pools: Pools | None = None) -> list[Any]:
    """Return the values that `pack_column` packed with the same pools."""
    if "texts" in packed or "pool" in packed:
        texts = packed["texts"] if "texts" in packed else list((pools or {})[packed["pool"]])
        codes = packed["codes"] if "codes" in packed else accumulate(packed["deltas"])
        return [None if code < 0 else texts[code] for code in codes]
    values: list[Any] = packed["numbers"] if "numbers" in packed else packed["values"]
    return values


def _is_missing(value: object) -> bool:
    if isinstance(value, list | dict):
        return False
    return bool(pd.isna(value)) or (isinstance(value, float) and not math.isfinite(value))  # type: ignore[call-overload]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
