"""Gather what the options of `run` ask for: the run and its store, its limits, its cluster, what follows it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # what help needs not to load
    from bench.store import Store
    from runner.commands.estimates import Pricing
    from runner.records import Retries


@dataclass(frozen=True)
class Again:
    """What is measured again."""

    is_new: bool
    """Everything, in a new run."""
    failed: bool
    contaminated: bool

    @property
    def retries(self) -> "Retries":
        """The repeats of the run that are measured once more."""
        from runner.records import Retries

        return Retries(failed=self.failed, contaminated=self.contaminated)


@dataclass(frozen=True)
class PricingOptions:
    """How the run is priced, and whether that is all that is wanted."""

    machines: list[str] | None
    prices: Path | None
    is_dry: bool


@dataclass(frozen=True)
class RunRequest:
    """Which run is wanted, wherever it runs."""

    matrix: str
    url: str
    """Of the store."""
    run_id: str | None
    again: Again
    pricing_options: PricingOptions
    sign: Path | None
    """The file of the key that signs; None: nothing is signed."""
    verify: Sequence[Path] | None
    """Files of public keys that are trusted besides that of `sign`."""

    @cached_property
    def store(self) -> "Store":
        """The store, opened; it signs if that is asked for. UserError if a key cannot be read.

        Of a run that is only estimated, no directory is made.
        """
        from bench.store import Store
        from runner.signing import sign_store

        opened = Store.open(self.url, makes_directory=not self.pricing_options.is_dry)
        return sign_store(opened, self.sign, self.verify or ())

    @cached_property
    def pricing(self) -> "Pricing":
        """How the run is priced. UserError if an option is wrong."""
        from runner.commands.estimates import Pricing

        options = self.pricing_options
        return Pricing.of(options.machines, options.prices, options.is_dry)


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
    metrics_port: int | None

    @classmethod
    def of(
        cls,
        caps: RunCaps,
        profile: str | None,
        namespace: str | None,
        queue: str | None,
        owner: str | None,
        metrics_port: int | None,
    ) -> "ClusterOptions":
        """Return the options with these caps."""
        of_place = partial(cls, profile=profile, namespace=namespace, queue=queue, **asdict(caps))
        return of_place(owner=owner, metrics_port=metrics_port)


@dataclass(frozen=True)
class Ending:
    """What follows the measuring, and how it is shown."""

    output: Path | None
    with_report: bool
    is_published: bool
    is_watched: bool
    webhooks: Sequence[str] | None
    as_json: bool
