"""What the options of `run` ask for: which run and its store, its limits, and where on a cluster."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, asdict, dataclass
from functools import cached_property, partial
from pathlib import Path

from bench.store import Store
from runner.commands.estimates import Pricing
from runner.records import Retries
from runner.signing import sign_store


@dataclass(frozen=True)
class Again:
    """What is measured again."""

    is_new: bool
    """Everything, in a new run."""
    retries: Retries

    @classmethod
    def of(cls, is_new: bool, retry_failed: bool, retry_contaminated: bool) -> "Again":
        """Return what these options ask for."""
        return cls(is_new, Retries(failed=retry_failed, contaminated=retry_contaminated))


@dataclass(frozen=True)
class RunRequest:
    """Which run is wanted, wherever it runs."""

    matrix: str
    url: str
    """Of the store."""
    run_id: str | None
    pricing: Pricing
    again: Again
    _: KW_ONLY
    sign: Path | None
    """The file of the key that signs; None: nothing is signed."""
    verify: Sequence[Path] | None
    """Files of public keys that are trusted besides that of `sign`."""
    as_json: bool

    @cached_property
    def store(self) -> Store:
        """The store, opened; it signs if that is asked for. UserError if a key cannot be read."""
        return sign_store(Store.open(self.url), self.sign, self.verify or ())


@dataclass(frozen=True, kw_only=True)
class RunCaps:
    """Options that say when a run on a cluster has had enough; None: not given."""

    deadline: float | None
    max_nodes: int | None
    max_cost: float | None
    give_up_after: float | None


@dataclass(frozen=True, kw_only=True)
class ClusterOptions(RunCaps):
    """Options that mean nothing on this machine; None: not given."""

    profile: str | None
    namespace: str | None
    queue: str | None
    owner: str | None
    prepull: float | None
    metrics_port: int | None

    @classmethod
    def of(
        cls,
        caps: RunCaps,
        profile: str | None,
        namespace: str | None,
        queue: str | None,
        owner: str | None,
        prepull: float | None,
        metrics_port: int | None,
    ) -> "ClusterOptions":
        """Return the options with these caps."""
        of_place = partial(cls, profile=profile, namespace=namespace, queue=queue, **asdict(caps))
        return of_place(owner=owner, prepull=prepull, metrics_port=metrics_port)
