"""Say what a run did not ask: combinations that nobody planned, prices that nobody gave, libraries that differ."""

from collections.abc import Iterable

from collector.analysis import Analysis
from collector.answers.anchors import name_anchor
from collector.answers.answer import Said
from collector.answers.comparison_groups import list_mode_groups, name_comparison_anchor
from collector.answers.pairs import select_usable
from collector.answers.planned import MAX_NAMED, list_combinations, list_idle_modes
from collector.comparisons import FRAMEWORKS
from collector.facts import count_things, list_some
from collector.libraries import describe_libraries
from collector.results.cells import select_alone
from collector.tables.energy import ENERGY_CAPTION

MACHINE_COLUMNS = ("device", "num_gpus", "hardware_id", "instance_types")
"""What is equal in cells whose machines have one price: a cell on the CPU needs no machine with a GPU."""
PLANNED_ANCHOR = "planned"
"""The id of the section of the report that marks every combination of work and program."""


def find_libraries(analysis: Analysis) -> list[Said]:
    """Return in which libraries and settings the frameworks differ whose times were compared."""
    pairs = select_usable(analysis.comparisons[FRAMEWORKS.name], FRAMEWORKS)
    text = describe_libraries(pairs, analysis.collection, is_short=True)
    if not text:
        return []
    told = "How much of a ratio that explains is not known."
    return [Said(text=f"{text} {told}", anchor=name_comparison_anchor(FRAMEWORKS))]


def find_not_planned(analysis: Analysis) -> list[Said]:
    """Return how many combinations of work and program were not planned, and which works and programs not at all."""
    grid = analysis.derive(list_combinations)
    missing = grid.missing
    if analysis.measured.empty or not missing:
        return []
    # The first sentence on modes has those that no cell has.
    said = list_idle_modes(analysis) if analysis.derive(list_mode_groups) else []
    idle_programs = [one for one in grid.idle_programs if one not in said]
    number = f"{len(missing):,} of {count_things(len(grid.possible), 'combination')}"
    texts = [f"{number} of work and program, whatever the batch, {'was' if len(missing) == 1 else 'were'} not planned."]
    texts += [f"Not measured with any program: {grid.name_works(grid.idle_works)}."] if grid.idle_works else []
    texts += [f"Not measured on any work: {_join(grid.name_programs(idle_programs))}."] if idle_programs else []
    return [Said(text=" ".join(texts), anchor=PLANNED_ANCHOR)]


def find_no_prices(analysis: Analysis) -> list[Said]:
    """Return that no price was given, and which command computes costs."""
    if analysis.costs is not None or analysis.measured.empty:
        return []
    run_id = analysis.collection.run.run_id
    text = f"Costs need prices: benchmatrix cost {run_id} computes them."
    known = _list_known_of_costs(analysis)
    return [Said(text=" ".join([text, *known.values()]), anchor=next(reversed(known), "step-times"))]


def _list_known_of_costs(analysis: Analysis) -> dict[str, str]:
    """Return what is known of costs without prices, by the anchor of what it rests on; the last one is linked."""
    rows = analysis.measured[analysis.measured["num_sound"] > 0]
    is_one = all(rows[name].nunique(dropna=False) == 1 for name in MACHINE_COLUMNS)
    known = {}
    if is_one and len(rows) > 1 and len(select_alone(rows)) == len(rows):
        known["step-times"] = (
            "On one kind of machine, as here, the fastest for a sample is also the cheapest, start-up aside."
        )
    if rows[["gpu_energy_per_sample_joules", "cpu_energy_per_sample_joules"]].notna().any(axis=None):
        known[name_anchor(ENERGY_CAPTION)] = "Energy was measured."
    return known


def _join(names: Iterable[str]) -> str:
    return ", ".join(list_some(list(names), MAX_NAMED))
