"""What the options of `run` ask for: which run, its limits, and where on a cluster."""

from dataclasses import KW_ONLY, asdict, dataclass
from functools import cached_property, partial

from bench.store import Store
from runner.commands.estimates import Pricing
from runner.records import Retries


@dataclass(frozen=True)
class RunRequest:
    """Which run is wanted, wherever it runs."""

    matrix: str
    url: str
    """Of the store."""
    run_id: str | None
    pricing: Pricing
    _: KW_ONLY
    is_new: bool
    retries: Retries
    as_json: bool

    @classmethod
    def of(
        cls,
        matrix: str,
        url: str,
        run_id: str | None,
        pricing: Pricing,
        is_new: bool,
        retry_failed: bool,
        retry_contaminated: bool,
        as_json: bool,
    ) -> "RunRequest":
        """Return what these options ask for."""
        retries = Retries(failed=retry_failed, contaminated=retry_contaminated)
        return cls(matrix, url, run_id, pricing, is_new=is_new, retries=retries, as_json=as_json)

    @cached_property
    def store(self) -> Store:
        """The store, opened."""
        return Store.open(self.url)


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
