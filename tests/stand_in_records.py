"""The records that the stand-ins of tests/fake_interpreters.py write, apart: its program starts without any model."""

import os
from datetime import UTC, datetime, timedelta
from typing import cast

from bench.schema import Failure, Result, Verdict
from bench.worker.request import Order
from factories import make_failed_result, make_result, make_validity

STEP_VARIABLE = "FAKE_STEP_SECONDS"
"""How long each step takes, in seconds; 0.1 without it."""
VERDICT_VARIABLE = "FAKE_VERDICT"
"""The verdict on each measurement; `valid` without it."""


def make_record(num_samples_that_fit: int) -> Result:
    """Return the record of the order in the environment: out of memory where its batch has more samples."""
    order = Order.from_variables(os.environ)
    return make_ok(order) if order.cell.batch_size <= num_samples_that_fit else make_out_of_memory(order)


def make_ok(order: Order) -> Result:
    verdicts = cast("list[Verdict]", [os.environ[VERDICT_VARIABLE]] if VERDICT_VARIABLE in os.environ else [])
    seconds = float(os.environ.get(STEP_VARIABLE, "0.1"))
    now = datetime.now(UTC)
    return make_result(
        order.cell,
        run_id=order.run_id,
        repeat=order.repeat,
        attempt=order.attempt,
        started_at=now,
        finished_at=now + timedelta(seconds=5),
        step_seconds=(seconds,) * order.cell.num_steps,
        warmup_step_seconds=(0.1,) * order.cell.num_warmup_steps,
        validity=make_validity(*verdicts),
    )


def make_out_of_memory(order: Order) -> Result:
    """Return the record of an order that memory did not suffice for."""
    error = Failure(kind="out-of-memory", message="OutOfMemoryError: there is no more")
    return make_failed_result(
        order.cell, status="oom", run_id=order.run_id, repeat=order.repeat, attempt=order.attempt, error=error
    )
