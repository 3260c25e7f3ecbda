"""Which cell alone tenants are held against: found by its work, however many cells the run has."""

from typing import Any

from bench.schema import Cell
from collector.results.cells import describe_cell
from collector.sharing.alone import find_alone, index_alone
from collector.sharing.repeats import CellGroup
from factories import make_cell

NUM_CELLS = 200


class CountingRow(dict[str, Any]):
    """A row that counts how often a value of any row is read."""

    num_reads = 0

    def __getitem__(self, name: str) -> Any:
        CountingRow.num_reads += 1
        return super().__getitem__(name)


def test_each_cell_with_tenants_is_held_against_those_of_its_own_work_alone() -> None:
    cells = [make_cell(batch_size=number, tenants=tenants) for number in range(1, NUM_CELLS + 1) for tenants in (1, 2)]
    groups = [make_group(cell) for cell in cells]
    alone = index_alone(groups)
    CountingRow.num_reads = 0
    found = [
        find_alone(group, "cell", cell, alone, include_invalid=False)
        for group, cell in zip(groups, cells, strict=True)
        if group.is_shared
    ]
    assert [one.group.row["batch_size"] for one in found if one.group] == list(range(1, NUM_CELLS + 1))
    assert not any(one.group.is_shared for one in found if one.group)
    assert CountingRow.num_reads < NUM_CELLS**2 / 2  # each against each: more than one read of each pair


def make_group(cell: Cell) -> CellGroup:
    """Return a cell with one sound repeat."""
    environment = {"hardware_id": "1", "environment_id": "2", "framework_version": "2.11.0"}
    return CellGroup(
        row=CountingRow(describe_cell(cell) | {"cell_id": cell.cell_id} | environment),
        is_shared=cell.tenants > 1,
        num_planned=1,
        num_environments=1,
        statuses={},
        ok=(0,),
        sound=(0,),
    )
