"""How long repeats take on this machine, in words: by what was measured here, else by a guess."""

from bench.schema import PlannedCell
from factories import make_cell
from runner.estimates import estimate_repeats
from runner.matrix.plan import order_repeats

CPU, OTHER_CPU, GPU = make_cell(), make_cell(batch_size=8), make_cell(device="gpu")


def describe(
    durations: dict[str, float],
    near: dict[str, float] | None = None,
    *,
    timeout_seconds: float = 600.0,
    repeats: int = 3,
) -> list[str]:
    cells = (CPU, OTHER_CPU, GPU)
    planned = [PlannedCell(cell=cell, repeats=repeats, timeout_seconds=timeout_seconds) for cell in cells]
    return [one.describe_wait() for one in estimate_repeats(order_repeats(planned, None), durations, near=near or {})]


def test_a_machine_that_never_measured_gets_a_guess_in_minutes() -> None:
    """Six repeats of 27 s and three of 16 s."""
    basis = "nothing like them was measured here before, and large models take longer"
    assert describe({}) == [
        f"cpu: 6 repeats take about 3 min (a guess, 27 s each: {basis})",
        f"gpu: 3 repeats take about 48 s (a guess, 16 s each: {basis})",
    ]


def test_what_was_measured_here_counts_also_for_the_other_cells() -> None:
    """Three repeats of 100 s, and three that count as much; three of 40 s."""
    known = {CPU.cell_id: 100.0, GPU.cell_id: 40.0}
    assert describe(known) == [
        "cpu: 6 repeats take about 10 min (3 as they took here before; 3 as the mean of the others)",
        "gpu: 3 repeats take about 2 min (as they took here before)",
    ]


def test_near_cells_count_before_any_guess() -> None:
    """Three repeats of 100 s and three of 20 s; three of 10 s."""
    near = "as the nearest cells of the same model, framework and device took here"
    assert describe({CPU.cell_id: 100.0}, {OTHER_CPU.cell_id: 20.0, GPU.cell_id: 10.0}) == [
        f"cpu: 6 repeats take about 6 min (3 as they took here before; 3 {near})",
        f"gpu: 3 repeats take about 30 s ({near})",
    ]


def test_no_repeat_takes_more_than_its_limit() -> None:
    cpu, _ = describe({}, timeout_seconds=10.0, repeats=1)
    assert cpu.startswith("cpu: 2 repeats take about 20 s (a guess, 10 s each: ")
