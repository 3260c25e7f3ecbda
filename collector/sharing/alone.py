"""Find the measurement alone that tenants are held against: the same work on a device that nobody shared."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.schema import Cell
from collector.results.cells import PROTOCOL_FIELDS, SHARING_FIELDS, describe_cell
from collector.results.frames import CELL_COLUMNS, Row
from collector.results.identity import drop_build
from collector.sharing.repeats import CellGroup, Role

MATCH_FIELDS = tuple(name for name in CELL_COLUMNS if name not in (*SHARING_FIELDS, *PROTOCOL_FIELDS))
"""What is equal in a tenant's cell and in the cell alone: all but with whom it ran, and how long was measured."""


@dataclass(frozen=True, kw_only=True)
class Alone:
    """The cell alone that tenants with one role are held against, or why there is none."""

    group: CellGroup | None = None
    reason: str = ""


AloneByWork = Mapping[tuple[Any, ...], Sequence[CellGroup]]
"""The cells alone of a run by their MATCH_FIELDS, so that each with tenants is not held against each of them."""


def index_alone(groups: Iterable[CellGroup]) -> AloneByWork:
    """Return those of a run's groups that had the device to themselves, by their work."""
    found: defaultdict[tuple[Any, ...], list[CellGroup]] = defaultdict(list)
    for group in groups:
        if not group.is_shared:
            found[_get_work(group.row)].append(group)
    return found


def find_alone(shared: CellGroup, role: Role, cell: Cell, alone: AloneByWork, *, include_invalid: bool) -> Alone:
    """Return what the tenants of `shared` that have the `role` are held against, of the cells `alone` of a run.

    `cell`: that of `shared`. Of several candidates one in the same environment is preferred, then one that was measured
    as long. A slice of a GPU in MIG mode is another device to CUDA than the whole GPU: it is held against the whole one
    in a host with the same CPU and driver.
    """
    wanted = describe_cell(cell.as_tenant(0 if role == "cell" else 1))
    same = alone.get(_get_work(wanted), ())
    ok = [group for group in same if group.ok]
    found = [group for group in ok if _is_same_hardware(shared.row, group.row)]
    current = [group for group in found if _read_version(group) == _read_version(shared)]
    usable = current if include_invalid else [group for group in current if group.sound]
    if usable:
        return Alone(group=min(usable, key=lambda group: _rank(shared, group, wanted)))
    return Alone(reason=_explain(role, [same, ok, found, current], shared))


def _explain(role: Role, stages: Sequence[Sequence[CellGroup]], shared: CellGroup) -> str:
    """Return why no candidate was left; `stages`: those that were left after each condition, the last one aside."""
    who = "the cell" if role == "cell" else "its neighbour"
    same, ok, found, current = stages
    if not same:
        return f"the run has no cell that is {who} alone (tenants 1, the whole device)"
    if not ok:
        return f"no ok repeat of {who} alone"
    if not found:
        return f"the hardware of {who} alone differs"
    if not current:
        versions = ", ".join(sorted({str(_read_version(group)) for group in found}))
        return f"the framework's versions differ, {_read_version(shared)} and {versions} alone"
    return f"no repeat of {who} alone was measured under sound conditions"


def _rank(shared: CellGroup, group: CellGroup, wanted: Row) -> tuple[bool, bool]:
    """Return the order of preference, the best first."""
    is_elsewhere = group.row["environment_id"] != shared.row["environment_id"]
    return is_elsewhere, not _has(group.row, wanted, PROTOCOL_FIELDS)


def _get_work(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in MATCH_FIELDS)


def _has(row: Row, wanted: Row, names: Sequence[str]) -> bool:
    return all(row[name] == wanted[name] for name in names)


def _is_same_hardware(shared: Row, alone: Row) -> bool:
    is_slice = shared["sharing"] == "mig"
    return _has(alone, shared, ["cpu_model", "num_threads", "driver_version"] if is_slice else ["hardware_id"])


def _read_version(group: CellGroup) -> str | None:
    return drop_build(group.row["framework_version"])
