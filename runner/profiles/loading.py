"""Find and load profiles: small YAML files that can extend each other.

One that `extends` another replaces single keys of it; lists are replaced whole, and null removes what the other says.
`gpu: T4` stands for an entry of `gpu_kinds` in the cloud's profile. An entry has two parts: `gpu`, what the GPU is, and
`pool`, which nodes have it and what a cell takes of such a node. Where a profile has a key of its own, that one holds.
"""

import os
from dataclasses import replace
from pathlib import Path

from pydantic import TypeAdapter

from bench.errors import UserError
from runner.profiles import BUILTIN_PROFILES, PROFILE_FOLDER
from runner.profiles.model import Profile
from runner.yaml_input import Node, quote, read_yaml, suggest_near_word, suggest_word, validate

# How the tools of each cloud name the contexts that they write: gcloud, aws, eksctl, k3d and kind.
_CONTEXT_PREFIXES = {"gke_": "gke", "arn:aws:eks:": "eks", "arn:aws-": "eks", "k3d-": "k3s", "kind-": "kind"}
_CONTEXT_SUFFIXES = {".eksctl.io": "eks"}

_EXPECTED = "a profile; write `extends: gke`, for example, and what differs"
_ADAPTER = TypeAdapter(Profile)


def find_profile(name: str | None, context: str) -> Profile:
    """Return the profile of this name or path, or for None that of the context's name. UserError if there is none."""
    if name is None:
        by_prefix = (known for prefix, known in _CONTEXT_PREFIXES.items() if context.startswith(prefix))
        by_suffix = (known for suffix, known in _CONTEXT_SUFFIXES.items() if context.endswith(suffix))
        name = next(by_prefix, None) or next(by_suffix, None)
    if name is None:
        known = ", ".join(BUILTIN_PROFILES)
        raise UserError(
            f"context {context}: its name does not show what cluster it is; add --profile {known} or the path of yours"
        )
    return load_profile(name)


def load_profile(name: str) -> Profile:
    """Return a built-in profile, or that of a YAML file. Raise UserError with file, line and key if it is wrong."""
    path = _find_file(name, Path())
    if path is None:
        raise UserError(
            f"--profile {name}: is none; {suggest_word(name, BUILTIN_PROFILES)}, or give the path of a .yaml file"
        )
    tree = _read_tree(path, path.name if name in BUILTIN_PROFILES else name, seen=())
    return validate(_choose_gpu(tree), _ADAPTER, "docs/profiles.md")


def _find_file(name: str, folder: Path) -> Path | None:
    """Return the file of a built-in profile, or a path from `folder`; None if the name is neither."""
    if name in BUILTIN_PROFILES:
        return PROFILE_FOLDER / f"{name}.yaml"
    return folder / name if name.endswith((".yaml", ".yml")) else None


def _read_tree(path: Path, file: str, seen: tuple[str, ...]) -> Node:
    """Return the content of a profile merged into that of the profiles that it extends."""
    tree = read_yaml(path, file, expected=_EXPECTED)
    entries = dict(tree.children)
    if "gpu_kinds" in entries and path.parent != PROFILE_FOLDER:
        message = "unknown key; write what GPUs of your own are in `gpu`, and where they are in `pools.gpu`"
        raise entries["gpu_kinds"].error(message)
    base = entries.pop("extends", None)
    entries.setdefault("name", replace(tree, value=path.stem, text=path.stem, key="name"))
    if (gpu := entries.get("gpu")) is not None and isinstance(gpu.value, str):  # `gpu: T4`
        entries["gpu"] = replace(gpu, value={"name": replace(gpu, key="gpu.name")})
    own = replace(tree, value=entries)
    if base is None or base.value is None:
        return own
    found = _find_base(base, path.parent)
    seen = (*seen, os.path.realpath(path))
    if os.path.realpath(found) in seen:
        message = f"found {quote(base.text)}, which extends this file in turn; remove one of the two"
        raise base.error(message)
    return merge(_read_tree(found, found.name if found.parent == PROFILE_FOLDER else str(found), seen), own)


def _find_base(base: Node, folder: Path) -> Path:
    found = _find_file(base.value, folder) if isinstance(base.value, str) else None
    if found is None or not os.path.isfile(found):
        shown = quote(base.text) if isinstance(base.value, str) else "no name"
        advice = f"{', '.join(BUILTIN_PROFILES)} or the path of a .yaml file, seen from the folder of this one"
        near = suggest_near_word(base.text, BUILTIN_PROFILES)
        raise base.error(f"found {shown}, expected a profile: {advice}" + (f"; {near}" if near else ""))
    return found


def _choose_gpu(tree: Node) -> Node:
    """Return a profile's whole content with the GPU that it names."""
    entries = dict(tree.children)
    kinds = entries.pop("gpu_kinds").children if "gpu_kinds" in entries else {}
    own, tree = entries.get("gpu"), replace(tree, value=entries)
    if own is None or "name" not in own.children or not isinstance((name := own.children["name"]).value, str):
        return tree
    for word, kind in kinds.items():
        gpu, pool = kind.children["gpu"], kind.children["pool"]
        if name.value in (word, gpu.children["name"].value):
            entries["gpu"] = replace(own, value={**own.children, "name": gpu.children["name"]})
            return merge(replace(tree, value={"gpu": gpu, "pools": replace(tree, value={"gpu": pool})}), tree)
    if "compute_capability" in own.children:
        return tree
    advice = "for another GPU, write its compute_capability and max_per_node, and all of pools.gpu"
    if not kinds:
        raise name.error(f"found {quote(name.text)}, but this profile knows no GPU by a word; {advice}")
    near = suggest_near_word(name.text, list(kinds))
    advice = f"{near} Or, {advice}" if near else advice
    raise name.error(f"found {quote(name.text)}, expected {', '.join(kinds)}; {advice}")


def merge(base: Node, own: Node) -> Node:
    """Return `own` with what only `base` has; mappings are merged key by key."""
    if not (isinstance(base.value, dict) and isinstance(own.value, dict)):
        return own
    merged = base.value | {
        key: merge(base.value[key], value) if key in base.value else value for key, value in own.value.items()
    }
    return replace(own, value=merged)
