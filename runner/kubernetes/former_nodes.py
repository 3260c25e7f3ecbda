"""Find where the cells of a comparison ran under an earlier runner, so that the rest of them goes there too."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from bench.schema import InvalidDocumentError, Placement, Run, read_placement
from bench.store import Store, parse_placement_key, placements_prefix
from runner.kubernetes.api_errors import ApiError
from runner.kubernetes.connection import SHORT_PATIENCE_SECONDS, Connection
from runner.kubernetes.shared_nodes import BlockKey, FormerNode, identify_block


@dataclass(frozen=True, kw_only=True)
class FormerNodes:
    """Reads the placements of a run. Its methods block."""

    connection: Connection
    store: Store
    run: Run

    def find(self, blocks: Collection[BlockKey]) -> dict[BlockKey, FormerNode]:
        """Return the node of each of these blocks that has placements: the one where most of its attempts ran.

        Of several such nodes the one that stands first in the alphabet. StoreError if the store cannot be used.
        """
        placements: defaultdict[BlockKey, list[Placement]] = defaultdict(list)
        for block, placement in self._read(blocks):
            placements[block].append(placement)
        existing = self._list_node_names() if placements else None
        return {block: _choose_node(found, existing) for block, found in placements.items()}

    def _read(self, blocks: Collection[BlockKey]) -> Iterator[tuple[BlockKey, Placement]]:
        """Yield the placements of these blocks; one that is damaged counts as none."""
        cells = {planned.cell.cell_id: planned.cell for planned in self.run.cells}
        wanted: dict[str, BlockKey] = {}
        for key in self.store.list_keys(placements_prefix(self.run.run_id)):
            parts = parse_placement_key(key)
            if parts is None or parts.cell_id not in cells:
                continue
            block = identify_block(cells[parts.cell_id], parts.repeat)
            if block in blocks:
                wanted[key] = block
        for key, data in self.store.get_listed(wanted):
            with suppress(InvalidDocumentError):
                if isinstance(data, bytes):
                    yield wanted[key], read_placement(data)

    def _list_node_names(self) -> frozenset[str] | None:
        """Return the nodes that the cluster has; None: they may not be listed, so nothing is known."""
        try:
            names = self.connection.read_items(
                "/api/v1/nodes", lambda node: str(node["metadata"]["name"]), patience_seconds=SHORT_PATIENCE_SECONDS
            )
        except ApiError:
            return None
        return frozenset(names)


def _choose_node(placements: Collection[Placement], existing: Collection[str] | None) -> FormerNode:
    counts = Counter(placement.node_name for placement in placements)
    name = min(counts, key=lambda name: (-counts[name], name))
    types: Mapping[str, str | None] = {
        placement.node_name: placement.node.instance_type for placement in placements if placement.node is not None
    }
    is_there = existing is None or name in existing
    return FormerNode(name=name if is_there else "", instance_type=types.get(name) or "")
