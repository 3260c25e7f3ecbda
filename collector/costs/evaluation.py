"""Price the measured cells of runs: every cell on every machine of the price table that has its device."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import pandas as pd

from bench.registry import Device
from collector.costs.choices import answer_cpu_or_gpu, choose_for_budget, choose_for_deadline
from collector.costs.datasets import DataSet
from collector.costs.document import CellCost, CostDocument, Energy, Figure, Job, OfferCost
from collector.costs.energy import CPU_ENERGY, GPU_ENERGY, THOUSAND, find_energy, make_figure, name_hardware
from collector.facts import count_things
from collector.labels import add_labels, label_panels
from collector.prices.offers import find_cpu_offers, find_gpu_offers, find_machine_offers
from collector.prices.table import PriceRow, PriceTable, Purchase
from collector.results.cell_repeats import Repeats, choose_counted
from collector.results.collection import Collection
from collector.results.frames import Row, list_rows
from collector.results.intervals import read_estimate
from collector.results.summary import summarize_cells
from collector.statistics import scale_estimate

SECONDS_PER_HOUR = 3600.0
JOULES_PER_KWH = 3.6e6
WORK_COLUMNS = ("model", "phase", "input_size", "num_classes", "precision", "data_dir")
"""What has to be the same in cells that one may choose from. Batch, framework and mode may differ."""
REPEAT_COLUMNS = ("cell_id", "environment_id", "machine", "gpu_energy_source", GPU_ENERGY, CPU_ENERGY)
SUMMARY_COLUMNS = (
    *WORK_COLUMNS,
    *("run_id", "cell_id", "environment_id", "label", "device", "batch_size", "num_gpus", "num_threads"),
    *("gpu_name", "cpu_model", "cpu_own_cores", "instance_types"),
    *("center_step_seconds", "log_standard_error", "degrees_of_freedom"),
)
"""What is read of results and summaries: a run may have 20,000 cells, and a row of all columns is expensive to make."""

MAX_NAMED = 3
"""Places that a message names."""


@dataclass(frozen=True, kw_only=True)
class CostQuestion:
    """What is asked of measured cells and a price table."""

    data_set: DataSet | None = None
    epochs: float = 1.0
    deadline_seconds: float | None = None
    """For the whole job; needs a data set, as the budget does."""
    budget: float | None = None
    """In the currency of the table."""
    purchases: tuple[Purchase, ...] = ("on-demand",)
    cloud: str | None = None
    region: str | None = None
    machines: Mapping[Device, str] = field(default_factory=dict)
    """Machine types that stand for the device of the cells, whatever they were measured on."""
    counts_whole_machines: bool = False


def evaluate_costs(
    collections: Sequence[Collection],
    table: PriceTable,
    question: CostQuestion,
    *,
    summary: pd.DataFrame | None = None,
) -> CostDocument:
    """Return what the cells of `collections` cost; those without a sound repeat only if the question includes them.

    `summary`: the rows of `summarize_cells` with the labels of `add_labels`, where the caller has them already.
    """
    if summary is None:
        frames = [add_labels(summarize_cells(collection)) for collection in collections]
        summary = pd.concat(frames, ignore_index=True)
    repeats = _index_repeats(collections)
    is_counted = summary["num_sound"] > 0
    rows = list_rows(summary.loc[is_counted & ~_find_shared(summary), list(SUMMARY_COLUMNS)])
    works = _name_works(rows)
    cells = tuple(
        _price_cell(row, repeats[row["run_id"], row["cell_id"], row["environment_id"]], work, table, question)
        for row, work in zip(rows, works, strict=True)
    )
    ordered = sorted(cells, key=lambda cell: cell.work)
    groups = [(work, list(group)) for work, group in groupby(ordered, key=lambda cell: cell.work)]
    deadline, budget, currency = question.deadline_seconds, question.budget, table.currency
    by_deadline = [choose_for_deadline(*group, deadline, currency) for group in groups if deadline is not None]
    by_budget = [choose_for_budget(*group, budget, currency) for group in groups if budget is not None]
    answers = [answer_cpu_or_gpu(*group, currency) for group in groups]
    return CostDocument(
        run_ids=tuple(collection.run.run_id for collection in collections),
        prices=table.title,
        currency=currency,
        job=_describe_job(question),
        assumptions=(*_list_assumptions(question, cells), *_describe_shared(summary)),
        cells=cells,
        choices=(*by_deadline, *by_budget),
        cpu_answers=tuple(answer for answer in answers if answer is not None),
    )


def _find_shared(summary: pd.DataFrame) -> "pd.Series[bool]":
    """Return which rows are of cells that have no device to themselves: a machine's price is not theirs alone."""
    return (summary["tenants"] > 1) | (summary["sharing"] == "mig")


