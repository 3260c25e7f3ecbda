"""Results: contradictions are refused, and the rate is computed from the timed window."""

from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from bench.schema import Cell, Samples
from factories import (
    START,
    make_cell,
    make_failed_result,
    make_phases,
    make_result,
)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cell_id": make_cell(seed=1).cell_id}, "is not the id of its cell"),
        ({"finished_at": START - timedelta(microseconds=1)}, "finished_at is before started_at"),
        ({"samples": None}, "needs samples, memory, environment, validity and every phase"),
        ({"memory": None}, "needs samples, memory, environment, validity and every phase"),
        ({"validity": None}, "needs samples, memory, environment, validity and every phase"),
        ({"environment": None}, "needs samples, memory, environment, validity and every phase"),
        ({"phases": make_phases((0.1,) * 3, (0.2, 0.1), import_seconds=None)}, "every phase"),
        ({"phases": make_phases((0.1,) * 3, (0.2, 0.1), steady_seconds=0.2999)}, "more than its window"),
        ({"phases": make_phases((0.1,) * 3, (0.2, 0.1), warmup_seconds=0.2999)}, "more than its window"),
        ({"error": make_failed_result().error}, "a result with status 'ok' has none"),
        ({"status": "failed"}, "a result with status 'failed' must say why"),
        ({"status": "timeout"}, "a result with status 'timeout' must say why"),
    ],
)
def test_a_result_that_contradicts_itself_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        make_result(**changes)


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (make_cell(num_steps=4), "step_seconds: 3 values, the cell asks for at least 4"),
        (make_cell(num_warmup_steps=3), "warmup_step_seconds: 2 values, the cell asks for at least 3"),
    ],
)
def test_fewer_steps_than_asked_for_are_refused(cell: Cell, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        make_result(cell)


def test_step_times_of_two_clocks_must_be_equally_many() -> None:
    with pytest.raises(ValidationError, match="differ in length"):
        Samples(warmup_step_seconds=(), step_seconds=(0.1, 0.1), device_step_seconds=(0.1,), reached_steady=True)


def test_the_rate_is_samples_of_the_window_over_its_seconds() -> None:
    # 4 steps of 8 samples in a window of 2.0 s, of which the steps themselves took 1.6 s: 32 / 2.0.
    steps = (0.4, 0.4, 0.4, 0.4)
    result = make_result(
        make_cell(batch_size=8), step_seconds=steps, phases=make_phases(steps, (0.2, 0.1), steady_seconds=2.0)
    )
    assert result.window_samples_per_s == 16.0
    assert make_failed_result().window_samples_per_s is None
