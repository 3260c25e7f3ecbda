"""Find and load profiles.

A profile is a small YAML file. One that `extends` another replaces single keys of it; lists are replaced whole, and
null removes what the other says.
"""

import os
from dataclasses import replace
from pathlib import Path

from pydantic import TypeAdapter

from bench.errors import UserError
from runner.profiles.builtin import BUILTIN_PROFILES, PROFILE_FOLDER
from runner.profiles.gpu_words import GPU_KINDS, choose_gpu, expand_word, merge
from runner.profiles.model import Profile
from runner.yaml_input import Node, NodeValidator, quote, read_yaml, suggest_near_word, suggest_word

# How the tools of each cloud name the contexts that they write: gcloud, aws, eksctl, k3d and kind.
_CONTEXT_PREFIXES = {"gke_": "gke", "arn:aws:eks:": "eks", "arn:aws-": "eks", "k3d-": "k3s", "kind-": "kind"}
_CONTEXT_SUFFIXES = {".eksctl.io": "eks"}

MAX_EXTENDED = 20
"""Files of which each extends the next. Nobody follows so many; a thousand are more than Python nests calls."""
_EXPECTED = "a profile; write `extends: gke`, for example, and what differs"
_VALIDATOR = NodeValidator(TypeAdapter(Profile), is_null_absent=True, documentation="docs/profiles.md")


def find_profile(name: str | None, context: str) -> Profile:
    """Return the profile of this name or path, or for None the one that the context's name indicates.

    UserError if there is none.
    """
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
    """Return a built-in profile or the one in a YAML file; UserError with file, line and key if it is wrong."""
    path = _find_file(name, Path())
    if path is None:
        raise UserError(
            f"--profile {name}: is none; {suggest_word(name, BUILTIN_PROFILES)}, or give the path of a .yaml file"
        )
    tree = _read_tree(path, path.name if name in BUILTIN_PROFILES else name, seen=())
    return _VALIDATOR.validate(choose_gpu(tree))


def _find_file(name: str, folder: Path) -> Path | None:
    """Return the file of a built-in profile, or a path from `folder`; None if the name is neither."""
    if name in BUILTIN_PROFILES:
        return PROFILE_FOLDER / f"{name}.yaml"
    return folder / name if name.endswith((".yaml", ".yml")) else None


def _read_tree(path: Path, file: str, seen: tuple[str, ...]) -> Node:
    """Return the content of a profile merged into that of the profiles that it extends."""
    tree = read_yaml(path, file, expected=_EXPECTED)
    if not isinstance(tree.value, dict):
        raise tree.error(f"found no keys, expected {_EXPECTED}")
    entries = dict(tree.value)
    if GPU_KINDS in entries and path.parent != PROFILE_FOLDER:
        message = "unknown key; write what GPUs of your own are in `gpu`, and where they are in `pools.gpu`"
        raise entries[GPU_KINDS].error(message)
    base = entries.pop("extends", None)
    entries.setdefault("name", _make_name(tree, path.stem))
    own = expand_word(replace(tree, value=entries))
    if base is None or base.value is None:
        return own
    found = _find_base(base, path.parent)
    seen = (*seen, os.path.realpath(path))
    if os.path.realpath(found) in seen:
        message = f"found {quote(base.text)}, which extends this file in turn; remove one of the two"
        raise base.error(message)
    if len(seen) >= MAX_EXTENDED:
        message = f"found the {MAX_EXTENDED}th file that extends another, expected fewer; merge some of them"
        raise base.error(message)
    return merge(_read_tree(found, found.name if found.parent == PROFILE_FOLDER else str(found), seen), own)


def _find_base(base: Node, folder: Path) -> Path:
    """Return the file that `extends` names."""
    found = _find_file(base.value, folder) if isinstance(base.value, str) else None
    advice = f"{', '.join(BUILTIN_PROFILES)} or the path of a .yaml file"
    if found is None:
        shown = quote(base.text) if isinstance(base.value, str) else "no name"
        near = suggest_near_word(base.text, BUILTIN_PROFILES)
        raise base.error(f"found {shown}, expected a profile: {advice}" + (f"; {near}" if near else ""))
    if not os.path.isfile(found):
        message = f"there is no file {quote(base.text)}, seen from the folder of this one, expected a profile: {advice}"
        raise base.error(message)
    return found


def _make_name(tree: Node, name: str) -> Node:
    return Node(value=name, text=name, is_quoted=False, file=tree.file, line=tree.line, key="name")
