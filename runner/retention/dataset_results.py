"""Reads from the data set of a store which raw results it holds in full."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from bench.schema import measure_attempt
from bench.store import KeyMissing, Store
from runner.retention.held_results import HeldResult

if TYPE_CHECKING:  # the collector takes a second to import: only the commands that need it do
    from collector.results.dataset.parts import PartContent

COLUMNS = ("key", "object_version", "num_bytes", "status", "verdict", "fault_verdicts", "started_at", "finished_at")


class DatasetResults:
    """The data set that is in the store itself; what a collector keeps in a cache folder of its user does not count."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def read_held(self, run_id: str) -> Mapping[str, Sequence[HeldResult]]:
        """Return the results of which every row can be read, by key of the raw result, in every version of it.

        Only rows of this version of the tool count: those of an older one may lack what the raw result still has.
        """
        from collector.results.dataset.columns import ATTEMPTS
        from collector.results.dataset.compaction import drop_replaced
        from collector.results.dataset.parts import PartContent, list_parts, read_contents

        try:
            parts = [part for part in list_parts(self._store, ATTEMPTS, run_id) if part.is_current]
            contents = [found for found in read_contents(parts) if isinstance(found, PartContent)]
            held: defaultdict[str, list[HeldResult]] = defaultdict(list)
            for content in drop_replaced(contents):
                for key, row in _describe_rows(content) if _is_whole(content) else ():
                    held[key].append(row)
        except KeyMissing:  # a collector merged parts meanwhile: what cannot be shown to be there is not held
            return {}
        return held


def _is_whole(content: "PartContent") -> bool:
    """Return whether every table of the batch can be read, and has the steps of the results that have any."""
    from collector.results.dataset.columns import STEPS
    from collector.results.dataset.digests import DamagedPartError

    try:
        tables = {name: content.part.read(name) for name in content.other_tables}
    except (DamagedPartError, KeyMissing):
        return False
    measured = {row["key"] for row in content.rows.select(["key", "status"]).to_pylist() if row["status"] == "ok"}
    steps = tables.get(STEPS)
    return measured <= set([] if steps is None else steps["key"].to_pylist())


def _describe_rows(content: "PartContent") -> Iterator[tuple[str, HeldResult]]:
    for row in content.rows.select(list(COLUMNS)).to_pylist():
        contaminated = None if row["fault_verdicts"] is None else "contaminated" in row["fault_verdicts"].split()
        yield (
            row["key"],
            HeldResult(
                num_bytes=row["num_bytes"],
                version=row["object_version"],
                status=row["status"],
                attempt_seconds=measure_attempt(row["started_at"], row["finished_at"]) or 0.0,
                verdict=row["verdict"],
                is_contaminated=contaminated,
            ),
        )
