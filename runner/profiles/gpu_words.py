"""Look up GPUs by one word: `gpu: T4` in a profile stands for an entry of `gpu_kinds` in the cloud's profile.

An entry has two parts: `gpu`, what the GPU is, and `pool`, which nodes have it and what a cell takes of such a node.
Where a profile has a key of its own, that one holds.
"""

from collections.abc import Mapping
from dataclasses import replace

from runner.yaml_input import Node, YamlError, quote, suggest_near_word

GPU_KINDS = "gpu_kinds"
WORDS = ("T4", "L4", "A10G", "A100", "H100")
"""The words of the built-in profiles; not every cloud offers each."""


def expand_word(tree: Node) -> Node:
    """Return the content of a profile's file with `gpu: T4` written in full: `gpu: {name: T4}`."""
    entries = _read_entries(tree)
    gpu = entries.get("gpu")
    if gpu is None or not isinstance(gpu.value, str):
        return tree
    return replace(tree, value={**entries, "gpu": replace(gpu, value={"name": replace(gpu, key="gpu.name")})})


def choose_gpu(tree: Node) -> Node:
    """Return the whole content of a profile with the GPU that it names, and without `gpu_kinds`.

    YamlError if the name is a word that the profile does not offer.
    """
    entries = dict(_read_entries(tree))
    kinds = _read_entries(entries.pop(GPU_KINDS, None))
    name = _read_entries(entries.get("gpu")).get("name")
    if name is not None and isinstance(name.value, str):
        kind = _find_kind(kinds, name.value)
        if kind is not None:
            # An entry says NVML's name of its GPU, whichever of the two the profile says.
            own = _read_entries(entries["gpu"]) | {"name": _read_entries(kind["gpu"])["name"]}
            entries["gpu"] = merge(kind["gpu"], replace(entries["gpu"], value=own))
            entries["pools"] = _add_pool(tree, entries.get("pools"), kind["pool"])
        elif name.value in WORDS or "compute_capability" not in _read_entries(entries["gpu"]):
            raise _explain_unknown(name, kinds)
    return replace(tree, value=entries)


def merge(base: Node, own: Node) -> Node:
    """Return `own` with what only `base` has; mappings are merged key by key."""
    if not (isinstance(base.value, dict) and isinstance(own.value, dict)):
        return own
    merged = base.value | {
        key: merge(base.value[key], value) if key in base.value else value for key, value in own.value.items()
    }
    return replace(own, value=merged)


def _find_kind(kinds: Mapping[str, Node], name: str) -> Mapping[str, Node] | None:
    """Return the entry of this word, or of the GPU that NVML calls so."""
    for word, kind in kinds.items():
        parts = _read_entries(kind)
        if name in (word, _read_entries(parts.get("gpu"))["name"].value):
            return parts
    return None


def _add_pool(tree: Node, pools: Node | None, pool: Node) -> Node:
    if pools is not None and not isinstance(pools.value, dict):
        return pools  # the check of the whole says what is wrong with it
    found = _read_entries(pools)
    own = found.get("gpu")
    merged = pool if own is None else merge(pool, own)
    return replace(tree if pools is None else pools, value={**found, "gpu": merged})


def _explain_unknown(name: Node, kinds: Mapping[str, Node]) -> YamlError:
    words, shown = ", ".join(kinds), quote(name.text)
    own = "for another GPU, write its compute_capability and max_per_node, and all of pools.gpu"
    if not kinds:
        message = f"found {shown}, but this profile knows no GPU by a word; {own}"
    elif name.value in WORDS:
        message = f"found {shown}, which this cloud does not offer; it has {words}; {own}"
    else:
        near = suggest_near_word(name.text, list(kinds))
        message = f"found {shown}, expected {words}; " + (f"{near} Or, {own}" if near else own)
    return name.error(message)


def _read_entries(node: Node | None) -> dict[str, Node]:
    return node.value if node is not None and isinstance(node.value, dict) else {}
