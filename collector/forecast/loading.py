"""Load the series that a command names: the shipped table of GPUs, an own one, or any table of dated values."""

from pathlib import Path
from typing import get_args

from bench.errors import UserError
from bench.foreign_files import ForeignFileError, read_foreign_file
from collector.forecast.gpu_table import SHIPPED_TABLE, holds_gpu_table, load_gpu_table, make_gpu_series
from collector.forecast.series import Series, SeriesKind, make_series
from collector.forecast.source_files import MAX_BYTES, URL_STARTS
from collector.forecast.tables import ValueRequest, load_values


def load_series(source: str | None, request: ValueRequest, kind: str | None = None) -> Series:
    """Return the series of a path or URL; of the shipped table of GPUs where `source` is None.

    `kind` None: "frontier" of a table of GPUs, "all" of another. A table of GPUs that is wanted whole is read by its
    own rules (`load_gpu_table`). Raises UserError as `load_values` and `make_series` do, and for an unknown kind.
    """
    chosen = parse_kind(kind)
    is_of_gpus = source is None or _is_gpu_table(source)
    if is_of_gpus and request == ValueRequest():
        return make_gpu_series(load_gpu_table(Path(source) if source else None), chosen or "frontier")
    return make_series(
        load_values(source or str(SHIPPED_TABLE), request), chosen or ("frontier" if is_of_gpus else "all")
    )


def parse_kind(text: str | None) -> SeriesKind | None:
    """Return the kind of series that a word means. Raises UserError for another word."""
    if text is None:
        return None
    known: tuple[SeriesKind, ...] = get_args(SeriesKind)
    for kind in known:
        if kind == text:
            return kind
    raise UserError(f"--series {text}: unknown; it takes {', '.join(known)}")


def _is_gpu_table(source: str) -> bool:
    """Return whether a file is a table of GPUs by its first line; what cannot be read is none."""
    if source.startswith(URL_STARTS):
        return False
    try:
        return holds_gpu_table(read_foreign_file(Path(source), max_bytes=MAX_BYTES))
    except ForeignFileError:
        return False
