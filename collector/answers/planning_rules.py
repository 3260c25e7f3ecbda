"""Say what a run did not ask: combinations that nobody planned, prices that nobody gave, libraries that differ."""

from collections.abc import Iterable

from bench.registry import FRAMEWORKS as FRAMEWORK_SPECS
from bench.registry import MODELS
from collector.analysis import Analysis
from collector.answers.anchors import name_anchor
from collector.answers.answer import Said
from collector.answers.comparison_rules import TURNED_MODES, name_comparison_anchor
from collector.answers.pairs import select_usable
from collector.comparisons import FRAMEWORKS
from collector.facts import count_things
from collector.labels import DEVICE_NAMES, FRAMEWORK_NAMES, PHASE_NAMES
from collector.libraries import describe_libraries
from collector.results.cells import select_alone
from collector.tables.energy import ENERGY_CAPTION

MAX_NAMED = 6
"""Works or programs that a sentence names."""
MACHINE_COLUMNS = ("device", "num_gpus", "hardware_id", "instance_types")
"""What is equal in cells whose machines have one price: a cell on the CPU needs no machine with a GPU."""
Work = tuple[str, str, str]
"""Model, phase, device."""
Program = tuple[str, str]
"""Framework and mode."""


def find_libraries(analysis: Analysis) -> list[Said]:
    """Return in which libraries and settings the frameworks differ whose times were compared."""
    pairs = select_usable(analysis.comparisons[FRAMEWORKS.name], FRAMEWORKS)
    text = describe_libraries(pairs, analysis.collection)
    if not text:
        return []
    told = "How much of a ratio that explains is not known."
    return [Said(text=f"{text} {told}", anchor=name_comparison_anchor(FRAMEWORKS))]


def find_not_planned(analysis: Analysis) -> list[Said]:
    """Return which combinations of the run's models, phases, devices and frameworks were not planned, in any batch."""
    if analysis.measured.empty:
        return []
    planned = _list_planned(analysis)
    works = _list_works(planned)
    programs = _list_programs(planned)
    universe = {
        (work, program)
        for work in works
        for program in programs
        if work[2] in FRAMEWORK_SPECS[program[0]].devices  # type: ignore[index]
    }
    missing = universe - planned
    if not missing:
        return []
    idle_works = [work for work in works if all((work, one) in missing for one in programs if (work, one) in universe)]
    used_works = [work for work in works if work not in idle_works]
    idle_programs = [one for one in programs if all((work, one) not in planned for work in used_works)]
    rest = [one for one in missing if one[0] in used_works and one[1] not in idle_programs]
    parts = []
    if idle_works:
        parts.append(f"{_join(_name_work(work, works) for work in idle_works)} in any framework")
    if idle_programs:
        parts.append(f"{_join(_name_program(one) for one in idle_programs)} for any work")
    if rest:
        others = f"{count_things(len(rest), 'other combination')} of work and program"
        parts.append(others if parts else others.replace("other ", ""))
    text = (
        f"Not planned: {'; '.join(parts)}. A matrix file that names them measures them: benchmatrix run FILE "
        "(docs/matrix.md)."
    )
    return [Said(text=text, anchor="overview")]


def find_no_prices(analysis: Analysis) -> list[Said]:
    """Return that no price was given, and which command computes costs."""
    if analysis.costs is not None or analysis.measured.empty:
        return []
    run_id = analysis.collection.run.run_id
    text = (
        f"What this costs is not known: no price was given. benchmatrix cost {run_id} computes it at listed prices, "
        "or with --prices FILE at yours."
    )
    known = _list_known_of_costs(analysis)
    return [Said(text=" ".join([text, *known.values()]), anchor=next(reversed(known), "step-times"))]


def _list_known_of_costs(analysis: Analysis) -> dict[str, str]:
    """Return what is known of costs without prices, by the anchor of what it rests on; the last one is linked."""
    rows = analysis.measured[analysis.measured["num_sound"] > 0]
    is_one = all(rows[name].nunique(dropna=False) == 1 for name in MACHINE_COLUMNS)
    known = {}
    if is_one and len(rows) > 1 and len(select_alone(rows)) == len(rows):
        known["step-times"] = (
            "All sound cells ran on one kind of machine: whatever it costs an hour, what is fastest for a sample is "
            "also cheapest for a sample."
        )
    if rows[["gpu_energy_per_sample_joules", "cpu_energy_per_sample_joules"]].notna().any(axis=None):
        known[name_anchor(ENERGY_CAPTION)] = "The energy of a sample was measured."
    return known


def _list_planned(analysis: Analysis) -> set[tuple[Work, Program]]:
    """Return what the matrix asked for, what could not run included."""
    columns = ("model", "phase", "device", "framework", "mode")
    cells = set(zip(*(analysis.summary[name] for name in columns), strict=True))
    cells |= {tuple(getattr(one.cell, name) for name in columns) for one in analysis.collection.run.left_out}
    return {((model, phase, device), (framework, mode)) for model, phase, device, framework, mode in cells}


def _list_works(planned: Iterable[tuple[Work, Program]]) -> list[Work]:
    """Return every model of the run in every phase and on every device of it."""
    models, phases, devices = (sorted({work[place] for work, _ in planned}) for place in range(3))
    return [
        (model, phase, device)
        for model in models
        for phase in phases
        for device in devices
        if model in MODELS and phase in MODELS[model].phases
    ]


def _list_programs(planned: Iterable[tuple[Work, Program]]) -> list[Program]:
    """Return every mode in ordinary use of the run's frameworks."""
    frameworks = {program[0] for _, program in planned}
    return [
        (name, mode)
        for name, spec in FRAMEWORK_SPECS.items()
        if name in frameworks
        for mode in spec.modes
        if mode not in TURNED_MODES
    ]


def _name_work(work: Work, works: Iterable[Work]) -> str:
    model, phase, device = work
    has_devices = len({one[2] for one in works}) > 1
    return f"{PHASE_NAMES[phase]} of {model}" + (f" on the {DEVICE_NAMES[device]}" if has_devices else "")


def _name_program(program: Program) -> str:
    return f"{FRAMEWORK_NAMES[program[0]]} {program[1]}"


def _join(names: Iterable[str]) -> str:
    found = list(names)
    more = len(found) - MAX_NAMED
    return ", ".join([*found[:MAX_NAMED], *([f"{more:,} more"] if more > 0 else [])])
