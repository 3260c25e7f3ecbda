"""A data set for tests of retention: it holds the results that a store had when it was collected."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bench.schema import read_result
from bench.store import Store, results_prefix
from runner.retention.held_results import HeldResult


@dataclass
class CollectedResults:
    """What `collect` found: by run and key, the results with size and version of their objects."""

    held: dict[str, dict[str, HeldResult]] = field(default_factory=dict)

    @classmethod
    def collect(cls, store: Store) -> "CollectedResults":
        """Return all readable results that the store has now."""
        collected = cls()
        for run_id in store.list_run_ids():
            for found in store.list_objects(results_prefix(run_id)):
                result = read_result(store.get(found.key))
                collected.held.setdefault(run_id, {})[found.key] = HeldResult(
                    num_bytes=found.num_bytes,
                    version=found.version,
                    status=result.status,
                    attempt_seconds=(result.finished_at - result.started_at).total_seconds(),
                    verdict=None if result.validity is None else result.validity.verdict,
                    is_contaminated=None if result.validity is None else result.validity.is_contaminated,
                )
        return collected

    def read_held(self, run_id: str) -> Mapping[str, Sequence[HeldResult]]:
        return {key: [found] for key, found in self.held.get(run_id, {}).items()}
