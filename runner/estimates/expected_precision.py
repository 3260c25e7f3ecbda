"""Say which differences the planned repeats will show, by how much earlier repeats on this machine scattered."""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from bench.errors import TransientError, UserError
from bench.schema import Cell, Run
from bench.store import Store
from runner.estimates.durations import identify_work, select_newest

if TYPE_CHECKING:
    from collector.comparisons import Comparison

COMPARED_FIELDS = ("framework", "mode", "precision", "device")
"""What the report compares within one kind of work."""
ASKED_LOG_RATIO = math.log(1.1)
"""A difference of 10 %, for which the number of repeats is named."""


def describe_expected_precision(store: Store, runs: Sequence[Run], run: Run) -> Iterator[str]:
    """Yield for each device which difference the planned repeats show in most cases; nothing where none is known.

    By the spread between the repeats of near cells (`identify_work`) in the newest of `runs`.
    """
    for device in sorted({planned.cell.device for planned in run.cells}):
        planned = {one.cell: one.repeats for one in run.cells if one.cell.device == device}
        if len(set(map(_identify_kind, planned))) == len(planned) or min(planned.values()) < 2:
            continue
        found = _pool_variance(store, runs, planned)
        if found is not None and count_ratios(planned):
            num_ratios = count_ratios([one.cell for one in run.cells if one.repeats > 1])
            yield f"{device}: {_describe(*found, number=min(planned.values()), num_ratios=num_ratios)}"


def count_ratios(cells: Collection[Cell]) -> int:
    """Return how many ratios the report judges together: those of its table that has most of these cells.

    Efficiencies are not tested.
    """
    from collector.comparisons import COMPARISONS

    return max(_count_pairs(cells, comparison) for comparison in COMPARISONS if comparison.measure != "efficiency")


def _count_pairs(cells: Collection[Cell], comparison: "Comparison") -> int:
    """Return how many pairs the comparison makes of the cells, if all run on one machine."""
    groups: defaultdict[tuple[object, ...], Counter[object]] = defaultdict(Counter)
    fields = [name for name in comparison.match if name not in comparison.derived]
    for cell in cells:
        groups[tuple(getattr(cell, name) for name in fields)][getattr(cell, comparison.field)] += 1
    return sum(
        values[subject] * values[reference] for values in groups.values() for subject, reference in comparison.pairs
    )


def _describe(variance: float, num_cells: int, freedom: float, *, number: int, num_ratios: int) -> str:
    from collector.repeats_needed import (
        FEW_FREEDOM,
        MAX_REPEATS,
        POWER_WORDS,
        RepeatVariances,
        count_repeats_to_show,
        find_shown_difference,
    )

    variances = RepeatVariances(one=variance, other=variance)
    shown = find_shown_difference(variances, number, num_ratios)
    needed = count_repeats_to_show(ASKED_LOG_RATIO, variances, num_ratios)
    difference = "ten times" if shown is None else f"{100 * math.expm1(shown):.2g} %"
    together = f", {num_ratios} ratios judged together" if num_ratios > 1 else ""
    is_rough = freedom <= FEW_FREEDOM
    repeats = f"more than {MAX_REPEATS}" if needed is None else f"{'at least about ' if is_rough else ''}{needed}"
    shows = "show at best about" if is_rough else "show"
    cases = "" if is_rough else f" in {POWER_WORDS}"
    asked = "" if needed == number else f"; 10 % takes {repeats} repeats"
    return (
        f"repeats of such cells differed by {100 * math.expm1(math.sqrt(variance)):.2g} % here before (standard "
        f"deviation, of {num_cells} cell{'' if num_cells == 1 else 's'}): {number} repeats a side {shows} a difference "
        f"of {difference}{cases}{together}{asked} (`repeats:` in the matrix)"
    )


def _identify_kind(cell: Cell) -> str:
    """Return what cells have in common that the report compares with each other."""
    return cell.model_dump_json(exclude=set(COMPARED_FIELDS))


def _pool_variance(store: Store, runs: Sequence[Run], planned: Mapping[Cell, int]) -> tuple[float, int, float] | None:
    """Return the variance of the log of one repeat, pooled over near cells, their number, and its degrees of freedom.

    None without any cell.
    """
    kinds = set(map(identify_work, planned))
    squares, freedoms, num_cells = 0.0, 0.0, 0
    for found in select_newest(runs, lambda cell: identify_work(cell) in kinds):
        near = {one.cell.cell_id for one in found.cells if identify_work(one.cell) in kinds}
        for variance, freedom in _read_variances(store, found.run_id, near):
            squares, freedoms, num_cells = squares + variance * freedom, freedoms + freedom, num_cells + 1
    return (squares / freedoms, num_cells, freedoms) if freedoms else None


def _read_variances(store: Store, run_id: str, cell_ids: set[str]) -> Iterator[tuple[float, float]]:
    """Yield the variance between the repeats of each of the cells of a run, with its degrees of freedom.

    Of a cell on several machines, the spread is that of the machines.
    """
    from collector.repeats_needed import measure_variance
    from collector.results.frames import list_rows
    from collector.results.intervals import read_estimate
    from collector.results.load import load_run
    from collector.results.summary import summarize_cells

    try:
        summary = summarize_cells(load_run(store, run_id))
    except TransientError:
        raise
    except UserError:
        return  # it was deleted or replaced since its plan was read
    has_spread = (summary["num_sound"] > 1) & summary["log_standard_error"].notna()
    known = summary["cell_id"].isin(cell_ids) & has_spread & (summary["num_machines"] == 1)
    for row in list_rows(summary[known]):
        variance = measure_variance(read_estimate(row), row["num_counted"])
        if variance is not None:
            yield variance, row["num_counted"] - 1
