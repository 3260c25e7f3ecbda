"""Mark every combination of work and program of a run: measured, not counting, failed, not run, or not planned."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from collector.analysis import Analysis
from collector.answers.planned import Combination, PlannedGrid, Program, Work, list_combinations
from collector.facts import count_things
from collector.labels import DEVICE_NAMES, FRAMEWORK_NAMES, MODE_WORDS, PRECISION_WORDS
from collector.report.page_cells import (
    FAILED,
    FIELD_TITLES,
    INVALID,
    LEFT_OUT,
    MEASURED,
    MISSING,
    list_page_cells,
    name_value,
)
from collector.results.frames import Row, list_rows

MAX_LINKED = 4
"""Cells of a combination that have a link each; more have one for each way in which they ended."""
NOT_PLANNED = "not planned"
SIGNS: Mapping[str, tuple[str, str]] = {
    MEASURED: ("✓", "measured; its figures count"),
    INVALID: ("!", "measured, does not count: no repeat under sound conditions"),
    FAILED: ("✕", "failed: no repeat ended ok"),
    MISSING: ("?", "no result yet"),
    LEFT_OUT: ("∅", "left out: it cannot run here"),
    NOT_PLANNED: ("–", "not planned"),
}
"""How a cell ended: its sign, as in the heat map, and what that means."""
SOUND_ENDING = "valid"
"""The ending of a cell of which every planned repeat is valid: the sign says it."""
NAMED_FIELDS = tuple(name for name in FIELD_TITLES if name not in (*Work.__annotations__, *Program.__annotations__))
"""The fields that tell the cells of a combination apart."""


@dataclass(frozen=True, kw_only=True)
class Mark:
    """How one cell of a combination ended, or several that ended alike."""

    state: str
    text: str
    """What tells it from the others, and how it ended where the sign does not say that."""
    label: str
    """All of it in words."""
    address: str
    """What the link to it has behind `#`; empty where there is nothing to show."""

    @property
    def sign(self) -> str:
        """The sign of its state."""
        return SIGNS[self.state][0]


@dataclass(frozen=True, kw_only=True)
class PlannedTable:
    """What the page shows of the plan."""

    summary: str
    programs: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[Mark, ...], ...]], ...]
    """Each kind of work that has a cell, with the marks of each program that has one."""
    idle: tuple[tuple[str, tuple[str, ...]], ...]
    """The programs, and the works, without a cell: what they are in words, and their names."""
    signs: tuple[tuple[str, str], ...]
    """The signs that occur, with what they mean."""
    words: tuple[tuple[str, str], ...]
    """The modes and precisions of the run, with what they are."""


def tabulate_planned(analysis: Analysis) -> PlannedTable:
    """Return the marks of all combinations of a run; see `list_combinations`."""
    grid = analysis.derive(list_combinations)
    cells = {str(row["cell_id"]): row for row in reversed(list_rows(analysis.derive(list_page_cells)))}
    works = [work for work in grid.works if work not in grid.idle_works]
    programs = [program for program in grid.programs if program not in grid.idle_programs]
    rows = tuple(
        (_name_work(work, grid), tuple(_mark((work, program), grid, cells) for program in programs)) for work in works
    )
    occurring = {mark.state for _, places in rows for marks in places for mark in marks}
    precisions = dict.fromkeys(program.precision for program in grid.programs)
    return PlannedTable(
        summary=_summarize(cells),
        programs=tuple(grid.name_program(program) for program in programs),
        rows=rows,
        idle=_name_idle(grid),
        signs=tuple(SIGNS[state] for state in SIGNS if state in occurring),
        words=(*_explain_modes(grid.programs), *((name, PRECISION_WORDS[name]) for name in precisions)),
    )


def _name_idle(grid: PlannedGrid) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the names of all programs and works that have no cell: a column or row of them would be empty."""
    works = tuple(_name_work(work, grid) for work in grid.idle_works)
    programs = tuple(grid.name_program(program) for program in grid.idle_programs)
    named = (("Programs that no cell was planned of", programs), ("Work that no cell was planned of", works))
    return tuple((what, names) for what, names in named if names)


def _name_work(work: Work, grid: PlannedGrid) -> str:
    has_devices = len({one.device for one in grid.works}) > 1
    return ", ".join([f"{work.model} {work.phase}", *([DEVICE_NAMES[work.device]] if has_devices else [])])


def _explain_modes(programs: Sequence[Program]) -> list[tuple[str, str]]:
    return [(mode, MODE_WORDS[mode]) for mode in dict.fromkeys(program.mode for program in programs)]


def _summarize(cells: Mapping[str, Row]) -> str:
    """Return how many cells ended how; the answers have how many combinations were not planned."""
    counts = Counter(row["state"] for row in cells.values())
    words = {
        MEASURED: "measured",
        INVALID: "measured, without a sound repeat",
        FAILED: "failed",
        MISSING: "without a result",
        LEFT_OUT: "left out",
    }
    ended = ", ".join(f"{counts[state]:,} {text}" for state, text in words.items() if counts[state])
    return f"{count_things(len(cells), 'cell')}: {ended}."


def _mark(combination: Combination, grid: PlannedGrid, cells: Mapping[str, Row]) -> tuple[Mark, ...]:
    rows = [cells[cell_id] for cell_id in grid.cell_ids.get(combination, ())]
    if not rows:
        return (Mark(state=NOT_PLANNED, text="", label=NOT_PLANNED, address=""),)
    if len(rows) > MAX_LINKED:
        return tuple(_mark_group(combination, state, count) for state, count in Counter(_list_states(rows)).items())
    varying = [name for name in NAMED_FIELDS if name == "batch_size" or len({str(row[name]) for row in rows}) > 1]
    return tuple(_mark_cell(row, varying) for row in rows)


def _list_states(rows: Sequence[Row]) -> list[str]:
    return [row["state"] for row in rows]


def _mark_cell(row: Row, varying: Sequence[str]) -> Mark:
    name = ", ".join(name_value(field, row[field], row["model"]) for field in varying)
    shown = "" if row["ending"] == SOUND_ENDING else f": {row['ending'].removeprefix('left out: ')}"
    address = f"cell?{urlencode({'cell': row['cell_id']}, quote_via=quote)}"
    return Mark(state=row["state"], text=f"{name}{shown}", label=f"{row['label']}: {row['ending']}", address=address)


def _mark_group(combination: Combination, state: str, count: int) -> Mark:
    """Return the mark of cells that ended alike; its link filters the overview to their combination."""
    work, program = combination
    words: Mapping[str, Mapping[str, str]] = {"framework": FRAMEWORK_NAMES, "device": DEVICE_NAMES}
    fields: dict[str, Any] = {**vars(work), **vars(program)}
    chosen = {f"f.{name}": words.get(name, {}).get(value, value) for name, value in fields.items()}
    text = count_things(count, "cell")
    label = f"{work.model} {work.phase}, {FRAMEWORK_NAMES[program.framework]} {program.mode}: {text} {SIGNS[state][1]}"
    return Mark(state=state, text=text, label=label, address=f"overview?{urlencode(chosen, quote_via=quote)}")
