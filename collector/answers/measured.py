"""Say once for all sentences of a run what was measured, and shorten the names of cells by what follows from it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pandas as pd

from bench.registry import FRAMEWORKS, MODELS
from collector.analysis import Analysis
from collector.facts import join_words, list_some
from collector.labels import DEVICE_NAMES, FRAMEWORK_NAMES, PHASE_NAMES, SHARING_NAMES, SIZE_UNITS
from collector.results.cells import find_shared

MAX_VALUES = 4
"""Batches or sizes that are named; of more, the smallest and the largest."""
MAX_NARROW = 3
"""Groups of models that are named with what only they ran with."""
MAX_FEW = 2
"""Programs of a precision that are named beside it."""
MAX_MODELS = 8
"""Models that are named of those that had the same batches and sizes."""


def describe_measured(analysis: Analysis) -> str:
    """Return the work, the programs, the precisions and the data that have figures; empty where nothing has.

    It is as long for 10,000 cells as for 20, but for the number of models.
    """
    rows = analysis.measured
    if rows.empty:
        return ""
    facts = [_list_texts(rows["precision"]), _describe_data(rows), *_describe_machines(rows), *_describe_tenants(rows)]
    works = "; ".join(_describe_phase(str(phase), own) for phase, own in rows.groupby("phase", sort=False))
    texts = [f"{works[:1].upper()}{works[1:]}; {', '.join(facts)}", _describe_programs(rows), *_list_narrow(rows)]
    return " ".join(f"{text}." for text in texts)


def _describe_phase(phase: str, rows: pd.DataFrame) -> str:
    """Return `training of conv6 and vgg16 (batch 64, 224 px, 10 classes)`: models of equal work share a bracket."""
    models: dict[str, list[str]] = {}
    for model, own in rows.groupby("model", sort=False):
        models.setdefault(_describe_work(str(model), own), []).append(str(model))
    named = [f"{join_words(list_some(names, MAX_MODELS))} ({work})" for work, names in models.items()]
    return f"{PHASE_NAMES[phase]} of {join_words(named)}"


def _describe_work(model: str, rows: pd.DataFrame) -> str:
    batches = rows["batch_size"]
    texts = [
        f"{'batch' if batches.nunique() == 1 else 'batches'} {_list_numbers(batches)}",
        f"{_list_numbers(rows['input_size'])} {SIZE_UNITS[MODELS[model].task]}",
    ]
    classes = rows["num_classes"].dropna()
    return ", ".join([*texts, *([f"{_list_numbers(classes)} classes"] if len(classes) else [])])


def _list_texts(values: pd.Series) -> str:
    return join_words(str(value) for value in dict.fromkeys(values.tolist()))


def _list_numbers(values: pd.Series) -> str:
    """Return each number once, in their order; of many the ends."""
    ordered = [str(value) for value in sorted({int(value) for value in values.tolist()})]
    if len(ordered) > MAX_VALUES:
        return f"{ordered[0]} to {ordered[-1]} ({len(ordered)} values)"
    return join_words(ordered)


def _describe_data(rows: pd.DataFrame) -> str:
    folders = [str(folder) for folder in dict.fromkeys(rows["data_dir"].dropna())]
    synthetic = ["synthetic data"] if rows["data_dir"].isna().any() else []
    return join_words([*synthetic, *(f"data of {folder}" for folder in list_some(folders, MAX_MODELS))])


def _describe_machines(rows: pd.DataFrame) -> list[str]:
    """Return on which kinds of device, and on how many GPUs, where that is not one GPU alone."""
    devices = [name for device, name in DEVICE_NAMES.items() if device in set(rows["device"])]
    numbers = rows.loc[rows["device"] == "gpu", "num_gpus"]
    several = [f"{_list_numbers(numbers)} GPUs a cell"] if (numbers > 1).any() else []
    return [f"on the {join_words(devices)}", *several]


def _describe_tenants(rows: pd.DataFrame) -> list[str]:
    shared = rows[find_shared(rows)]
    if shared.empty:
        return []
    ways = [SHARING_NAMES.get(str(way), str(way)) for way in dict.fromkeys(shared["sharing"])]
    number = _list_numbers(shared["tenants"])
    return [f"{number} tenant{'' if number == '1' else 's'} of a device ({join_words(ways)})"]


def _describe_programs(rows: pd.DataFrame) -> str:
    """Return the frameworks with their modes, those that run Keras's models last: `JAX compiled through Keras`."""
    used = set(rows["framework"])
    named = {
        name: f"{FRAMEWORK_NAMES[name]} {_list_texts(rows.loc[rows['framework'] == name, 'mode'])}"
        for name in FRAMEWORKS
        if name in used
    }
    own, keras = ([text for name, text in named.items() if is_keras(name) == wanted] for wanted in (False, True))
    return "; ".join([*own, *([f"{'through' if own else 'Through'} Keras: {'; '.join(keras)}"] if keras else [])])


