"""Decide when a run on this machine has had enough: at a deadline, or at a cap on what its hours cost."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from bench.errors import UserError
from bench.registry import Device
from bench.schema import Result, Run, measure_attempt
from runner.matrix.plan import Repeat
from runner.records import RepeatKey

SECONDS_PER_HOUR = 3600.0


@dataclass(frozen=True, kw_only=True)
class CapOptions:
    """The caps that the user asked for; None: there is no such cap."""

    deadline_seconds: float | None = None
    """Counted from the beginning of the run."""
    max_cost: float | None = None
    prices: Mapping[Device, float] = field(default_factory=dict)
    """Of this machine per hour, by the device of the cells that it measures."""
    currency: str = "USD"


@dataclass(kw_only=True)
class LocalCaps:
    """Says before each repeat whether the run may go on; adds up what its records took."""

    options: CapOptions
    deadline: datetime | None
    now: Callable[[], datetime]
    _seconds: defaultdict[Device, float] = field(default_factory=lambda: defaultdict(float), repr=False)
    _num_ended: Counter[Device] = field(default_factory=Counter, repr=False)

    @classmethod
    def of(
        cls,
        options: CapOptions,
        run: Run,
        seconds: Mapping[RepeatKey, float],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> "LocalCaps":
        """Return the caps of a run whose records took so many `seconds` already."""
        devices = {planned.cell.cell_id: planned.cell.device for planned in run.cells}
        limit = options.deadline_seconds
        deadline = None if limit is None else min(run.created_at, now()) + timedelta(seconds=limit)
        caps = cls(options=options, deadline=deadline, now=now)
        for (cell_id, _), duration in seconds.items():
            if cell_id in devices:
                caps._add(devices[cell_id], duration)
        return caps

    def add(self, repeat: Repeat, result: Result) -> None:
        self._add(repeat.planned.cell.device, measure_attempt(result.started_at, result.finished_at) or 0.0)

    def _add(self, device: Device, seconds: float) -> None:
        self._seconds[device] += seconds
        self._num_ended[device] += 1

    @property
    def cost(self) -> float:
        prices = self.options.prices
        return sum(price * self._seconds[device] / SECONDS_PER_HOUR for device, price in prices.items())

    def explain_end(self, repeat: Repeat) -> str | None:
        """Return why the run must not begin this repeat; None if it may.

        A repeat is expected to cost what those of its device that have ended cost on average; as long as none has, it
        may begin while the cost is below the cap. A repeat that runs is not ended: its time limit does that.
        """
        options, device = self.options, repeat.planned.cell.device
        if self.deadline is not None and self.now() >= self.deadline:
            return f"the deadline of {options.deadline_seconds:g} s has passed"
        if options.max_cost is None:
            return None
        spent = f"the run has cost about {self.cost:.2f} {options.currency}"
        if not self._num_ended[device]:
            return None if self.cost < options.max_cost else f"{spent}, which reaches --max-cost {options.max_cost:g}"
        mean = options.prices[device] * self._seconds[device] / self._num_ended[device] / SECONDS_PER_HOUR
        if self.cost + mean <= options.max_cost:
            return None
        return f"{spent}; one more repeat would pass --max-cost {options.max_cost:g}"


def check_prices(options: CapOptions, devices: Iterable[Device]) -> None:
    missing = sorted(set(devices) - options.prices.keys())
    if missing:
        raise UserError(
            f"--max-cost: what an hour of this machine costs for {missing[0]} cells is not known; name its machine "
            f"type with --machine {missing[0]}=MACHINE, and with --prices FILE where the tool has no price of it"
        )
