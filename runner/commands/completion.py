"""Complete arguments and options in the shell, by names that are found without asking anybody."""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from runner.cluster_contexts import IN_CLUSTER
from runner.matrix.builtin import list_builtin_matrices
from runner.profiles.builtin import BUILTIN_PROFILES

MAX_RUN_IDS = 100
"""Shown at once; a shell asks whether to list more than about as many (`completion-query-items` of readline)."""
DEFAULT_FOLDER = "results"
RUN_ID = re.compile("[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
"""As `bench.store` takes it, which takes too long to import while somebody types."""


def complete_matrix(incomplete: str) -> list[str]:
    """Return the built-in matrices and the YAML files beside what was typed."""
    return [*list_builtin_matrices(), *_list_yaml_files(incomplete)]


def complete_profile(incomplete: str) -> list[str]:
    """Return the built-in profiles and the YAML files beside what was typed."""
    return [*BUILTIN_PROFILES, *_list_yaml_files(incomplete)]


def complete_run_id(ctx: Any, incomplete: str) -> list[str]:
    """Return the runs of the store that was typed, the newest first; none of a bucket, which would have to be asked."""
    scheme, separator, path = str(ctx.params.get("store") or f"file://{DEFAULT_FOLDER}").partition("://")
    if not separator or scheme != "file":
        return []
    try:
        found = [entry for entry in os.scandir(Path(path).expanduser() / "runs") if entry.name.startswith(incomplete)]
        found.sort(key=lambda entry: entry.stat().st_mtime, reverse=True)
    except OSError:
        return []
    return [entry.name for entry in islice(filter(_is_run_id, found), MAX_RUN_IDS)]


def _is_run_id(entry: "os.DirEntry[str]") -> bool:
    """Return whether a run can have this name: a shell would run `$(x)` in a word that it has completed."""
    return RUN_ID.fullmatch(entry.name) is not None


def complete_context(incomplete: str) -> list[str]:
    """Return the contexts of the user's kubeconfig, and the words that stand for one."""
    import yaml

    names = ["current", IN_CLUSTER]
    for path in (os.environ.get("KUBECONFIG") or "~/.kube/config").split(os.pathsep):
        with suppress(OSError, ValueError, yaml.YAMLError, TypeError, KeyError, AttributeError):
            contexts = yaml.safe_load(Path(path).expanduser().read_text(encoding="utf-8"))["contexts"]
            names += [str(context["name"]) for context in contexts]
    return [name for name in names if name.isprintable()]


def _list_yaml_files(incomplete: str) -> Iterator[str]:
    folder = incomplete.rpartition("/")[0]
    place = Path(folder or ("/" if incomplete.startswith("/") else "."))
    try:
        entries = sorted(place.expanduser().iterdir())
    except OSError:
        return
    for entry in entries:
        if entry.suffix in (".yaml", ".yml") or (entry.is_dir() and not entry.name.startswith(".")):
            yield f"{folder}/{entry.name}" if "/" in incomplete else entry.name
