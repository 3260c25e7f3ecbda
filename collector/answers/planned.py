"""List the kinds of work and the programs that a run could have combined, and which combinations it planned.

The kinds of work are the run's models in its phases on its devices, the programs are its frameworks in every mode in
ordinary use, in its precisions. A combination counts as planned if it is in the plan in any batch, at any size, also if
it could not run.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from bench.registry import FRAMEWORKS, MODELS
from collector.analysis import Analysis
from collector.answers.comparison_groups import TURNED_MODES
from collector.facts import join_words, list_some
from collector.labels import DEVICE_NAMES, FRAMEWORK_NAMES, PHASE_NAMES
from collector.order import list_in_order

COMPILERS = {"pytorch": "torch.compile", "tensorflow": "XLA", "jax": "XLA"}
"""What the mode `compiled` of a framework is."""
MAX_NAMED = 6
"""Works or programs that a sentence names."""
COLUMNS = ("model", "phase", "device", "framework", "mode", "precision")


@dataclass(frozen=True, kw_only=True)
class Work:
    """A model in a phase on a device."""

    model: str
    phase: str
    device: str


@dataclass(frozen=True, kw_only=True)
class Program:
    """A framework in a mode and a precision."""

    framework: str
    mode: str
    precision: str


Combination = tuple[Work, Program]


@dataclass(frozen=True, kw_only=True)
class PlannedGrid:
    """The combinations of work and program that a run could have had, and the cells that it planned of each."""

    works: tuple[Work, ...]
    programs: tuple[Program, ...]
    cell_ids: Mapping[Combination, tuple[str, ...]]
    """Of each planned combination the cells, those that could not run included, in the order of the plan."""

    @cached_property
    def possible(self) -> set[Combination]:
        """The combinations that the frameworks can run."""
        return {
            (work, program)
            for work in self.works
            for program in self.programs
            if work.device in FRAMEWORKS[program.framework].devices  # type: ignore[index]
        }

    @cached_property
    def idle_works(self) -> list[Work]:
        """The works that no program was planned for."""
        return [work for work in self.works if all((work, one) not in self.cell_ids for one in self.programs)]

    @cached_property
    def idle_programs(self) -> list[Program]:
        """The programs that were planned for no work."""
        return [one for one in self.programs if all((work, one) not in self.cell_ids for work in self.works)]

    @property
    def missing(self) -> set[Combination]:
        """The combinations that could run and are not planned."""
        return self.possible - set(self.cell_ids)

    def name_works(self, works: Sequence[Work]) -> str:
        """Return `training and inference of conv6; inference of vgg16`, with the device where the run has several.

        Phases with the same models stand together. Of each the first MAX_NAMED models are named.
        """
        has_devices = len({one.device for one in self.works}) > 1
        models: dict[tuple[str, str], list[str]] = {}
        for work in works:
            models.setdefault((work.device, work.phase), []).append(work.model)
        phases: dict[tuple[str, tuple[str, ...]], list[str]] = {}
        for (device, phase), names in models.items():
            phases.setdefault((device, tuple(names)), []).append(PHASE_NAMES[phase])
        return "; ".join(
            f"{join_words(own)}{f' on the {DEVICE_NAMES[device]}' if has_devices else ''} "
            f"of {join_words(list_some(names, MAX_NAMED))}"
            for (device, names), own in phases.items()
        )

    def name_programs(self, programs: Sequence[Program]) -> list[str]:
        """Return the names of programs, those of one precision under it: `bf16 in PyTorch eager and JAX compiled`.

        Without precisions where the run has one; more than MAX_NAMED of one precision are counted.
        """
        by_precision: dict[str, list[str]] = {}
        for one in programs:
            by_precision.setdefault(one.precision, []).append(f"{FRAMEWORK_NAMES[one.framework]} {one.mode}")
        if len({one.precision for one in self.programs}) == 1:
            return [name for names in by_precision.values() for name in names]
        return [
            f"{precision} in {join_words(list_some(names, MAX_NAMED))}" for precision, names in by_precision.items()
        ]

    def name_program(self, program: Program) -> str:
        """Return the name of a program, such as `PyTorch eager`, with its precision if the run has several."""
        has_precisions = len({one.precision for one in self.programs}) > 1
        name = f"{FRAMEWORK_NAMES[program.framework]} {program.mode}"
        return f"{name}, {program.precision}" if has_precisions else name


def list_combinations(analysis: Analysis) -> PlannedGrid:
    """Return the grid of a run; cells with tenants are of the combination of what they run."""
    cell_ids: dict[Combination, dict[str, None]] = {}
    for cell_id, work, program in _list_planned(analysis):
        cell_ids.setdefault((work, program), {})[cell_id] = None
    planned = {combination: tuple(ids) for combination, ids in cell_ids.items()}
    return PlannedGrid(works=_list_works(planned), programs=_list_programs(planned), cell_ids=planned)


def _list_planned(analysis: Analysis) -> Iterator[tuple[str, Work, Program]]:
    """Yield each cell that the matrix asked for, what could not run included."""
    columns = [analysis.summary[name].tolist() for name in ("cell_id", *COLUMNS)]
    left_out = [one.cell for one in analysis.collection.run.left_out]
    others = [(cell.cell_id, *(getattr(cell, name) for name in COLUMNS)) for cell in left_out]
    for cell_id, model, phase, device, framework, mode, precision in (*zip(*columns, strict=True), *others):
        work = Work(model=model, phase=phase, device=device)
        yield str(cell_id), work, Program(framework=framework, mode=mode, precision=precision)


def _list_values(things: Iterable[object], name: str) -> list[str]:
    """Return the values of a field, each once, in the order of `collector.order`."""
    return list_in_order(name, (getattr(thing, name) for thing in things))


def _list_works(planned: Iterable[Combination]) -> tuple[Work, ...]:
    """Return every model of the run in every phase and on every device of it, as far as the model has the phase."""
    works = [work for work, _ in planned]
    models, phases, devices = (_list_values(works, name) for name in ("model", "phase", "device"))
    return tuple(
        Work(model=model, phase=phase, device=device)
        for model in models
        for phase in phases
        for device in devices
        if model in MODELS and phase in MODELS[model].phases
    )


def _list_programs(planned: Iterable[Combination]) -> tuple[Program, ...]:
    """Return every mode in ordinary use of the run's frameworks, and the others that it planned, in its precisions."""
    used = [program for _, program in planned]
    modes = {(program.framework, program.mode) for program in used}
    frameworks, precisions = (_list_values(used, name) for name in ("framework", "precision"))
    return tuple(
        Program(framework=name, mode=mode, precision=precision)
        for name, spec in FRAMEWORKS.items()
        if name in frameworks
        for mode in spec.modes
        if mode not in TURNED_MODES or (name, mode) in modes
        for precision in precisions
    )


def describe_idle_modes(analysis: Analysis) -> str:
    """Return the frameworks' modes that no cell of the run has: `PyTorch compiled (torch.compile)`; empty: none."""
    idle = dict.fromkeys((one.framework, one.mode) for one in list_idle_modes(analysis))
    return join_words(_name_mode(framework, mode) for framework, mode in idle)


def list_idle_modes(analysis: Analysis) -> list[Program]:
    """Return the programs of the grid whose framework was planned in their mode in no precision."""
    grid = analysis.derive(list_combinations)
    used = {(program.framework, program.mode) for _, program in grid.cell_ids}
    return [one for one in grid.programs if (one.framework, one.mode) not in used]


def _name_mode(framework: str, mode: str) -> str:
    compiler = f" ({COMPILERS[framework]})" if mode == "compiled" else ""
    return f"{FRAMEWORK_NAMES[framework]} {mode}{compiler}"
