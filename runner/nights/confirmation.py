"""Write the matrix that measures suspected cells again: a file that `benchmatrix run` accepts."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from bench.schema import Neighbour, PlannedCell, Run, Suspicion
from collector.files import replace_text
from runner.matrix.expansion import name_neighbours
from runner.matrix.plan import shorten_name

NAME_PREFIX = "confirm-"
_LEFT_OUT = ("schema_version",)


def select_again(run: Run, suspicions: Iterable[Suspicion]) -> list[PlannedCell]:
    """Return the suspected cells of a night as they are measured again: with more repeats."""
    repeats: dict[str, int] = {}
    for suspicion in suspicions:
        for cell_id in suspicion.cell_ids:
            repeats[cell_id] = max(repeats.get(cell_id, 0), suspicion.confirmation_repeats)
    return [
        planned.model_copy(update={"repeats": repeats[planned.cell.cell_id]})
        for planned in run.cells
        if planned.cell.cell_id in repeats
    ]


def describe_matrix(run: Run, planned: list[PlannedCell]) -> dict[str, Any]:
    """Return the matrix of these cells as a matrix file has it.

    A matrix is axes and what is added to them. Every field of the first cell is an axis of one value, which makes this
    cell; every further cell is an entry of `include` of its own. Fields without a value are left out.
    """
    found = dict.fromkeys(one.cell.neighbour for one in planned if one.cell.neighbour is not None)
    names = {neighbour: f"neighbour-{number}" for number, neighbour in enumerate(found, start=1)}
    axes = {name: [value] for name, value in _list_fields(planned[0], names).items()}
    include = [
        {"repeats": one.repeats, "timeout_seconds": one.timeout_seconds, **_list_fields(one, names)} for one in planned
    ]
    neighbours = {"neighbours": name_neighbours(names)} if names else {}
    return neighbours | {
        "name": name_matrix(run.matrix),
        "description": f"Measures again what was suspected in the run {run.run_id} of {run.matrix}.",
        "axes": axes,
        "include": include,
    }


def write_matrix(path: Path, run: Run, suspicions: Iterable[Suspicion]) -> None:
    """Write the matrix of the suspected cells of a night to `path`. UserError where it cannot be written."""
    text = yaml.safe_dump(describe_matrix(run, select_again(run, suspicions)), sort_keys=False)
    replace_text(path, f"# made by `benchmatrix watch`\n{text}")


def name_matrix(matrix: str) -> str:
    """Return the name of the matrix that measures cells of `matrix` again."""
    return f"{NAME_PREFIX}{shorten_name(matrix)}"


def _list_fields(planned: PlannedCell, neighbours: Mapping[Neighbour, str]) -> dict[str, Any]:
    fields = planned.cell.model_dump(mode="json", exclude=set(_LEFT_OUT))
    if planned.cell.neighbour is not None:
        fields["neighbour"] = neighbours[planned.cell.neighbour]
    return {name: value for name, value in fields.items() if value is not None}
