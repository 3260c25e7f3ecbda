"""Which run the options of `run` ask for, and its store, wherever the run is measured."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from pathlib import Path

from bench.store import Store
from runner.commands.estimates import Pricing
from runner.signing import sign_store


@dataclass(frozen=True)
class RunRequest:
    """Which run is wanted, wherever it runs."""

    matrix: str
    url: str
    """Of the store."""
    run_id: str | None
    pricing: Pricing
    _: KW_ONLY
    sign: Path | None
    """The file of the key that signs; None: nothing is signed."""
    verify: Sequence[Path]
    """Files of public keys that are trusted besides that of `sign`."""
    is_new: bool
    retry_failed: bool
    as_json: bool

    @cached_property
    def store(self) -> Store:
        """The store, opened; it signs if that is asked for. UserError if a key cannot be read."""
        return sign_store(Store.open(self.url), self.sign, self.verify)


def plan(
    matrix: str,
    store: str,
    run_id: str | None,
    priced: tuple[list[str] | None, Path | None, bool],
    keys: tuple[Path | None, Sequence[Path] | None],
    flags: tuple[bool, bool, bool],
) -> RunRequest:
    """Return which run is asked for; UserError if it cannot be priced.

    `priced`: --machine, --prices, --dry-run. `keys`: --sign, --verify. `flags`: --new, --retry-failed, --json.
    """
    (sign, verify), (is_new, retry_failed, as_json) = keys, flags
    named = {"is_new": is_new, "retry_failed": retry_failed, "as_json": as_json}
    return RunRequest(matrix, store, run_id, Pricing.of(*priced), sign=sign, verify=verify or (), **named)
