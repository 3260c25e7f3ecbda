"""Decide by the spread of a cell's first repeats how many it gets: `repeats: {min, max, until}` of a matrix.

Stein's two stages (C. Stein, Annals of Mathematical Statistics 16, 1945, 243-258): the first repeats say by their
spread how many there have to be, and the interval goes on to rest on that spread. Looked at after every repeat, and
ended when it happens to be narrow, an interval by all of them would miss more often than it says:
benchmarks/stopping_rule.py. What is decided follows from the records of the first repeats alone, so a run that was
killed is decided alike when it is resumed.
"""

import math
from collections.abc import Callable, Mapping

from scipy import special

from bench.schema import Run
from bench.store import Store, run_key
from collector.results.frames import list_rows
from collector.results.load import load_run
from collector.results.summary import summarize_cells
from collector.statistics import CONFIDENCE
from collector.units import count_things
from runner.runs import Records, list_alike_runs, select_missing


def lengthen(store: Store, run: Run, say: Callable[[str], None]) -> Run | None:
    """Store the run with the repeats that each cell's first ones ask for, and return it; None where they are enough.

    Nothing is decided while first repeats lack a record.
    """
    if select_missing(run, Records(store, run.run_id).read_snapshot()):
        return None
    wanted = count_wanted(store, run.run_id, run)
    longer = _extend(run, wanted)
    store.put(run_key(run.run_id), longer.to_json())
    if num_open := sum(one.may_grow and one.cell.cell_id not in wanted for one in run.cells):
        say(f"{count_things(num_open, 'cell')} without a decision: not all of its first repeats count")
    if longer.num_repeats == run.num_repeats:
        return None
    say(f"by the spread of the first repeats: {count_things(longer.num_repeats - run.num_repeats, 'repeat')} more")
    if num_most := sum(one.stopping is not None and one.repeats == one.stopping.most for one in longer.cells):
        say(f"{count_things(num_most, 'cell')} with as many as 'max': the interval may be wider than asked for")
    return longer


def expect(store: Store, plan: Run, is_alike: Callable[[Run], bool], say: Callable[[str], None]) -> Run:
    """Return the plan with the repeats that are likely, by the run that is most alike."""
    wanted, source = {}, "how many are likely is not known yet"
    for run in list_alike_runs(store, plan, is_alike)[-1:]:
        wanted = count_wanted(store, run.run_id, plan)
    likely = _extend(plan, wanted)
    if wanted:
        source = f"{likely.num_repeats:,} likely by run {run.run_id}"
    most = sum(planned.stopping.most if planned.stopping else planned.repeats for planned in plan.cells)
    say(f"repeats: {plan.num_repeats:,} at first, {source}, at most {most:,}")
    return likely


def count_wanted(store: Store, run_id: str, plan: Run) -> dict[str, int]:
    """Return how many repeats the spread in a run asks for, by the cells of `plan` that may grow.

    Without a cell of whose first repeats one does not count: it gets no more until that was measured again.
    Where a cell ran on several machines, its interval rests on them: that more repeats make it narrower is then taken
    as if each had a machine of its own.
    """
    rules = {planned.cell.cell_id: planned.stopping for planned in plan.cells if planned.may_grow}
    wanted = {}
    for row in list_rows(summarize_cells(load_run(store, run_id))):
        rule, error = rules.get(row["cell_id"]), row["log_standard_error"]
        if rule is not None and row["num_sound"] >= rule.first and error is not None:
            wanted[row["cell_id"]] = count_for(error, row["num_sound"], rule.first, rule.half_width)
    return wanted


def count_for(log_standard_error: float, number: int, first: int, half_width: float) -> int:
    """Return how many repeats make an interval so narrow; `log_standard_error`: of the mean of a `number` of them."""
    quantile = float(special.stdtrit(first - 1, (1 + CONFIDENCE) / 2))
    return math.ceil(number * (quantile * log_standard_error / math.log1p(half_width)) ** 2 - 1e-9)


def _extend(run: Run, wanted: Mapping[str, int]) -> Run:
    cells = []
    for planned in run.cells:
        if planned.stopping is not None and planned.may_grow:
            number = min(wanted.get(planned.cell.cell_id, 0), planned.stopping.most)
            decided = planned.stopping.model_copy(update={"is_decided": True})
            planned = planned.model_copy(update={"repeats": max(planned.repeats, number), "stopping": decided})
        cells.append(planned)
    return run.model_copy(update={"cells": tuple(cells)})
