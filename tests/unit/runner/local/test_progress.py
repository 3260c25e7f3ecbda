"""runner.local.progress: what people see of a run, in a terminal and in a pipe."""

import io
import re
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from rich.console import Console

from bench.schema import PlannedCell
from factories import make_cell, make_failed_result, make_result
from runner.local.progress import Progress
from runner.matrix.plan import Repeat, order_repeats

CELL_A, CELL_B = make_cell(), make_cell(framework="tensorflow")
SLUG_A, SLUG_B = "conv6-pytorch-cpu-train-fp32-eager-b64", "conv6-tensorflow-cpu-train-fp32-eager-b64"

Wait = Callable[[float], None]


@pytest.fixture
def wait(monkeypatch: pytest.MonkeyPatch) -> Wait:
    """Lets so many seconds pass on the clock of runner.local.progress, which stands still otherwise."""
    now = [1000.0]
    monkeypatch.setattr("runner.local.progress.time", SimpleNamespace(monotonic=lambda: now[0]))

    def advance(seconds: float) -> None:
        now[0] += seconds

    return advance


def make_repeats(repeats: int) -> list[Repeat]:
    """Return the repeats A1 B1 A2 B2 ... of two cells."""
    planned = (PlannedCell(cell=cell, repeats=repeats, timeout_seconds=60.0) for cell in (CELL_A, CELL_B))
    return order_repeats(planned, None)


def measure(progress: Progress, repeat: Repeat, seconds: float, wait: Wait) -> None:
    progress.start_repeat(repeat)
    wait(seconds)
    progress.finish_repeat(repeat, make_result(repeat.planned.cell, repeat=repeat.number, step_seconds=(0.05,)))


def test_a_pipe_gets_one_plain_line_for_each_repeat(wait: Wait) -> None:
    file = io.StringIO()
    first, second, third, fourth = make_repeats(2)

    with Progress(Console(file=file, width=40), [first, second, third, fourth], num_ok=1, num_failed=2) as progress:
        measure(progress, first, 4.0, wait)
        progress.start_repeat(second)
        wait(2.0)
        progress.finish_repeat(second, make_failed_result(CELL_B, message="ended by SIGSEGV [core dumped]"))

    assert file.getvalue().splitlines() == [
        f"measuring {SLUG_A}, repeat 1/2",
        f"ok      {SLUG_A}  repeat 1/2  4.0 s  step 50 ms  [2 done, 2 failed, 3 to go, about 12 s left]",
        f"measuring {SLUG_B}, repeat 1/2",
        f"failed  {SLUG_B}  repeat 1/2  2.0 s  ended by SIGSEGV [core dumped]"
        "  [2 done, 3 failed, 2 to go, about 6 s left]",
    ]


def test_a_terminal_shows_what_is_measured_now(terminal: tuple[Console, Callable[[], str]], wait: Wait) -> None:
    console, read = terminal
    first, second = make_repeats(1)

    with Progress(console, [first, second], num_ok=0, num_failed=0) as progress:
        progress.start_repeat(first)
        wait(3.0)
        progress.tick()
        shown = read()
        assert f"measuring {SLUG_A}, repeat 1/1, 3 s" in shown
        assert "0 done, 0 failed, 2 to go" in shown
        assert "\x1b[" in shown
        wait(1.0)
        progress.finish_repeat(first, make_result(CELL_A))
        assert re.search(rf"ok .*{SLUG_A}  repeat 1/1  4\.0 s  step 100 ms\s", read())
        progress.start_repeat(second)
        assert "1 done, 0 failed, 1 to go, about 4 s left" in read()
    assert read().endswith("\x1b[2K")  # the live lines are erased


def test_the_time_left_is_each_cells_own_mean_and_the_mean_of_all_for_new_cells(wait: Wait) -> None:
    a1, b1, a2, b2, a3, b3 = make_repeats(3)
    progress = Progress(Console(file=io.StringIO()), [a1, b1, a2, b2, a3, b3], num_ok=0, num_failed=0)

    measure(progress, a1, 10.0, wait)
    assert progress.estimate_seconds_left() == 5 * 10.0

    measure(progress, b1, 2.0, wait)
    assert progress.estimate_seconds_left() == 2 * 10.0 + 2 * 2.0

    measure(progress, a2, 14.0, wait)
    assert progress.estimate_seconds_left() == 12.0 + 2 * 2.0

    progress.start_repeat(b2)
    wait(0.5)
    assert progress.estimate_seconds_left() == 12.0 + 2 * 2.0 - 0.5
