"""Estimate what a run costs, and whether its caps on nodes and on money leave room for another Job.

The estimate, of the whole run, whichever runners handled it:

    sum over pools of  price_per_hour * (seconds of its records + seconds that its running cells have run) / 3600

The seconds of a record are from `started_at` to `finished_at`, none where a clock was set between them. It is a lower
bound: booting nodes, pulling images,
nodes that are idle before, between and after cells, attempts that left no terminal record, disks, traffic and the
control plane are not in it. For cells that share a node it is too high: each counts as a whole node.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from bench.errors import UserError
from bench.schema import Result, Run, measure_attempt
from runner.kubernetes.tracked_jobs import Cost, TrackedJob, TrackedJobs
from runner.profiles.model import NodePools, Profile
from runner.records import RepeatKey

SECONDS_PER_HOUR = 3600.0


@dataclass(kw_only=True)
class Spending:
    """Adds up what the cells of a run take, on the main thread."""

    prices: Mapping[str, float]
    """Of a node, per hour, by pool. A pool that is missing has no known price."""
    currency: str
    max_nodes: int | None = None
    max_cost: float | None = None
    _ended_seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float), repr=False)
    """By pool: what its terminal records took."""
    _num_ended: Counter[str] = field(default_factory=Counter, repr=False)
    _running_since: dict[str, float] = field(default_factory=dict, repr=False)
    """When (time.monotonic) a cell was first seen to run, by the name of its Job."""
    _running_seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float), repr=False)

    @classmethod
    def of(cls, profile: Profile, *, max_nodes: int | None, max_cost: float | None) -> "Spending":
        """Return the spending of a run that has no record yet."""
        prices: dict[str, float] = {
            name: pool.price_per_hour for name, pool in profile.pools.items() if pool.price_per_hour is not None
        }
        return cls(prices=prices, currency=profile.currency, max_nodes=max_nodes, max_cost=max_cost)

    def add_records(self, run: Run, seconds: Mapping[RepeatKey, float]) -> None:
        """Add what the records took that the store had at the start."""
        pools = {planned.cell.cell_id: planned.cell.device for planned in run.cells}
        for (cell_id, _), duration in seconds.items():
            if cell_id in pools:
                self._ended_seconds[pools[cell_id]] += duration
                self._num_ended[pools[cell_id]] += 1

    def add(self, tracked: TrackedJob, result: Result) -> None:
        """Add what a record took."""
        self._running_since.pop(tracked.name, None)
        self._ended_seconds[tracked.pool] += measure_attempt(result.started_at, result.finished_at) or 0.0
        self._num_ended[tracked.pool] += 1

    def update(self, jobs: TrackedJobs) -> None:
        """Take note of what runs now; to be called about once a second."""
        now = time.monotonic()
        running = [
            tracked
            for tracked in jobs.list_unfinished()
            if tracked.state == "in-flight" and tracked.job and tracked.job.num_ready
        ]
        self._running_since = {tracked.name: self._running_since.get(tracked.name, now) for tracked in running}
        self._running_seconds.clear()
        for tracked in running:
            self._running_seconds[tracked.pool] += now - self._running_since[tracked.name]
        if self.prices:
            jobs.cost = Cost(amount=self.cost, currency=self.currency)

    def __str__(self) -> str:
        return str(Cost(amount=self.cost, currency=self.currency))

    @property
    def cost(self) -> float:
        """The estimate so far, for the pools whose price is known."""
        return sum(
            price * (self._ended_seconds[pool] + self._running_seconds[pool]) / SECONDS_PER_HOUR
            for pool, price in self.prices.items()
        )

    def has_room(self, tracked: TrackedJob, jobs: TrackedJobs) -> bool:
        """Return whether the caps allow this Job on top of those that are unfinished.

        Every unfinished Job may take a node of its own. A cell that has not ended is expected to cost what those of its
        pool that have ended cost on average; as long as none has, its whole timeout. While no Job is unfinished, one is
        allowed until the estimate has reached the cap.
        """
        num_unfinished = jobs.count("submitting", "in-flight")
        if self.max_nodes is not None and num_unfinished >= self.max_nodes:
            return False
        if self.max_cost is None:
            return True
        if not num_unfinished and not self._num_ended[tracked.pool]:
            return self.cost < self.max_cost
        return self._expect_cost(tracked, jobs) <= self.max_cost

    def _expect_cost(self, tracked: TrackedJob, jobs: TrackedJobs) -> float:
        """Return what the run will have cost when this Job and all that are unfinished have ended."""
        expected = self._expect_cell_cost(tracked) + sum(
            price * self._ended_seconds[pool] / SECONDS_PER_HOUR for pool, price in self.prices.items()
        )
        for pool in self.prices:
            num_unfinished = jobs.count_in_pool(pool, "submitting", "in-flight")
            if num_unfinished and self._num_ended[pool]:
                expected += num_unfinished * self._find_mean_cost(pool)
            elif num_unfinished:
                unfinished = (other for other in jobs.list_unfinished() if other.pool == pool)
                expected += sum(map(self._expect_cell_cost, unfinished))
        return expected

    def _expect_cell_cost(self, tracked: TrackedJob) -> float:
        if self._num_ended[tracked.pool]:
            return self._find_mean_cost(tracked.pool)
        return self.prices[tracked.pool] * tracked.repeat.planned.timeout_seconds / SECONDS_PER_HOUR

    def _find_mean_cost(self, pool: str) -> float:
        return self.prices[pool] * self._ended_seconds[pool] / self._num_ended[pool] / SECONDS_PER_HOUR


def check_prices(profile: Profile, pools: Iterable[NodePools], max_cost: float | None) -> None:
    """Raise UserError if the cost is to be capped and a pool that the run needs has no price."""
    if max_cost is None:
        return
    for name in sorted(set(pools)):
        if (
            pool := {str(key): found for key, found in profile.pools.items()}.get(name)
        ) and pool.price_per_hour is None:
            raise UserError(
                f"--max-cost: profile {profile.name}: pools.{name}.price_per_hour: is missing; write what a node of "
                f"this pool costs per hour in {profile.currency}, name its machine type (--machine {name}=MACHINE), or "
                "leave --max-cost out (--max-nodes needs no price)"
            )
