"""The document of `benchmatrix cost --json`, in base units, and what is chosen among its cells and machines."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Literal, NamedTuple

from bench.schema import Document
from collector.cell_words import DEVICE_NAMES
from collector.files import escape_markdown
from collector.prices.table import PriceRow
from collector.results.frames import Row, make_frame
from collector.tables.table import CELL, Column, Table, interval_column, make_table, number_column, text_column
from collector.tables.table import write_markdown as write_tables
from collector.units import HOUR, JOULE, MILLISECOND, Unit, count_things, format_significant

THOUSAND = 1000
Verdict = Literal["cpu", "gpu", "undecided", "not priced"]
Rule = Literal["deadline", "budget", "step-time"]


class Figure(Document):
    """An amount with its 95 % interval, whose ends are None where one repeat leaves them unknown."""

    value: float
    low: float | None = None
    high: float | None = None

    def scale(self, factor: float) -> "Figure":
        low, high = (None if end is None else end * factor for end in (self.low, self.high))
        return Figure(value=self.value * factor, low=low, high=high)

    def meets(self, limit: float) -> bool | None:
        """Return whether the upper end of the interval is within a limit; None if that is not known.

        Without an interval it is known only of an amount that is beyond the limit itself: its upper end is too.
        """
        if self.high is None:
            return False if self.value > limit else None
        return self.high <= limit


class Energy(Document):
    """The energy of a cell, and which parts of the machine it covers."""

    joules_per_1000_samples: Figure
    joules_per_million_tokens: Figure | None = None
    """None but for a language model."""
    covers: tuple[str, ...]
    """The parts whose energy it is: `GPU`, `CPU sockets`, `vCPUs`. Memory, disks and fans are never in it."""
    is_estimate: bool
    method: str
    """What measured it, or the formula of the estimate with its source."""


class OfferCost(Document):
    """What a cell costs on one machine of the price table."""

    row: PriceRow
    """The machine."""
    price_per_hour: float
    """What the cell's GPUs cost: their share of the machine's price, or all of it where whole machines count."""
    cost_per_1000_samples: Figure
    cost_of_job: Figure | None
    co2_grams_per_1000_samples: Figure | None
    co2_grams_of_job: Figure | None
    cost_per_million_tokens: Figure | None = None
    """None but for a language model; `CellCost.tokens` says which tokens."""
    co2_grams_per_million_tokens: Figure | None = None

    @property
    def amount_cost(self) -> Figure:
        """What a million tokens cost, or 1,000 samples of a cell that has no tokens."""
        return self.cost_per_million_tokens or self.cost_per_1000_samples


class CellCost(Document):
    """What one cell takes for 1,000 samples, and on which machines it was priced.

    Each sequence in a step of a language model is a sample: in prefill a prompt, in decoding one token.
    """

    run_id: str
    cell_id: str
    label: str
    work: str
    """What is computed, whatever computes it. A choice is made among cells of the same work."""
    device: str
    hardware: str
    """The name of the GPU, or the model of the CPU."""
    num_gpus: int
    """0 for a CPU cell."""
    num_threads: int | None
    """Threads that it was measured with; None if unknown."""
    step_seconds: Figure
    """The step time; in decoding that is the time per output token."""
    tokens: Literal["in", "out"] | None = None
    """Which tokens a language model is priced by: those of prompts (prefill), or those that come out (decode)."""
    seconds_per_1000_samples: Figure
    seconds_of_job: Figure | None
    """None for language models too: a data set has samples, not tokens."""
    energy: Energy | None
    joules_of_job: Figure | None
    offers: tuple[OfferCost, ...]
    """The cheapest first."""
    reason: str
    """Why it has no offer; empty if it has one."""

    @property
    def amount(self) -> str:
        return "1,000 samples" if self.tokens is None else f"a million tokens {self.tokens}"


class Job(Document):
    """The job whose costs are asked for: a number of epochs of a data set."""

    data_set: str
    title: str
    num_samples: int
    """Samples of one epoch."""
    epochs: float
    source: str


class Choice(Document):
    """Which cell and machine to take for a deadline or a budget, or for steps that take no longer than asked."""

    work: str
    rule: Rule
    sentence: str
    cell_id: str | None
    """None if no cell and machine is known to meet the rule."""
    not_known: tuple[str, ...] = ()
    """Cells that would be the better choice, or the only one: their amount meets the rule, but has no interval."""
    place: str | None
    seconds_of_job: Figure | None = None
    cost_of_job: Figure | None = None
    cost_per_1000_samples: Figure | None = None
    cost_per_million_tokens: Figure | None = None


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
    """Return the machine, and before it the part that the price is of, if it is a part (`1/8 of`)."""
    is_whole = offer.price_per_hour == offer.row.price_per_hour
    return offer.row.place if is_whole else f"{cell.num_gpus}/{offer.row.gpus_per_machine} of {offer.row.place}"


class Option(NamedTuple):
    """A cell on a machine, with the time and cost that a rule looks at: of the job, or of a step and an amount."""

    cell: CellCost
    offer: OfferCost
    seconds: Figure
    cost: Figure

    def describe(self, currency: str, rule: Rule) -> str:
        of_step = rule == "step-time"
        unit = MILLISECOND if of_step else HOUR
        time = f"{format_figure(self.seconds.scale(1 / unit.size))} {unit.label}{' a step' * of_step}"
        amount = f" for {self.cell.amount}" * of_step
        place = describe_place(self.cell, self.offer)
        if self.cell.device == "cpu" and (self.cell.num_threads or 0) < (self.offer.row.vcpus or 0):
            place += f", {self.cell.num_threads or 'some'} of its {self.offer.row.vcpus} vCPUs used,"
        return f"{place} with {self.cell.label}: {time}, {format_figure(self.cost)} {currency}{amount}"


def choose(work: str, cells: Sequence[CellCost], rule: Rule, bound: float, currency: str) -> Choice:
    """Return the cheapest cell and machine for a deadline (seconds), or the fastest for a budget, of the whole job.

    `step-time`: the cheapest whose steps take no longer than the bound (seconds), which is infinite where none is set.
    The upper end of the interval has to meet the bound. Options of which that is unknown are named and not chosen.
    """

    best, other = "cheapest", "fastest"
    rank, rank_other = attrgetter("cost.value", "seconds.value"), attrgetter("seconds.value", "cost.value")
    limit = f"within {bound / HOUR.size:.4g} h"
    if rule == "budget":
        best, other, rank, rank_other = other, best, rank_other, rank
        limit = f"for at most {bound:g} {currency}"
    elif rule == "step-time":
        limit = f"in steps of at most {bound / MILLISECOND.size:g} ms" if bound < math.inf else "that was measured"
    options = sorted(_list_options(cells, rule), key=rank)
    limited = (option.cost if rule == "budget" else option.seconds for option in options)
    states = [bound == math.inf or figure.meets(bound) for figure in limited]
    place = states.index(True) if True in states else None
    chosen = None if place is None else options[place]
    unknown = [option for option, state in zip(options, states[:place], strict=False) if state is None]
    if chosen is not None:
        sentence = f"{work}: the {best} {limit} is {chosen.describe(currency, rule)}"
    elif unknown:
        sentence = f"{work}: nothing that was measured and priced is known to be done {limit}"
    elif options:
        nearest = min(options, key=rank_other).describe(currency, rule)
        sentence = f"{work}: nothing that was measured and priced is done {limit}; the {other} is {nearest}"
    else:
        sentence = f"{work}: no cell has a price"
    if unknown:
        more = f", and of {len(unknown) - 1} more" if len(unknown) > 1 else ""
        sentence += f"; it is not known, without an interval, of {unknown[0].describe(currency, rule)}{more}"
    return Choice(
        work=work,
        rule=rule,
        sentence=sentence,
        cell_id=chosen and chosen.cell.cell_id,
        not_known=tuple(dict.fromkeys(option.cell.cell_id for option in unknown)),
        place=chosen and chosen.offer.row.place,
        seconds_of_job=chosen and chosen.cell.seconds_of_job,
        cost_of_job=chosen and chosen.offer.cost_of_job,
        cost_per_1000_samples=chosen and chosen.offer.cost_per_1000_samples,
        cost_per_million_tokens=chosen and chosen.offer.cost_per_million_tokens,
    )


def answer_cpu_or_gpu(work: str, cells: Sequence[CellCost], currency: str) -> CpuAnswer | None:
    """Return whether a CPU node does the work for less than a GPU; None where only one of them was measured.

    Of each side the cheapest cell counts, or the fastest where the CPU has no price; the sentence says what they ran
    where that differs. A side is cheaper where the 95 % interval of the ratio excludes 1.
    """
    on_cpu = [cell for cell in cells if cell.device == "cpu"]
    on_gpu = [cell for cell in cells if cell.device == "gpu"]
    if not on_cpu or not on_gpu:
        return None
    cpu, gpu = (
        min(_list_options(side, "step-time"), key=attrgetter("cost.value"), default=None) for side in (on_cpu, on_gpu)
    )
    verdict: Verdict = "not priced"
    ratio = break_even = None
    if gpu is None:
        words = "the GPU has no price, so nothing says whether a CPU node is cheaper"
    else:
        cell = min(on_cpu, key=lambda one: one.seconds_per_1000_samples.value) if cpu is None else cpu.cell
        cost = gpu.offer.cost_per_1000_samples
        break_even = divide_figures(cost, cell.seconds_per_1000_samples).scale(HOUR.size)
        bound = f"below {format_figure(break_even)} {currency} per hour"
        if cpu is None:
            words = f"a node with {cell.hardware} is the cheaper answer where it costs {bound}; it has no price"
        else:
            ratio = divide_figures(cpu.offer.cost_per_1000_samples, cost)
            if ratio.low is not None and ratio.high is not None and not ratio.low <= 1 <= ratio.high:
                verdict = "cpu" if ratio.high < 1 else "gpu"
            else:
                verdict = "undecided"
            answer = {"cpu": "a CPU node is cheaper", "gpu": "a GPU is cheaper"}.get(verdict, verdict)
            place = describe_place(gpu.cell, gpu.offer)
            words = (
                f"{answer}: {cpu.offer.row.place} costs {format_figure(ratio)} times as much as {place}; the CPU node "
                f"is cheaper {bound}"
            )
        words += _name_difference(work, cell, gpu.cell)
    return CpuAnswer(
        work=work, verdict=verdict, sentence=f"{work}: {words}", ratio=ratio, break_even_price_per_hour=break_even
    )


def _name_difference(work: str, cpu: CellCost, gpu: CellCost) -> str:
    """Return ` (CPU: batch 16, PyTorch eager; GPU: batch 64, JAX compiled)`; empty where both ran the same."""
    known = {*work.split(", "), *DEVICE_NAMES.values()}
    parts = [", ".join(part for part in cell.label.split(", ") if part not in known) for cell in (cpu, gpu)]
    return "" if parts[0] == parts[1] else f" ({DEVICE_NAMES['cpu']}: {parts[0]}; {DEVICE_NAMES['gpu']}: {parts[1]})"


def divide_figures(numerator: Figure, denominator: Figure) -> Figure:
    """Return the ratio of two independent amounts, with an interval if both have one.

    The half widths of their intervals add in quadrature on the log scale (MOVER: G. Y. Zou and A. Donner, Statistics in
    Medicine 27, 2008, 1693-1702).
    """
    value = numerator.value / denominator.value
    widths = [math.log(one.high / one.low) / 2 for one in (numerator, denominator) if one.low and one.high]
    if len(widths) < 2:
        return Figure(value=value)
    factor = math.exp(math.hypot(*widths))
    return Figure(value=value, low=value / factor, high=value * factor)


def format_figure(figure: Figure) -> str:
    """Return the amount with its interval: `4.10 (4.05 to 4.15)`."""
    if figure.low is None or figure.high is None:
        return format_significant(figure.value)
    return f"{format_significant(figure.value)} ({format_significant(figure.low)} to {format_significant(figure.high)})"


def _list_options(cells: Iterable[CellCost], rule: Rule) -> Iterator[Option]:
    for cell in cells:
        for offer in cell.offers:
            if rule == "step-time":
                yield Option(cell, offer, cell.step_seconds, offer.amount_cost)
            elif cell.seconds_of_job is not None and offer.cost_of_job is not None:
                yield Option(cell, offer, cell.seconds_of_job, offer.cost_of_job)


GRAM = Unit(label="g", size=1.0)
KILOGRAM = Unit(label="kg", size=1e3)
KILOWATT_HOUR = Unit(label="kWh", size=3.6e6)
MEAN_REMARK = "A measured energy is the geometric mean of the repeats that count."
TEXTS = ("label", "run_id", "place", "energy_of", "tokens")


def make_sample_table(document: CostDocument) -> Table | None:
    return _make_amount_table(document, [cell for cell in document.cells if cell.tokens is None], "1,000 samples")


def make_token_table(document: CostDocument) -> Table | None:
    of_tokens = [text_column("tokens", "tokens"), *_figure_columns("step time", "step_seconds", MILLISECOND)]
    cells = [cell for cell in document.cells if cell.tokens is not None]
    return _make_amount_table(document, cells, "a million tokens", *of_tokens)


def _make_amount_table(document: CostDocument, cells: Sequence[CellCost], amount: str, *others: Column) -> Table | None:
    """Return cost, energy and CO2 of an amount on the cheapest machine that has the cell's device.

    None where neither the cost nor the energy of a cell is known. CO2 depends on where a machine is.
    """
    has_price = any(cell.offers for cell in cells)
    has_energy = any(cell.energy is not None for cell in cells)
    if not has_price and not has_energy:
        return None
    money = Unit(label=document.currency, size=1.0)
    columns = [
        *others,
        number_column("per hour", "price_per_hour", money, is_optional=True),
        *(_figure_columns("cost", "cost", money) if has_price else ()),
        *(_figure_columns("energy", "joules", JOULE) if has_energy else ()),
        text_column("energy of", "energy_of", is_optional=True),
        number_column("CO2", "co2", GRAM, is_optional=True),
    ]
    caption = f"{'Cost, energy and CO2' if has_price else 'Energy'} of {amount}"
    return _make_cost_table(caption, columns, document, cells)


def make_job_table(document: CostDocument) -> Table | None:
    if document.job is None:
        return None
    columns = [
        *_figure_columns("time", "seconds_of_job", HOUR),
        *_figure_columns("cost", "cost_of_job", Unit(label=document.currency, size=1.0)),
        number_column("energy", "joules_of_job", KILOWATT_HOUR, is_optional=True),
        text_column("energy of", "energy_of", is_optional=True),
        number_column("CO2", "co2_of_job", KILOGRAM, is_optional=True),
    ]
    epochs = f"{document.job.epochs:g} {'epoch' if document.job.epochs == 1 else 'epochs'}"
    caption = f"Time, cost, energy and CO2 of {epochs} of {document.job.num_samples:,} samples ({document.job.title})"
    return _make_cost_table(caption, columns, document, [cell for cell in document.cells if cell.seconds_of_job])


def _make_cost_table(
    caption: str, columns: Sequence[Column], document: CostDocument, cells: Sequence[CellCost]
) -> Table:
    rows = [_describe_cell(cell, document) for cell in cells]
    run = text_column("run", "run_id", is_optional=True)
    shown = [CELL, run, text_column("cheapest machine", "place", is_optional=True), *columns]
    names = [source for column in shown for source in column.sources]
    frame = make_frame(rows, {name: "str" if name in TEXTS else "float64" for name in names})
    has_measured = any(cell.energy is not None and not cell.energy.is_estimate for cell in cells)
    return make_table(caption, shown, frame, remark=MEAN_REMARK if has_measured else "")


def _describe_cell(cell: CellCost, document: CostDocument) -> Row:
    """Return a cell on its cheapest machine: each figure with its ends, of its amount of samples and of the job."""
    offer, energy = next(iter(cell.offers), None), cell.energy
    source = "" if energy is None else " and ".join(energy.covers) + (", estimated" if energy.is_estimate else "")
    figures = {
        "step_seconds": cell.step_seconds,
        "joules": (energy.joules_per_million_tokens or energy.joules_per_1000_samples) if energy else None,
        "cost": offer.amount_cost if offer else None,
        "co2": (offer.co2_grams_per_million_tokens or offer.co2_grams_per_1000_samples) if offer else None,
        "seconds_of_job": cell.seconds_of_job,
        "joules_of_job": cell.joules_of_job,
        "cost_of_job": offer.cost_of_job if offer else None,
        "co2_of_job": offer.co2_grams_of_job if offer else None,
    }
    row: Row = {
        "label": cell.label,
        "tokens": cell.tokens,
        "run_id": cell.run_id if len(document.run_ids) > 1 else None,
        "place": offer and describe_place(cell, offer),
        "price_per_hour": offer and offer.price_per_hour,
        "energy_of": source or None,
    }
    for name, figure in figures.items():
        if figure is not None:
            row |= {name: figure.value, f"{name}_low": figure.low, f"{name}_high": figure.high}
    return row


def _figure_columns(title: str, name: str, unit: Unit) -> list[Column]:
    return [
        number_column(title, name, unit, is_optional=True),
        interval_column("95 % interval of this cell alone", f"{name}_low", f"{name}_high", unit),
    ]


def list_texts(document: CostDocument) -> dict[str, list[str]]:
    reasons = Counter(cell.reason for cell in document.cells if cell.reason)
    used = {
        (offer.row.place, f"{offer.row.price_per_hour:g}", str(offer.row.date), offer.row.source)
        for cell in document.cells
        for offer in cell.offers[:1]
    }
    methods = {cell.energy.method for cell in document.cells if cell.energy is not None}
    job, currency = document.job, document.currency
    texts = {
        "Answers": [*(one.sentence for one in document.choices), *(one.sentence for one in document.cpu_answers)],
        "Without a price": [f"{count_things(number, 'cell')}: {reason}" for reason, number in reasons.items()],
        "What this rests on": [
            f"Prices: {document.prices}, in {currency}.",
            *(f"{place}: {price} {currency} per hour, {day}, {source}" for place, price, day, source in sorted(used)),
            *(f"Energy: {method}" for method in sorted(methods)),
            *([f"{job.title}: {job.num_samples:,} samples, {job.source}"] if job else []),
            *document.assumptions,
        ],
    }
    return {title: lines for title, lines in texts.items() if lines}


def list_tables(document: CostDocument) -> list[Table]:
    tables = (make_job_table(document), make_sample_table(document), make_token_table(document))
    return [table for table in tables if table is not None]


def write_markdown(document: CostDocument) -> str:
    parts = [write_tables(list_tables(document))]
    for title, lines in list_texts(document).items():
        parts.append("\n".join([f"**{title}**\n", *(f"- {escape_markdown(line)}" for line in lines), ""]))
    return "\n".join(parts)
