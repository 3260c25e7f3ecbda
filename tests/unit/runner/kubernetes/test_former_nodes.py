"""Where the cells of a comparison ran under an earlier runner, by the placements in the store."""

from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any, cast

from bench.schema import Node
from bench.store import Store, placement_key
from factories import make_cell, make_placement, make_result, make_run
from runner.kubernetes.connection import ApiError, Connection
from runner.kubernetes.nodes import FormerNode, FormerNodes, identify_block

CELLS = [make_cell(), make_cell(mode="compiled"), make_cell(framework="tensorflow", mode="graph"), make_cell(seed=9)]
RUN = make_run(cells=CELLS, repeats=2)
BLOCK, SECOND_ROUND, OTHER_BLOCK = identify_block(CELLS[0], 1), identify_block(CELLS[0], 2), identify_block(CELLS[3], 1)


class Nodes:
    """An API server that has these nodes, or refuses to say which it has."""

    def __init__(self, *names: str, is_forbidden: bool = False) -> None:
        self.names, self.is_forbidden = names, is_forbidden

    def read_items(self, path: str, read: Callable[[dict[str, Any]], str], *, patience_seconds: float) -> list[str]:
        assert path == "/api/v1/nodes"
        if self.is_forbidden:
            raise ApiError(status=HTTPStatus.FORBIDDEN, reason="Forbidden", message="nodes is forbidden")
        return [read({"metadata": {"name": name}}) for name in self.names]


def place(store: Store, cell: int, node_name: str, *, repeat: int = 1, instance_type: str | None = None) -> str:
    """Put the placement of one more attempt into the store, and return its key."""
    attempt = f"a{len(list(store.list_keys('')))}"
    result = make_result(CELLS[cell], run_id=RUN.run_id, repeat=repeat, attempt=attempt)
    placement = make_placement(result, Node(instance_type=instance_type), node_name=node_name)
    key = placement_key(RUN.run_id, result.cell_id, repeat, attempt)
    store.put(key, placement.to_json())
    return key


def find(store: Store, nodes: Nodes, blocks: Sequence[tuple[object, ...]] = (BLOCK,)) -> dict[Any, FormerNode]:
    return FormerNodes(connection=cast(Connection, nodes), store=store, run=RUN).find(blocks)


def test_a_block_was_on_the_node_of_most_of_its_attempts_each_round_on_its_own(store: Store) -> None:
    for cell, node in ((0, "node-2"), (1, "node-1"), (2, "node-2"), (3, "node-3")):
        place(store, cell, node)
    place(store, 0, "node-3", repeat=2, instance_type="m6i.xlarge")
    found = find(store, Nodes("node-1", "node-2", "node-3"), (BLOCK, SECOND_ROUND))
    assert found == {
        BLOCK: FormerNode(name="node-2", instance_type=""),
        SECOND_ROUND: FormerNode(name="node-3", instance_type="m6i.xlarge"),
    }


def test_of_a_node_that_is_gone_the_machine_type_is_left(store: Store) -> None:
    place(store, 0, "node-1", instance_type="m6i.xlarge")
    assert find(store, Nodes("node-2")) == {BLOCK: FormerNode(name="", instance_type="m6i.xlarge")}


def test_where_nodes_may_not_be_listed_the_node_may_still_be_there(store: Store) -> None:
    place(store, 0, "node-1")
    assert find(store, Nodes(is_forbidden=True)) == {BLOCK: FormerNode(name="node-1", instance_type="")}


def test_a_damaged_placement_and_one_of_a_cell_that_is_not_of_the_plan_count_as_none(store: Store) -> None:
    store.put(place(store, 0, "node-1"), b"{")
    place(store, 3, "node-1")
    stranger = make_result(make_cell(batch_size=77), run_id=RUN.run_id)
    key = placement_key(RUN.run_id, stranger.cell_id, 1, "a")
    store.put(key, make_placement(stranger).to_json())
    assert find(store, Nodes("node-1")) == {}
    assert set(find(store, Nodes("node-1"), (OTHER_BLOCK,))) == {OTHER_BLOCK}
