"""Say in which libraries and settings two frameworks differ that are compared, besides being two frameworks."""

from collections.abc import Callable, Mapping
from itertools import combinations, product

import pandas as pd

from bench.registry import MODELS
from bench.schema import Environment
from collector.labels import FRAMEWORK_NAMES
from collector.results.collection import Collection
from collector.results.hosts import describe_unequal_products

NOT_RECORDED = "not recorded"
NOT_USED = ""
BUILT_FOR = ("tensorflow",)
"""Frameworks that name the CUDA and cuDNN which they were built for (tf.sysconfig.get_build_info), not those loaded."""
CUDNN_9 = 90_000
"""From cuDNN 9 on, cudnn_version.h has major * 10,000 + minor * 100 + patch as its number; before, major * 1,000."""
BATCH_NORM = "Keras ({names}) computes the batch norms of {models} from several operations, PyTorch in one"
FUSED_NORM = "the mode fused-norm of TensorFlow measures what that costs"


def shorten_cudnn(version: str) -> str:
    """Return a version of cuDNN as `9.19.0`, be it recorded as 91900, 9.19.0.56 or 9.19.0; a major one as it is."""
    if version.isdecimal() and int(version) >= 1000:
        number = int(version)
        major, rest = divmod(number, 10_000 if number >= CUDNN_9 else 1000)
        return f"{major}.{rest // 100}.{rest % 100}"
    return ".".join(version.split(".")[:3])


def _read_cuda(environment: Environment) -> str | None:
    return environment.gpu.cuda_version if environment.gpu else None


def _read_cudnn(environment: Environment) -> str | None:
    version = environment.gpu.cudnn_version if environment.gpu else None
    return shorten_cudnn(version) if version else None


def _read_setting(name: str) -> Callable[[Environment], str | None]:
    words: Mapping[object, str] = {True: "yes", False: "no"}

    def read(environment: Environment) -> str | None:
        value = environment.settings.get(name)
        return None if value is None else words[value] if isinstance(value, bool) else str(value)

    return read


def _read_optimizer(environment: Environment) -> str | None:
    """Return the optimizer; NOT_USED of an environment that ran inference."""
    name = _read_setting("optimizer")(environment)
    return NOT_USED if name == "none" else name


SEARCH = "cuDNN tries its algorithms first (cudnn_benchmark):"
FACTS: Mapping[str, Callable[[Environment], str | None]] = {
    "CUDA": _read_cuda,
    "cuDNN": _read_cudnn,
    "layout of images": _read_setting("memory_format"),
    SEARCH: _read_setting("cudnn_benchmark"),
    "optimizer": _read_optimizer,
}
"""How each fact is read of an environment: None where it is not recorded, NOT_USED where there is nothing to record."""
GPU_FACTS = ("CUDA", "cuDNN", SEARCH)
"""Facts that say nothing of what a CPU computed, though environments record them there too."""


def describe_libraries(pairs: pd.DataFrame, collection: Collection) -> str:
    """Return in which libraries and settings the frameworks of the pairs differ; empty where in none that is recorded.

    `pairs`: rows of `compare_cells`; other comparisons than those of frameworks have nothing to say.
    """
    if "framework_subject" not in pairs:
        return ""
    compared = pairs[pairs["ratio"].notna()]
    environments = _list_environments(compared, collection)
    is_on_gpu = bool((compared["device"] == "gpu").any())
    names = [name for name in FACTS if is_on_gpu or name not in GPU_FACTS]
    values = {name: owners for name in names if len(owners := _find_owners(name, environments)) > 1}
    texts = _describe_facts(values, environments)
    is_on_cpu = bool((compared["device"] == "cpu").any())
    rates = describe_unequal_products(collection.host_products) if is_on_cpu else ""
    return " ".join(filter(None, [*texts, *_describe_batch_norms(compared), rates]))


def _is_shown_different(fact: str, environments: Mapping[str, list[Environment]]) -> bool:
    """Return whether two frameworks have different values; version 9 may be 9.19, and what is not recorded any."""
    known = [{FACTS[fact](one) for one in own} - {None, NOT_USED} for own in environments.values()]
    pairs = (sorted((f"{one}.", f"{other}.")) for sides in combinations(known, 2) for one, other in product(*sides))
    return any(not longer.startswith(shorter) for shorter, longer in pairs)


def _list_environments(pairs: pd.DataFrame, collection: Collection) -> dict[str, list[Environment]]:
    """Return the environments that each framework of the pairs ran in, frameworks in the order of the registry."""
    found: dict[str, dict[str, Environment]] = {}
    for side in ("subject", "reference"):
        for framework, name in zip(pairs[f"framework_{side}"], pairs[f"environment_id_{side}"], strict=True):
            if name in collection.environments:
                found.setdefault(framework, {})[name] = collection.environments[name]
    return {name: list(found[name].values()) for name in FRAMEWORK_NAMES if name in found}


def _describe_facts(
    values: Mapping[str, Mapping[str, list[str]]], environments: Mapping[str, list[Environment]]
) -> list[str]:
    """Return a sentence on the facts that differ and one on those that may, with who has which value.

    As `CUDA 13.0 (PyTorch, JAX), 12.5.1 (TensorFlow, of its build)`. `values`: by fact, what `_find_owners` returns.
    """
    shown: list[str] = []
    others: list[str] = []
    for fact, owners in values.items():
        named = (f"{value} ({', '.join(names)})" for value, names in owners.items())
        listed = shown if _is_shown_different(fact, environments) else others
        listed.append(f"{fact} {', '.join(named)}")
    openings = (("The frameworks differ in", shown), ("Whether they differ is not recorded of", others))
    return [f"{opening}: {'; '.join(listed)}." for opening, listed in openings if listed]


def _find_owners(fact: str, environments: Mapping[str, list[Environment]]) -> dict[str, list[str]]:
    owners: dict[str, list[str]] = {}
    for framework, own in environments.items():
        read = {FACTS[fact](environment) for environment in own} - {NOT_USED}
        values = sorted(NOT_RECORDED if value is None else value for value in read)
        is_built_for = framework in BUILT_FOR and fact in ("CUDA", "cuDNN") and values != [NOT_RECORDED]
        name = FRAMEWORK_NAMES[framework] + (", of its build" if is_built_for else "")
        if values:
            owners.setdefault(" or ".join(values), []).append(name)
    return owners


def _describe_batch_norms(pairs: pd.DataFrame) -> list[str]:
    """Return a sentence on the models of the pairs with batch norms, one side being Keras (docs/measurement.md)."""
    has_norms = pairs["model"].map(lambda name: name in MODELS and MODELS[name].has_batch_norm).astype(bool)
    rows = pairs[has_norms & (pairs["mode_subject"] != "fused-norm") & (pairs["framework_reference"] == "pytorch")]
    if rows.empty:
        return []
    names = [FRAMEWORK_NAMES[name] for name in dict.fromkeys(rows["framework_subject"])]
    models = " and ".join(dict.fromkeys(rows["model"]))
    text = BATCH_NORM.format(names=", ".join(names), models=models)
    is_measured = bool((pairs["mode_subject"] == "fused-norm").any())
    return [f"{text}; {FUSED_NORM}." if is_measured else f"{text}."]