def _list_narrow(rows: pd.DataFrame) -> list[str]:
    """Return which devices, precisions and programs only some of the models ran with, by these models.

    As `Of conv6 alone: CPU, bf16 (PyTorch compiled) and JAX compiled`: beside the lists of all, which read as if each
    were combined with each. More than MAX_NARROW such groups of models are not listed, but said to be there.
    """
    models = list(dict.fromkeys(rows["model"]))
    names = {"device": DEVICE_NAMES, "precision": {}, "variant": {}}
    found: dict[tuple[str, ...], list[str]] = {}
    for column, words in names.items():
        for value, own in rows.groupby(column, sort=False)["model"]:
            used = tuple(model for model in models if model in set(own))
            if len(used) < len(models):
                name = words.get(str(value), str(value))
                found.setdefault(used, []).append(f"{name}{_name_few_programs(column, value, rows)}")
    if len(found) > MAX_NARROW:
        return ["Not every program ran every model"]
    return [f"Of {join_words(list_some(used, MAX_MODELS))} alone: {join_words(own)}" for used, own in found.items()]


def _name_few_programs(column: str, value: object, rows: pd.DataFrame) -> str:
    """Return ` (PyTorch compiled)` of a precision that few of the programs ran in; empty of anything else."""
    programs = rows.loc[rows[column] == value, "variant"].unique()
    is_few = column == "precision" and len(programs) <= MAX_FEW and len(programs) < rows["variant"].nunique()
    return f" ({join_words(programs)})" if is_few else ""


def is_keras(framework: str) -> bool:
    """Return whether a framework runs the models as Keras defines them."""
    return FRAMEWORKS[framework].dialect == "keras"  # type: ignore[index]


@dataclass(frozen=True, kw_only=True)
class ShortNames:
    """The parts of cells' names that `describe_measured` says for all cells of their work."""

    by_work: Mapping[str, frozenset[str]]
    """Of each work, as `vgg16 infer`, the parts that all its cells share: device, batch, size."""

    def shorten(self, name: str, also: Iterable[str] = ()) -> str:
        """Return a name, as of `label_workloads`, without such parts; `also`: without these too.

        The whole name where nothing else would be left.
        """
        work, *parts = name.split(", ")
        left_out = {*self.by_work.get(work, frozenset()), *also}
        return ", ".join(part for part in (work, *parts) if part not in left_out) or name


FULL_NAMES = ShortNames(by_work={})
"""Shortens nothing."""


def find_short_names(analysis: Analysis) -> ShortNames:
    """Return which parts the names of cells of one work share, if the whole run has only one device.

    A batch or a size is left out where every cell of the model in its phase has it, also those without figures.
    """
    rows = analysis.summary
    devices = rows["device"].unique()
    device = {DEVICE_NAMES[str(devices[0])]} if len(devices) == 1 else set()
    found = {}
    for (model, phase), own in rows.groupby(["model", "phase"], sort=False):
        sizes, batches = own["input_size"].unique(), own["batch_size"].unique()
        size = {f"{sizes[0]} {SIZE_UNITS[MODELS[str(model)].task]}"} if len(sizes) == 1 else set()
        batch = {f"batch {batches[0]}"} if len(batches) == 1 else set()
        found[f"{model} {phase}"] = frozenset(device | size | batch)
    return ShortNames(by_work=found)
