"""Arguments of the Python API: a right call of each public function, and values that are wrong for most arguments."""

import datetime
import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

import benchmatrix

RUN, STORE = "study-h200-2", "file://docs/results/2026-11-21-h200"
READS: dict[str, Any] = {"store": STORE, "verify": None}
RIGHT: dict[str, dict[str, Any]] = {
    "list_runs": {"store": STORE},
    "load_repeats": {"runs": RUN, **READS},
    "load_cells": {"runs": RUN, "moderated": False, **READS},
    "load_steps": {"run": RUN, **READS},
    "compare": {
        **{"a": {"framework": "pytorch", "mode": "eager"}, "b": {"framework": "jax", "mode": "compiled"}, "runs": RUN},
        **{
            "where": {"model": "resnet18"},
            "store_b": None,
            "metric": None,
            "floor_percent": None,
            "include_invalid": False,
            **READS,
        },
    },
    "audit": {"table": "nvidia-t4-resnet50", "runs": (), "include_invalid": False, **READS},
}
"""A call of each public function that is right, with each of its arguments."""


class Hostile:
    """A value that cannot even be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("cannot be shown")


class BytesPath(PathLike[bytes]):
    """A path that is no text."""

    def __fspath__(self) -> bytes:
        return b"x"


WRONG: dict[str, Callable[[], Any]] = {
    "integer": lambda: 5,
    "huge-integer": lambda: 10**5000,
    "float": lambda: -5.5,
    "nan": lambda: float("nan"),
    "truth": lambda: True,
    "complex": lambda: 5j,
    "decimal": lambda: Decimal(5),
    "fraction": lambda: Fraction(1, 3),
    "bytes": lambda: b"x",
    "none": lambda: None,
    "empty-text": lambda: "",
    "long-text": lambda: "x" * 10**6,
    "half-character": lambda: "\ud800",
    "null-character": lambda: "a\0b",
    "lines": lambda: "a\nerror: b\u202e\x1b[2J",
    "date": lambda: datetime.date(2026, 11, 22),
    "empty-list": list,
    "list-of-integers": lambda: [5],
    "list-of-lists": lambda: [[RUN]],
    "list-of-none": lambda: [None],
    "mapping": lambda: {"framework": object()},
    "mapping-of-integers": lambda: {5: 5},
    "mapping-of-huge-integers": lambda: {"batch_size": 10**5000},
    "mapping-with-equals": lambda: {"batch_size=64": 5},
    "endless": lambda: itertools.repeat("x"),
    "generator": lambda: (number for number in range(3)),
    "array": lambda: np.array([1.0, 2.0]),
    "frame": lambda: pd.DataFrame({"a": [1]}),
    "missing": lambda: pd.NA,
    "function": lambda: len,
    "type": lambda: int,
    "path-of-bytes": BytesPath,
    "hostile": Hostile,
    "list-of-hostile": lambda: [Hostile()],
}
texts = st.text(max_size=30) | st.sampled_from([RUN, STORE, "file://", "s3://", "gs://a b", "~nosuchuser", "/dev/zero"])
scalars = texts | st.integers() | st.floats() | st.booleans()
arguments = scalars | st.lists(scalars, max_size=2) | st.dictionaries(texts, scalars, max_size=2)


def list_functions() -> Mapping[str, Callable[..., Any]]:
    """Return the public functions by name."""
    found = {name: getattr(benchmatrix, name) for name in benchmatrix.__all__}
    return {name: value for name, value in found.items() if inspect.isroutine(value)}


def list_arguments() -> Iterator[tuple[str, str]]:
    """Yield function and name of each argument of the public functions."""
    for name, function in list_functions().items():
        yield from ((name, argument) for argument in inspect.signature(function).parameters)
