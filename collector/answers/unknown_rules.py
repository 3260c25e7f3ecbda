"""What is missing in a run: repeats, cells, intervals, devices, and prices."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import get_args

import pandas as pd

from bench.registry import MODELS
from bench.schema import Precision
from collector.analysis import Analysis
from collector.answers.anchors import name_anchor
from collector.answers.answer import Said
from collector.answers.measured import find_short_names
from collector.answers.planning_rules import PLANNED_ANCHOR
from collector.comparisons import FP32
from collector.costs.document import CostDocument
from collector.costs.texts import list_unpriced_lines
from collector.facts import count_things, count_values, join_words, list_some, state_resumption
from collector.labels import DEVICE_NAMES, FRAMEWORK_NAMES, PHASE_NAMES
from collector.results.intervals import MODERATED_WARNING
from collector.results.summary import FOR_LACK, NO, YES, list_invalid
from collector.tables.invalid import INVALID_CAPTION
from collector.tables.skipped import SKIPPED_CAPTION
from collector.units import format_significant

MAX_WORKS = 6
"""Works that a sentence names."""
MAX_REASONS = 3
"""Reasons that a sentence names, the most frequent first."""


def find_no_result(analysis: Analysis) -> list[Said]:
    """Return how many planned repeats did not end ok, and how they ended."""
    results = analysis.collection.results
    bad = results.loc[results["status"] != "ok", ["status", "cell_id"]]
    if bad.empty:
        return []
    cells = int((analysis.summary["num_ok"] == 0).sum())
    none = f" {count_things(cells, 'cell')} {'has' if cells == 1 else 'have'} no figure at all." if cells else ""
    which = _name_cells(analysis, bad["cell_id"].unique().tolist())
    ended = f"{len(bad):,} of {len(results):,} planned repeats did not end ok: {_count(bad['status'])}"
    text = f"{ended}{which}.{none}"
    return [Said(text=" ".join(filter(None, [text, state_resumption(analysis.collection)])), anchor="not-known")]


def _name_cells(analysis: Analysis, cell_ids: Sequence[str]) -> str:
    """Return ` (resnet18 train, GPU; conv6 infer, GPU)`; empty where a sentence cannot name them all."""
    if len(cell_ids) > MAX_REASONS:
        return ""
    labels = analysis.summary.drop_duplicates("cell_id").set_index("cell_id")["label"]
    names = find_short_names(analysis)
    return f" ({'; '.join(names.shorten(str(labels[one])) for one in cell_ids)})"


def find_not_valid(analysis: Analysis) -> list[Said]:
    """Return how many repeats that ended ok do not count, or do although uneven, and how many cells have none sound."""
    invalid = list_invalid(analysis.collection)
    if invalid.empty:
        return []
    measured = analysis.measured
    unsound = int((measured["num_sound"] == 0).sum())
    num_ok = int((analysis.collection.results["status"] == "ok").sum())
    cells = (
        f" {unsound} of {count_things(len(measured), 'row')} of step times have no repeat under sound conditions: no "
        "sentence here rests on them."
    )
    ways = {NO: "left out", YES: "uneven in their steps, and counted", FOR_LACK: f"used {FOR_LACK}"}
    parts = [
        f"{int(chosen.sum()):,} {words} ({count_values(invalid.loc[chosen, 'verdict'])})"
        for value, words in ways.items()
        if (chosen := invalid["counts"] == value).any()
    ]
    text = f"Of {count_things(num_ok, 'repeat')} that ended ok: {'; '.join(parts)}."
    return [Said(text=text + (cells if unsound else ""), anchor=name_anchor(INVALID_CAPTION))]


def find_one_repeat(analysis: Analysis) -> list[Said]:
    """Return how many step times have no interval because one repeat counts."""
    measured = analysis.measured
    single = int((measured["num_counted"] == 1).sum())
    if not single:
        return []
    text = (
        f"{single:,} of {count_things(len(measured), 'step time')} without an interval, as one repeat counts: nothing "
        "is known of the spread between repeats, and no sentence here rests on them."
    )
    return [Said(text=text, anchor="step-times")]


def find_one_machine(analysis: Analysis) -> list[Said]:
    """Return which devices were measured on one card or host only."""
    parts = [f"one {noun} ({kind})" for noun, kind in list_lone_machines(analysis)]
    if not parts:
        return []
    text = f"Measured on {_join(parts)}: by how much others of the kind differ is not known."
    return [Said(text=text, anchor="environments")]


def list_lone_machines(analysis: Analysis) -> list[tuple[str, str]]:
    """Return what was measured once (`card`, `host`) and its kind, of each kind of device with one of it."""
    measured = analysis.measured[analysis.measured["num_sound"] > 0]
    found = []
    for device, name in (("gpu", "gpu_name"), ("cpu", "cpu_model")):
        rows = measured[measured["device"] == device]
        found += [
            (_name_machine(device, num_gpus), str(kind))
            for num_gpus in sorted(int(number) for number in rows["num_gpus"].unique())
            for kind, machines in rows[rows["num_gpus"] == num_gpus].groupby(name)["machines"]
            if len({one for names in machines for one in names.split("; ")}) == 1
        ]
    return found


def _name_machine(device: str, num_gpus: int) -> str:
    """Return what is counted as a machine of cells on so many GPUs: each number of GPUs of one host has its own."""
    if device == "cpu":
        return "host"
    return "card" if num_gpus == 1 else f"set of {num_gpus} cards"


def find_one_kind(analysis: Analysis) -> list[Said]:
    """Return of which axis only one value was measured, with the others that there are, of which nothing is said."""
    measured = analysis.measured
    phases = {phase for model in measured["model"].unique() if model in MODELS for phase in MODELS[model].phases}
    axes: Sequence[tuple[str, str, Mapping[str, str]]] = (
        ("phase", "phase", {name: text for name, text in PHASE_NAMES.items() if name in phases}),
        ("framework", "framework", FRAMEWORK_NAMES),
        ("device", "kind of device", DEVICE_NAMES),
        ("precision", "precision", {name: name for name in get_args(Precision)}),
    )
    parts = []
    for column, noun, names in axes:
        values = measured[column].unique()
        if len(values) == 1 and len(names) > 1:
            others = [text for name, text in names.items() if name != values[0]]
            missing = " or ".join([*filter(None, [", ".join(others[:-1])]), others[-1]])
            parts.append(f"one {noun} ({names.get(values[0], values[0])}, not {missing})")
    if (measured["device"] == "gpu").any() and (measured["num_gpus"] == 1).all():
        parts.append("one GPU at a time")
    precisions = set(measured.loc[measured["device"] == "gpu", "precision"])
    if FP32 in precisions and "tf32" not in precisions and len(precisions) > 1:  # of one, the sentence has named TF32
        parts.append("TF32 off")
    if len(measured) and measured["data_dir"].isna().all():
        parts.append("synthetic data")
    parts += _list_one_batch(measured)
    if not parts:
        return []
    text = f"Measured with {_join(parts, most=len(parts))}: how others compare is not known. Accuracy was not measured."
    return [Said(text=text, anchor=PLANNED_ANCHOR)]


def _list_one_batch(measured: pd.DataFrame) -> list[str]:
    """Return of which works (a model in a phase) one batch was measured; none where each has several."""
    counts = measured.groupby(["model", "phase"], sort=False)["batch_size"].nunique()
    works = [f"{model} {phase}" for model, phase in counts.index[counts == 1]]
    if not works:
        return []
    if len(works) > MAX_WORKS:
        return [f"one batch of {len(works):,} of {len(counts):,} models and phases"]
    return [f"one batch of {join_words(works)}"]


def find_no_price(analysis: Analysis) -> list[Said]:
    """Return why cells have no price, and below which price a CPU without one would be the cheaper answer."""
    if analysis.costs is None:
        return []
    lines = list(list_unpriced_lines(analysis.costs))
    if not lines:
        return []
    shown = "; ".join(lines[:MAX_REASONS])
    more = f"; {len(lines) - MAX_REASONS} more reasons" if len(lines) > MAX_REASONS else ""
    text = f"What cells cost is not known of {shown}{more}."
    return [Said(text=" ".join(filter(None, [text, _say_break_even(analysis.costs)])), anchor="costs")]


def _say_break_even(costs: CostDocument) -> str:
    """Return what a CPU without a price may cost an hour to be the cheaper answer; empty where a GPU has none."""
    prices = [
        f"{format_significant(answer.break_even_price_per_hour.value)} {costs.currency} an hour ({answer.work})"
        for answer in costs.cpu_answers
        if answer.verdict == "not priced" and answer.break_even_price_per_hour is not None
    ]
    if not prices:
        return ""
    named = join_words(list_some(prices, MAX_REASONS))
    return f"The CPU is the cheaper answer where a node of it costs less than {named}."


def find_left_out(analysis: Analysis) -> list[Said]:
    """Return how many cells of the matrix were not planned, and why."""
    left_out = analysis.collection.run.left_out
    if not left_out:
        return []
    reasons = _count(one.reason for one in left_out)
    text = f"{count_things(len(left_out), 'cell')} of the matrix could not run here: {reasons}."
    return [Said(text=text, anchor=name_anchor("Cells that cannot run here"))]


def find_moderation(analysis: Analysis) -> list[Said]:
    """Return what moderated intervals promise less than plain ones."""
    return [Said(text=MODERATED_WARNING, anchor="method")] if analysis.moderated else []


def find_skipped(analysis: Analysis) -> list[Said]:
    """Return how many documents in the store did not count."""
    num_skipped = len(analysis.collection.skipped)
    if not num_skipped:
        return []
    text = f"{count_things(num_skipped, 'document')} in the store did not count; what they say is in no figure."
    return [Said(text=text, anchor=name_anchor(SKIPPED_CAPTION))]


def find_unchecked(analysis: Analysis) -> list[Said]:
    """Return which conditions could not be checked where cells were measured."""
    unchecked = analysis.measured["unchecked"]
    texts = [text for row in unchecked if not pd.isna(row) and row for text in row.split("; ")]
    if not texts:
        return []
    rows = int(sum(bool(row) for row in unchecked if not pd.isna(row)))
    text = f"Conditions that could not be checked in {rows:,} of {len(unchecked):,} rows: {_count(texts)}."
    return [Said(text=text, anchor="step-times")]


def _count(texts: Iterable[str]) -> str:
    """Return the MAX_REASONS most frequent texts, each after its number, and how many others there are."""
    counts = Counter(texts).most_common()
    others = sum(number for _, number in counts[MAX_REASONS:])
    named = [f"{number:,} {text}" for text, number in counts[:MAX_REASONS]]
    return ", ".join([*named, *([f"{others:,} others"] if others else [])])


def _join(parts: list[str], *, most: int = MAX_REASONS) -> str:
    return join_words(list_some(parts, most))
