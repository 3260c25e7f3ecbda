"""The document that `benchmatrix cost --json` prints, in base units: seconds, joules, grams, the table's currency."""

from datetime import date
from typing import Any, Literal

from bench.schema import Document
from collector.prices.table import Purchase

Verdict = Literal["cpu", "gpu", "undecided", "not priced"]


class Figure(Document):
    """An amount with its 95 % interval; None where one repeat leaves it unknown."""

    value: float
    low: float | None = None
    high: float | None = None

    def scale(self, factor: float) -> "Figure":
        """Return `factor` (above 0, known exactly) times the amount."""
        low, high = (None if end is None else end * factor for end in (self.low, self.high))
        return Figure(value=self.value * factor, low=low, high=high)

    def meets(self, limit: float) -> bool | None:
        """Return whether the upper end of the interval is within a limit; None where it is not known.

        Without an interval it is not, but for an amount that is beyond the limit itself: its upper end is so too.
        """
        if self.high is None:
            return False if self.value > limit else None
        return self.high <= limit


class Energy(Document):
    """The energy of a cell, and what it is of."""

    joules_per_1000_samples: Figure
    covers: tuple[str, ...]
    """The parts that it is the energy of: `GPU`, `CPU sockets`, `vCPUs`. Memory, disks and fans are in none."""
    is_estimate: bool
    method: str
    """What measured it, or the formula of the estimate with its source."""
    calculation: str = ""
    """The formula with the numbers of the cell; empty where it was measured."""


class OfferCost(Document):
    """What a cell costs on one machine of the price table."""

    place: str
    cloud: str
    region: str
    machine: str
    purchase: Purchase
    num_gpus: int
    """GPUs of the machine."""
    vcpus: int
    """vCPUs of the machine."""
    price_per_hour: float
    """Of the GPUs that the cell uses: their share of the machine's price, or all of it where whole machines count."""
    machine_price_per_hour: float
    cost_per_1000_samples: Figure
    cost_of_job: Figure | None
    co2_grams_per_1000_samples: Figure | None
    co2_grams_of_job: Figure | None
    price_date: date
    source: str


class CellCost(Document):
    """What one cell takes for 1,000 samples, and on which machines it was priced."""

    run_id: str
    cell_id: str
    label: str
    work: str
    """What is computed, whatever computes it: cells of the same work are chosen from."""
    device: str
    hardware: str
    """The name of the GPU, or the model of the CPU."""
    num_gpus: int
    """0 of a CPU cell."""
    num_threads: int | None
    """Threads that it was measured with; None where that is not known."""
    seconds_per_1000_samples: Figure
    seconds_of_job: Figure | None
    energy: Energy | None
    joules_of_job: Figure | None
    offers: tuple[OfferCost, ...]
    """The cheapest first."""
    reason: str
    """Why it has no offer; empty where it has."""


class Job(Document):
    """What the costs of a job are of: so many epochs of a data set."""

    data_set: str
    title: str
    num_samples: int
    """Of an epoch."""
    epochs: float
    source: str


class Choice(Document):
    """Which cell and machine to take for a deadline or a budget."""

    work: str
    rule: Literal["deadline", "budget"]
    sentence: str
    cell_id: str | None
    """None: no cell and machine is known to meet it."""
    not_known: tuple[str, ...] = ()
    """Cells that would be the better choice, or the only one: they meet it, but by an amount that has no interval."""
    place: str | None
    seconds_of_job: Figure | None
    cost_of_job: Figure | None


class CpuAnswer(Document):
    """Whether a CPU node does the work for less than a GPU."""

    work: str
    verdict: Verdict
    sentence: str
    ratio: Figure | None
    """The cost on the CPU over that on the GPU; None where the CPU has no price."""
    break_even_price_per_hour: Figure | None
    """What the CPU node may cost per hour so that both cost the same; None where the GPU has no price."""


class CostDocument(Document):
    """What the cells of runs cost, with the assumptions that this rests on."""

    cost_version: Literal[1] = 1
    run_ids: tuple[str, ...]
    prices: str
    """The title of the price table."""
    currency: str
    job: Job | None
    assumptions: tuple[str, ...]
    cells: tuple[CellCost, ...]
    choices: tuple[Choice, ...]
    cpu_answers: tuple[CpuAnswer, ...]


def describe_place(cell: CellCost, offer: OfferCost) -> str:
    """Return the machine, with the part of it that the price is of where that is not the whole."""
    if offer.price_per_hour == offer.machine_price_per_hour:
        return offer.place
    return f"{cell.num_gpus}/{offer.num_gpus} of {offer.place}"


def export_cost_schema() -> dict[str, Any]:
    """Return the JSON Schema of CostDocument."""
    schema = CostDocument.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