def _index_repeats(collections: Iterable[Collection]) -> dict[tuple[str, str, str], list[Row]]:
    """Return the rows of the repeats that figures come from, by run, cell and environment."""
    found: dict[tuple[str, str, str], list[Row]] = {}
    for collection in collections:
        repeats, rows = Repeats(collection.results), list_rows(collection.results[list(REPEAT_COLUMNS)])
        for cell in repeats.group_by_cell():
            for ok in cell.ok:
                counted = [rows[index] for index in choose_counted(repeats, ok)]
                first = counted[0]
                found[collection.run.run_id, first["cell_id"], first["environment_id"]] = counted
    return found


def _name_works(rows: Sequence[Row]) -> list[str]:
    """Return what each row computes: `resnet18 train, 224 px, fp32`, with classes and data where they vary."""
    frame = pd.DataFrame(rows, columns=None if rows else [*WORK_COLUMNS])
    if frame.empty:
        return []
    names = label_panels(frame[["model", "phase", "input_size"]])
    works = [f"{name}, {row['precision']}" for name, row in zip(names, rows, strict=True)]
    keys = {(work, *(str(row[name]) for name in WORK_COLUMNS)) for work, row in zip(works, rows, strict=True)}
    if len(keys) == len(set(works)):
        return works
    return [f"{work}, {_name_rest(row)}" for work, row in zip(works, rows, strict=True)]


def _name_rest(row: Row) -> str:
    classes: str = "no classes" if pd.isna(row["num_classes"]) else f"{row['num_classes']} classes"
    return f"{classes}, {'synthetic data' if pd.isna(row['data_dir']) else row['data_dir']}"


def _price_cell(row: Row, repeats: Sequence[Row], work: str, table: PriceTable, question: CostQuestion) -> CellCost:
    seconds = make_figure(scale_estimate(read_estimate(row), THOUSAND / row["batch_size"]))
    energy = find_energy(row, repeats, table, seconds)
    num_gpus = int(row["num_gpus"]) if row["device"] == "gpu" else 0
    hardware = name_hardware(row) or f"unknown {row['device'].upper()}"
    job = None if question.data_set is None else question.data_set.num_samples * question.epochs / THOUSAND
    rows = _find_offers(row, table, question)
    wanted = [found for found in rows if _is_wanted(found, question)]
    offers = [_price_offer(found, num_gpus, seconds, energy, job, table, question) for found in wanted]
    return CellCost(
        run_id=row["run_id"],
        cell_id=row["cell_id"],
        label=row["label"],
        work=work,
        device=row["device"],
        hardware=hardware,
        num_gpus=num_gpus,
        num_threads=None if pd.isna(row["num_threads"]) else int(row["num_threads"]),
        seconds_per_1000_samples=seconds,
        seconds_of_job=None if job is None else seconds.scale(job),
        energy=energy,
        joules_of_job=None if job is None or energy is None else energy.joules_per_1000_samples.scale(job),
        offers=tuple(sorted(offers, key=lambda offer: offer.cost_per_1000_samples.value)),
        reason="" if offers else _explain_missing(row, hardware, rows),
    )


def _find_offers(row: Row, table: PriceTable, question: CostQuestion) -> list[PriceRow]:
    """Return the machines that a cell is priced on: those that the user names, else those that have its device.

    A GPU is known by its name. A CPU node is known by its machine type where a cluster's node said it, else by the
    model of its CPU: two machines with as many vCPUs may differ in speed by a factor.
    """
    machine = question.machines.get(row["device"])
    num_gpus = int(row["num_gpus"])
    if machine is not None:
        found = find_machine_offers(table, machine)
        if row["device"] == "cpu":
            return found
        return [one for one in found if one.gpus_per_machine >= num_gpus]
    if row["device"] == "gpu":
        return find_gpu_offers(table, name_hardware(row), num_gpus=num_gpus)
    if not pd.isna(row["instance_types"]):
        found = [one for one in find_machine_offers(table, row["instance_types"]) if one.gpu is None]
        if found:
            return found
    return find_cpu_offers(table, name_hardware(row))


