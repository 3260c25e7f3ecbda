"""Whether the repeats of a cell are summarised by one statistic."""

from collections.abc import Callable
from typing import Literal

from bench.schema import Cell, Result, Samples
from collector.results.collection import Collection
from factories import make_cell, make_phases, make_result

SHORT, LONG = (1.0, 1.0, 2.5), (2.0, 2.0, 5.0)
OTHER_CELL = make_cell(batch_size=7)


def make_repeat(
    number: int, how: Literal["mean", "median"], steps: tuple[float, ...] = SHORT, cell: Cell | None = None
) -> Result:
    samples = Samples(
        warmup_step_seconds=(0.1,),
        step_seconds=steps,
        reached_steady=True,
        summarized_by=how,
    )
    return make_result(cell, repeat=number, samples=samples, phases=make_phases(steps, (0.1,)))


def test_where_one_repeat_has_two_levels_the_mean_stands_for_all_of_its_cell(
    collect: Callable[..., Collection],
) -> None:
    alone, beside = make_repeat(1, "median"), make_repeat(1, "median", cell=OTHER_CELL)
    (before,) = collect(alone, repeats=1).results.to_dict("records")
    results = collect(make_repeat(1, "median"), make_repeat(2, "mean", LONG), beside, repeats=2).results
    rows = {(row["cell_id"], row["repeat"]): row for row in results.to_dict("records")}
    first, second = (rows[alone.cell_id, repeat] for repeat in (1, 2))
    assert (first["center_step_seconds"], second["center_step_seconds"]) == (1.5, 3.0)
    assert (first["median_step_seconds"], first["mean_step_seconds"], first["summarized_by"]) == (1.0, 1.5, "mean")
    assert first["window_samples_per_s"] == before["window_samples_per_s"]  # of the whole window
    other = rows[beside.cell_id, 1]
    assert (other["center_step_seconds"], other["summarized_by"]) == (1.0, "median")
