"""Price the measured cells of runs, and their energy, on every machine of the price table that has their device."""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from math import inf
from operator import attrgetter

import pandas as pd

from bench.errors import UserError
from bench.registry import Device
from collector.cell_words import count_tokens
from collector.costs.document import (
    KILOWATT_HOUR,
    THOUSAND,
    CellCost,
    CostDocument,
    Energy,
    Figure,
    Job,
    OfferCost,
    Rule,
    answer_cpu_or_gpu,
    choose,
)
from collector.labels import add_labels, label_panels
from collector.prices.table import (
    PriceRow,
    PriceTable,
    Purchase,
    find_cpu_offers,
    find_gpu_offers,
    find_machine_offers,
    find_power,
)
from collector.results.collection import Collection
from collector.results.frames import Row, group_rows, list_rows
from collector.results.summary import NO, judge_counting, read_estimate, summarize_cells
from collector.statistics import Estimate, measure
from collector.units import HOUR, count_things

MAX_SAMPLES = 10**15
SAMPLES = re.compile("[0-9]{1,3}(?:,[0-9]{3})+|[0-9_]{1,30}")
"""`50000`, `50_000` or `50,000`; not `1,5`, which may be one and a half."""


DATA_SETS = {
    "imagenet": (
        "ImageNet-1k (ILSVRC 2012), training set",
        1_281_167,
        "1,281,167 training images, as the documentation of many libraries has it (DeepOBS, MLDatasets.jl; read "
        "2026-11-22); image-net.org itself was not read",
    ),
    "cifar10": (
        "CIFAR-10, training set",
        50_000,
        "https://huggingface.co/Sendeky/Cifar10/raw/main/cifar10.py, read 2026-11-22",
    ),
    # A sample of CycleGAN is a pair; an epoch of its authors' code ends with the larger of both sets.
    "horse2zebra": (
        "horse2zebra, the larger of its two training sets",
        1_334,
        "https://github.com/tensorflow/datasets/blob/master/docs/catalog/cycle_gan.md, read 2026-11-22",
    ),
}
"""By name: title, samples of an epoch as a step of a cell counts them, source."""


