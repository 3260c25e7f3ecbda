"""Finds the repeats whose records the store lists and does not give: what they say is not known."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from bench.store import parse_result_key, results_prefix
from collector.results.collection import SkippedDocument


@dataclass(frozen=True, kw_only=True)
class UnreadRecords:
    """Why records cannot be read at present, by what they may be of."""

    by_repeat: dict[tuple[str, int], str] = field(default_factory=dict)
    by_folder: dict[str, str] = field(default_factory=dict)
    """Of a folder that cannot be looked into, by its key: it may have records of every repeat below it."""

    @classmethod
    def among(cls, skipped: Iterable[SkippedDocument]) -> "UnreadRecords":
        """Return those of the skipped documents that the store does not give."""
        by_repeat, by_folder = dict[tuple[str, int], str](), dict[str, str]()
        for document in skipped:
            if document.is_unread:
                parts = parse_result_key(document.key)
                if parts is None:
                    by_folder[document.key] = document.reason
                else:
                    by_repeat.setdefault((parts.cell_id, parts.repeat), document.reason)
        return cls(by_repeat=by_repeat, by_folder=by_folder)

    def __bool__(self) -> bool:
        return bool(self.by_repeat or self.by_folder)

    def explain(self, run_id: str, cell_id: str, repeat: int) -> str | None:
        """Return why a record that a repeat has, or may have, cannot be read; None where there is none."""
        if (cell_id, repeat) in self.by_repeat:
            return self.by_repeat[cell_id, repeat]
        folder = results_prefix(run_id).removesuffix("/")
        return next((self.by_folder[key] for key in (folder, f"{folder}/{cell_id}") if key in self.by_folder), None)
