"""runner.local.executor: what the machine gives no more of is no end of a repeat."""

import os
import resource
from pathlib import Path

import pytest

from bench.schema import PlannedCell, Result
from bench.store import Store, results_prefix
from factories import RUN_ID, make_cell
from fake_interpreters import make_interpreter
from runner.local.executor import LocalExecutor, SilentObserver
from runner.matrix.plan import Repeat
from workspace import HANG_GUARD_SECONDS


def make_repeat(number: int = 1) -> Repeat:
    planned = PlannedCell(cell=make_cell(), repeats=3, timeout_seconds=HANG_GUARD_SECONDS)
    return Repeat(planned=planned, number=number)


def test_a_machine_that_gives_no_more_files_leaves_no_record(tmp_path: Path) -> None:
    """The cell is not at fault, and the repeats after it would all be recorded as failed within a second."""
    store = Store.open(f"file://{tmp_path}/store")
    python = make_interpreter(tmp_path / "python", "exit 7")
    executor = LocalExecutor(
        run_id=RUN_ID, store=store, interpreters={"pytorch": python}, lock=0, observer=SilentObserver()
    )
    executor.measure_repeat(make_repeat())  # whatever is opened once is open now
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)
    os.close(free)

    resource.setrlimit(resource.RLIMIT_NOFILE, (free + 1, limits[1]))  # one more; a pipe needs two
    try:
        with pytest.raises(OSError, match="Too many open files"):
            executor.measure_repeat(make_repeat(2))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)

    (key,) = store.list_keys(results_prefix(RUN_ID))
    assert Result.model_validate_json(store.get(key)).repeat == 1
