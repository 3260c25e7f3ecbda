"""Cells are paired by what they measure; what has no partner, or two, is named."""

from typing import Any

from bench.schema import Cell
from collector.results.frames import describe_cell
from collector.versus.sides import describe_other_values, pair_cells
from factories import make_cell


def list_rows(*cells: Cell) -> list[dict[str, Any]]:
    return [{"cell_id": cell.cell_id} | describe_cell(cell) for cell in cells]


def list_ids(pairs: list[Any]) -> list[tuple[str, str]]:
    return [(a[0]["cell_id"], b[0]["cell_id"]) for a, b in pairs]


def test_equal_cells_are_pairs_and_the_others_are_left() -> None:
    shared, only_a, only_b = make_cell(), make_cell(batch_size=32), make_cell(phase="infer")
    pairing = pair_cells(list_rows(shared, only_a), list_rows(only_b, shared), set())
    assert list_ids(pairing.pairs) == [(shared.cell_id, shared.cell_id)]
    assert [rows[0]["cell_id"] for rows in pairing.only_in_a] == [only_a.cell_id]
    assert [rows[0]["cell_id"] for rows in pairing.only_in_b] == [only_b.cell_id]


def test_a_cell_with_tenants_is_no_partner_of_the_cell_alone_unless_the_sides_are_said_to_differ_in_it() -> None:
    alone, four = make_cell(), make_cell(tenants=4)
    pairing = pair_cells(list_rows(alone), list_rows(four), set())
    assert pairing.pairs == []
    assert describe_other_values(pairing, set()) == "tenants is 1 in A, 4 in B"
    assert list_ids(pair_cells(list_rows(alone), list_rows(four), {"tenants"}).pairs) == [(alone.cell_id, four.cell_id)]


def test_the_length_of_the_measurement_may_differ_where_there_is_no_equal_one() -> None:
    short, long, other = make_cell(), make_cell(num_steps=50), make_cell(num_steps=99)
    assert list_ids(pair_cells(list_rows(short), list_rows(long), set()).pairs) == [(short.cell_id, long.cell_id)]
    pairing = pair_cells(list_rows(short, long), list_rows(short, other), set())
    assert list_ids(pairing.pairs) == [(short.cell_id, short.cell_id), (long.cell_id, other.cell_id)]


def test_selected_fields_may_differ() -> None:
    torch, jax = make_cell(), make_cell(framework="jax", mode="compiled")
    assert pair_cells(list_rows(torch), list_rows(jax), {"framework"}).pairs == []
    pairing = pair_cells(list_rows(torch), list_rows(jax), {"framework", "mode"})
    assert list_ids(pairing.pairs) == [(torch.cell_id, jax.cell_id)]


def test_several_partners_are_none() -> None:
    eager, compiled, graph = make_cell(), make_cell(mode="compiled"), make_cell(framework="tensorflow", mode="graph")
    pairing = pair_cells(list_rows(eager, compiled), list_rows(graph), {"framework", "mode"})
    assert pairing.pairs == []
    [ambiguity] = pairing.ambiguities
    assert ambiguity.startswith("not unique: 2 cells of A like conv6 train")
    assert "differ in mode (eager, compiled); narrow it with --a KEY=VALUE" in ambiguity