def _is_wanted(row: PriceRow, question: CostQuestion) -> bool:
    return (
        row.purchase in question.purchases
        and question.cloud in (None, row.cloud)
        and question.region in (None, row.region)
    )


def _price_offer(
    row: PriceRow,
    num_gpus: int,
    seconds: Figure,
    energy: Energy | None,
    job: float | None,
    table: PriceTable,
    question: CostQuestion,
) -> OfferCost:
    price = row.compute_hourly_price(num_gpus, is_whole=question.counts_whole_machines)
    cost = seconds.scale(price / SECONDS_PER_HOUR)
    carbon = table.find_carbon(row.cloud, row.region)
    co2 = None
    if energy is not None and carbon is not None and carbon.grams_per_kwh > 0:
        co2 = energy.joules_per_1000_samples.scale((carbon.pue or 1.0) * carbon.grams_per_kwh / JOULES_PER_KWH)
    return OfferCost(
        place=row.place,
        cloud=row.cloud,
        region=row.region,
        machine=row.machine,
        purchase=row.purchase,
        num_gpus=row.gpus_per_machine,
        vcpus=row.vcpus,
        price_per_hour=price,
        machine_price_per_hour=row.price_per_hour,
        cost_per_1000_samples=cost,
        cost_of_job=None if job is None else cost.scale(job),
        co2_grams_per_1000_samples=co2,
        co2_grams_of_job=None if job is None or co2 is None else co2.scale(job),
        price_date=row.date,
        source=row.source,
    )


def _explain_missing(row: Row, hardware: str, unwanted: Sequence[PriceRow]) -> str:
    """Return why a cell has no price; `unwanted`: prices of it that the question leaves out."""
    device = row["device"]
    if device == "gpu" and row["num_gpus"] > 1:
        hardware = f"a machine with {int(row['num_gpus'])} or more {hardware}"
    if unwanted:
        places = ", ".join(dict.fromkeys(found.place for found in unwanted[:MAX_NAMED]))
        return f"no price for {hardware} where --cloud, --region and --spot allow one; there is one of {places}"
    return (
        f"no price for {hardware}: name a machine that stands for it (--machine {device}=MACHINE), "
        "or give it a row in a price table of yours (--prices)"
    )


def _describe_shared(summary: pd.DataFrame) -> Iterator[str]:
    number = int(_find_shared(summary).sum())
    if number:
        have = "has no price of its own" if number == 1 else "have no price of their own"
        yield f"{count_things(number, 'cell')} with several tenants, or on a slice of a GPU, {have}: left out."


def _describe_job(question: CostQuestion) -> Job | None:
    found = question.data_set
    if found is None:
        return None
    return Job(
        data_set=found.name,
        title=found.title,
        num_samples=found.num_samples,
        epochs=question.epochs,
        source=found.source,
    )


def _list_assumptions(question: CostQuestion, cells: Sequence[CellCost]) -> Iterator[str]:
    """Yield what the costs rest on, one sentence each."""
    yield (
        "A sample costs the time of its step: start, data, warm-up, idle nodes, disks, traffic and control planes are "
        "not in it."
    )
    if any(0 < cell.num_gpus < offer.num_gpus for cell in cells for offer in cell.offers):
        yield (
            "Machines with more GPUs than a cell uses count whole."
            if question.counts_whole_machines
            else "Of a machine with more GPUs than a cell uses, the GPUs' share counts; alone on it you pay for all of "
            "it (--whole-machines)."
        )
    devices = {cell.device for cell in cells}
    for device, machine in question.machines.items():
        if device not in devices:
            continue
        yield f"{device.upper()} cells count as if {machine} were as fast as what they were measured on."
    threads = {
        (cell.num_threads, offer.vcpus, offer.machine)
        for cell in cells
        for offer in cell.offers[:1]
        if cell.device == "cpu" and cell.num_threads not in (None, offer.vcpus)
    }
    for number, vcpus, machine in sorted(threads):
        paid = "the one vCPU" if vcpus == 1 else f"all {vcpus} vCPUs"
        yield f"CPU cells that ran on {count_things(number, 'thread')} pay for {paid} of {machine}."
    if any(cell.device == "gpu" and cell.offers for cell in cells):
        yield "A GPU counts as equally fast on every machine that has it, whatever its host."
    if any(cell.energy is not None for cell in cells):
        yield (
            "Energy is that of the parts named, no more; CO2 is energy x PUE x the grid's mean intensity of a year, "
            "without what making the machines emitted."
        )
