"""Runs whose answers are known by hand, and what tests ask of them."""

from collections.abc import Iterable
from typing import Any

from bench.schema import Cell, Environment, Result
from collector.analysis import analyze_run
from collector.answers.answer import Answer
from collector.answers.run_answers import answer_run
from factories import make_cell, make_environment, make_gpu, make_result
from measured_runs import Collect

TENSORFLOW = make_environment(versions={"tensorflow": "2.21.0", "keras": "3.13.0"})
GPU_PYTORCH = make_environment(gpus=(make_gpu(),))
GPU_TENSORFLOW = make_environment(gpus=(make_gpu(),), versions={"tensorflow": "2.21.0"})
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


def answer(collect: Collect, results: Iterable[Result], **options: Any) -> list[Answer]:
    """Return the answers of a run of these results."""
    given = {name: options.pop(name) for name in ("cells", "repeats") if name in options}
    return answer_run(analyze_run(collect(*results, **given), **options))


def select_texts(answers: Iterable[Answer], rule: str) -> list[str]:
    """Return the texts of a rule's answers."""
    return [one.text for one in answers if one.rule == rule]