def find_job(text: str, epochs: float = 1.0) -> Job:
    """Return the job of `epochs` epochs of a data set. Raise UserError if `text` is neither its name nor its size."""
    digits = re.sub("[_,]", "", text) if SAMPLES.fullmatch(text) else ""
    if text in DATA_SETS:
        title, number, source = DATA_SETS[text]
    elif digits and 0 < (number := int(digits)) <= MAX_SAMPLES:
        title, source = f"a data set of {number:,} samples", "the user"
    else:
        near = difflib.get_close_matches(text.lower(), DATA_SETS, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"known are {', '.join(DATA_SETS)}."
        raise UserError(
            f"--dataset {text}: is no known data set; {hint} Of another give the number of its samples, at most "
            f"{MAX_SAMPLES:,}"
        )
    return Job(data_set=text, title=title, num_samples=number, epochs=epochs, source=source)


CPU_SOCKETS = "CPU sockets"
GPU_ENERGY, CPU_ENERGY = "gpu_energy_per_sample_joules", "cpu_energy_per_sample_joules"


def make_figure(estimate: Estimate) -> Figure:
    return Figure(value=estimate.center, **dict(zip(("low", "high"), estimate.interval or (), strict=False)))


def name_hardware(row: Row) -> str:
    """Return the name of a cell's GPU, or the model of its CPU; empty where it is not known."""
    name = row["gpu_name" if row["device"] == "gpu" else "cpu_model"]
    return "" if pd.isna(name) else str(name)


def find_energy(row: Row, repeats: Sequence[Row], table: PriceTable, seconds_per_1000: Figure) -> Energy | None:
    """Return the energy of 1,000 samples of a cell; None where it was not measured and no power is known.

    `row`: a row of the summary. `repeats`: the rows of the results that the cell's figures come from.
    """
    columns = {"GPU": GPU_ENERGY, CPU_SOCKETS: CPU_ENERGY} if row["device"] == "gpu" else {CPU_SOCKETS: CPU_ENERGY}
    readings = {part: [repeat[name] for repeat in repeats] for part, name in columns.items()}
    known = {part: values for part, values in readings.items() if values and all(values)}
    if next(iter(columns)) not in known:
        return _estimate_energy(row, table, seconds_per_1000)
    methods = {"GPU": f"GPU: {repeats[0]['gpu_energy_source']}", CPU_SOCKETS: "CPU sockets: RAPL"}
    totals = [float(sum(parts)) for parts in zip(*known.values(), strict=True)]
    machines, is_first = ([repeat[name] for repeat in repeats] for name in ("machine", "is_first_stage"))
    estimate = measure(totals, machines, is_first).estimate
    return Energy(
        joules_per_1000_samples=make_figure(estimate).scale(THOUSAND),
        covers=tuple(known),
        is_estimate=False,
        method="; ".join(methods[part] for part in known),
    )


def _estimate_energy(row: Row, table: PriceTable, seconds: Figure) -> Energy | None:
    is_gpu = row["device"] == "gpu"
    power = find_power(table, "gpu" if is_gpu else "vcpu", name_hardware(row))
    if power is None or (not is_gpu and (power.idle_watts is None or pd.isna(row["num_threads"]))):
        return None
    if is_gpu:
        part, watts = "GPU", int(row["num_gpus"]) * power.full_watts
        formula = f"at most GPUs x full power x time, with {power.full_watts:g} W for {power.device}"
    else:
        part, idle, num_threads = "vCPUs", power.idle_watts or 0.0, float(row["num_threads"])
        busy: float = num_threads if pd.isna(row["cpu_own_cores"]) else min(float(row["cpu_own_cores"]), num_threads)
        watts = num_threads * idle + busy * (power.full_watts - idle)
        formula = (
            "(vCPUs x idle power + busy vCPUs x (full power - idle power)) x time, with "
            f"{idle:g} and {power.full_watts:g} W per vCPU"
        )
    return Energy(
        joules_per_1000_samples=seconds.scale(watts),
        covers=(part,),
        is_estimate=True,
        method=f"{part}, estimated: {formula} ({power.source}, {power.date})",
    )


WORK_COLUMNS = ("model", "phase", "input_size", "num_classes", "precision", "data_dir")
"""What has to be equal in the cells among which one may choose. Batch, framework and mode may differ."""
REPEAT_COLUMNS = (
    *("run_id", "cell_id", "environment_id"),
    *("machine", "is_first_stage", "gpu_energy_source", GPU_ENERGY, CPU_ENERGY),
)
"""What is read of results: a row of all columns is expensive to make."""

MAX_NAMED = 3
"""How many places a message names at most."""


@dataclass(frozen=True, kw_only=True)
class CostQuestion:
    """What is asked of measured cells and a price table."""

    job: Job | None = None
    max_step_seconds: float | None = None
    """Only cells count whose step takes no longer, at the upper end of its interval."""
    deadline_seconds: float | None = None
    """Of the job, as is the budget."""
    budget: float | None = None
    """In the currency of the table."""
    purchases: tuple[Purchase, ...] = ("on-demand",)
    cloud: str | None = None
    region: str | None = None
    machines: Mapping[Device, str] = field(default_factory=dict)
    """Machine types that stand for the device of the cells, whatever they were measured on."""
    counts_whole_machines: bool = False


def evaluate_costs(
    collections: Sequence[Collection], table: PriceTable, question: CostQuestion, *, summary: pd.DataFrame | None = None
) -> CostDocument:
    """Return what the cells of `collections` with a sound repeat cost.

    `summary`: the rows of `summarize_cells` with the labels of `add_labels`, where the caller has them already.
    """
    if summary is None:
        frames = [add_labels(summarize_cells(collection)) for collection in collections]
        summary = pd.concat(frames, ignore_index=True)
    counted = (one.results.loc[judge_counting(one.results) != NO, list(REPEAT_COLUMNS)] for one in collections)
    repeats = group_rows((row for frame in counted for row in list_rows(frame)), REPEAT_COLUMNS[:3])
    # These have no price of their own; a lone client of MPS has the whole device.
    is_shared = (summary["tenants"] > 1) | (summary["sharing"] == "mig")
    rows = summary[(summary["num_sound"] > 0) & ~is_shared]
    cells = tuple(
        _price_cell(row, repeats[row["run_id"], row["cell_id"], row["environment_id"]], work, table, question)
        for row, work in zip(list_rows(rows), _name_works(rows), strict=True)
    )
    if question.job and cells and not any(cell.seconds_of_job for cell in cells):
        raise UserError(
            f"--dataset {question.job.data_set}: a data set has samples, and all cells of these runs are of language "
            "models, which are priced by a million tokens; leave it out"
        )
    limit, currency = question.max_step_seconds, table.currency
    # A prompt takes a step of its own, whatever its tokens take to come out.
    kept = tuple(cell for cell in cells if limit is None or cell.tokens == "in" or cell.step_seconds.meets(limit))
    bounds: list[tuple[Rule, float | None, Iterable[CellCost]]] = [
        ("step-time", limit, (cell for cell in cells if cell.tokens != "in")),
        ("step-time", limit and inf, (cell for cell in cells if cell.tokens == "in")),
        ("deadline", question.deadline_seconds, (cell for cell in kept if cell.seconds_of_job)),
        ("budget", question.budget, (cell for cell in kept if cell.seconds_of_job)),
    ]
    choices = [
        choose(*group, rule, bound, currency)
        for rule, bound, own in bounds
        if bound is not None
        for group in _group_works(own)
    ]
    answers = [answer_cpu_or_gpu(*group, currency) for group in _group_works(kept)]
    return CostDocument(
        run_ids=tuple(collection.run.run_id for collection in collections),
        prices=table.title,
        currency=currency,
        job=question.job,
        assumptions=(*_list_assumptions(question, cells, kept, int(is_shared.sum())),),
        cells=kept,
        choices=tuple(choices),
        cpu_answers=tuple(answer for answer in answers if answer is not None),
    )


def _group_works(cells: Iterable[CellCost]) -> list[tuple[str, list[CellCost]]]:
    by_work = attrgetter("work")
    return [(work, list(group)) for work, group in groupby(sorted(cells, key=by_work), key=by_work)]


def _name_works(rows: pd.DataFrame) -> list[str]:
    """Return what each row computes, with classes and data where cells differ in them."""
    names = [
        f"{name}, {precision}"
        for name, precision in zip(label_panels(rows[["model", "phase", "input_size"]]), rows["precision"], strict=True)
    ]
    if len(rows[[*WORK_COLUMNS]].drop_duplicates()) == len(set(names)):
        return names
    classes = rows["num_classes"].map("{} classes".format, na_action="ignore").fillna("no classes")
    data = rows["data_dir"].fillna("synthetic data")
    return [", ".join(parts) for parts in zip(names, classes, data, strict=True)]


def _price_cell(row: Row, repeats: Sequence[Row], work: str, table: PriceTable, question: CostQuestion) -> CellCost:
    step, tokens = make_figure(read_estimate(row)), count_tokens(row)
    seconds = step.scale(THOUSAND / row["batch_size"])
    thousands = THOUSAND / tokens if tokens else None  # of samples that make a million tokens
    energy = find_energy(row, repeats, table, seconds)
    if energy is not None and thousands is not None:
        joules = energy.joules_per_1000_samples.scale(thousands)
        energy = energy.model_copy(update={"joules_per_million_tokens": joules})
    num_gpus = int(row["num_gpus"]) if row["device"] == "gpu" else 0
    hardware = name_hardware(row) or f"unknown {row['device'].upper()}"
    job = None if question.job is None or tokens else question.job.num_samples * question.job.epochs / THOUSAND
    rows = _find_offers(row, table, question)
    wanted = [
        found
        for found in rows
        if found.purchase in question.purchases
        and question.cloud in (None, found.cloud)
        and question.region in (None, found.region)
    ]
    offers = []
    for found in wanted:
        price = found.compute_hourly_price(num_gpus, is_whole=question.counts_whole_machines)
        cost, carbon, co2 = seconds.scale(price / HOUR.size), table.find_carbon(found.cloud, found.region), None
        if energy is not None and carbon is not None and carbon.grams_per_kwh > 0:
            grams = (carbon.pue or 1.0) * carbon.grams_per_kwh / KILOWATT_HOUR.size
            co2 = energy.joules_per_1000_samples.scale(grams)
        offers.append(
            OfferCost(
                row=found,
                price_per_hour=price,
                cost_per_1000_samples=cost,
                cost_of_job=None if job is None else cost.scale(job),
                co2_grams_per_1000_samples=co2,
                co2_grams_of_job=None if job is None or co2 is None else co2.scale(job),
                cost_per_million_tokens=None if thousands is None else cost.scale(thousands),
                co2_grams_per_million_tokens=None if thousands is None or co2 is None else co2.scale(thousands),
            )
        )
    return CellCost(
        run_id=row["run_id"],
        cell_id=row["cell_id"],
        label=row["label"],
        work=work,
        device=row["device"],
        hardware=hardware,
        num_gpus=num_gpus,
        num_threads=None if pd.isna(row["num_threads"]) else int(row["num_threads"]),
        step_seconds=step,
        tokens=("in" if row["phase"] == "prefill" else "out") if tokens else None,
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
    is_gpu, machine, num_gpus = row["device"] == "gpu", question.machines.get(row["device"]), int(row["num_gpus"])
    if machine is not None:
        found = find_machine_offers(table, machine)
        return [one for one in found if not is_gpu or one.gpus_per_machine >= num_gpus]
    if is_gpu:
        return find_gpu_offers(table, name_hardware(row), num_gpus=num_gpus)
    known = find_machine_offers(table, row["instance_types"])  # none for a missing type
    return [one for one in known if one.gpu is None] or find_cpu_offers(table, name_hardware(row))


def _explain_missing(row: Row, hardware: str, unwanted: Sequence[PriceRow]) -> str:
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


def _list_assumptions(
    question: CostQuestion, all_cells: Sequence[CellCost], cells: Sequence[CellCost], num_shared: int
) -> Iterator[str]:
    if all_cells and (limit := question.max_step_seconds) is not None:
        unknown = sum(cell.tokens != "in" and cell.step_seconds.meets(limit) is None for cell in all_cells)
        prompts = "; prompts (prefill) are not held to it" if any(cell.tokens == "in" for cell in cells) else ""
        once = f"; of {unknown} it is not known, as one repeat gives no interval" if unknown else ""
        yield (
            f"{len(cells)} of {count_things(len(all_cells), 'cell')} count, those whose steps take at most "
            f"{1e3 * limit:g} ms at the upper end of their 95 % interval{once}{prompts}."
        )
    number = sum(cell.tokens is not None for cell in cells)
    if number and question.job:
        yield (
            f"The job is without {count_things(number, 'cell')} of language models: a data set has samples, and tokens "
            "are priced by the million."
        )
    yield (
        "A sample costs the time of its step: start, data, warm-up, idle nodes, disks, traffic and control planes are "
        "not in it."
    )
    if any(0 < cell.num_gpus < offer.row.gpus_per_machine for cell in cells for offer in cell.offers):
        yield (
            "Machines with more GPUs than a cell uses count whole."
            if question.counts_whole_machines
            else "Of a machine with more GPUs than a cell uses, the GPUs' share counts; alone on it you pay for all of "
            "it (--whole-machines)."
        )
    devices = {cell.device for cell in cells}
    for device, machine in question.machines.items():
        if device in devices:
            yield f"{device.upper()} cells count as if {machine} were as fast as what they were measured on."
    threads = {
        (cell.num_threads, offer.row.vcpus, offer.row.machine)
        for cell in cells
        for offer in cell.offers[:1]
        if cell.device == "cpu" and cell.num_threads not in (None, offer.row.vcpus)
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
    if num_shared:
        have = "has no price of its own" if num_shared == 1 else "have no price of their own"
        yield f"{count_things(num_shared, 'cell')} with several tenants, or on a slice of a GPU, {have}: left out."
