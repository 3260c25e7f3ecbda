"""Keep the rows of raw results that were removed on purpose: they cannot be read anew."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from bench.raw_removals import index_removed_results, read_raw_removals
from bench.store import Store
from collector.results.dataset.columns import ENVIRONMENTS, QUARANTINE
from collector.results.dataset.parts import PartContent
from collector.results.dataset.places import Places


def find_removed_versions(store: Store, run_id: str) -> Mapping[str, str]:
    """Return, by key, the version that each raw result had which was removed on purpose; see `bench.raw_removals`."""
    removed = index_removed_results(read_raw_removals(store, run_id))
    return {key: result.version for key, result in removed.items()}


def count_lost_rows(store: Store, run_id: str, contents: Sequence[PartContent]) -> int:
    """Return how many raw results of a run were removed on purpose and have a row in none of these parts."""
    removed = find_removed_versions(store, run_id)
    held = {
        pair
        for content in contents
        for pair in zip(*(content.rows[name].to_pylist() for name in ("key", "object_version")), strict=True)
    }
    return len(removed.items() - held)


def holds_removed_rows(content: PartContent, removed: Mapping[str, str]) -> bool:
    """Return whether a part has a row of a removed result."""
    return bool(_select_keys(content.rows, removed).num_rows)


def keep_removed_rows(places: Places, contents: Sequence[PartContent], removed: Mapping[str, str]) -> list[PartContent]:
    """Write the rows of removed results to parts of their own and return these: the others are to be replaced."""
    kept = []
    for content in contents:
        rows = _select_keys(content.rows, removed)
        if rows.num_rows:
            tables = {content.part.table: rows}
            for name in content.other_tables:
                found = content.part.read(name)
                if name != QUARANTINE:
                    tables[name] = found if name == ENVIRONMENTS else _select_keys(found, removed)
            kept.append(places.write(content.part.table, content.part.run_id, tables))
    return kept


def _select_keys(rows: pa.Table, removed: Mapping[str, str]) -> pa.Table:
    return rows.filter(pc.is_in(rows["key"], value_set=pa.array(list(removed), type=pa.string())))
