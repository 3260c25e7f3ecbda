"""Repeats that lie one percent apart, of one framework and of two."""

from typing import Any

from bench.schema import Cell, Environment, Result
from factories import make_cell, make_environment, make_result

TENSORFLOW = make_environment(versions={"tensorflow": "2.21.0", "keras": "3.13.0"})
SPREAD = (0.99, 1.0, 1.01)
"""Factors of the repeats of a cell: their logs have a standard deviation of 1.0 %."""


def make_spread(cell: Cell, seconds: float, environment: Environment | None = None, **overrides: Any) -> list[Result]:
    """Return three repeats whose geometric mean is `seconds` to a hundredth of a percent, 1 % apart."""
    given: dict[str, Any] = {} if environment is None else {"environment": environment}
    return [
        make_result(cell, repeat=number, step_seconds=(seconds * factor,) * 3, **given, **overrides)
        for number, factor in enumerate(SPREAD, start=1)
    ]


def make_framework_pair(ratio: float, **fields: Any) -> list[Result]:
    """Return repeats of TensorFlow that takes `ratio` times as long as PyTorch, on the same host."""
    graph = make_cell(framework="tensorflow", mode="graph", **fields)
    return [*make_spread(make_cell(**fields), 0.1), *make_spread(graph, 0.1 * ratio, TENSORFLOW)]
