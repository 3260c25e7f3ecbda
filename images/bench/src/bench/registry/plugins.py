"""What other distributions bring, by entry points of the groups `benchmatrix.models`, `.frameworks` and `.alarms`."""

import hashlib
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

GROUPS = ("models", "frameworks", "alarms")


def load_plugins(group: str) -> dict[Any, Any]:
    """Return what the installed distributions name in a group; what cannot be loaded is warned of and left out."""
    found = {}
    for entry in entry_points(group=f"benchmatrix.{group}"):
        try:
            found[entry.name] = entry.load()
        except Exception as error:  # code of others, which must not take the tool along
            reason = f"{type(error).__name__}: {error}"
            print(f"warning: {group} '{entry.name}' of a plugin cannot be loaded: {reason}", file=sys.stderr)
    return found


def list_plugins() -> Iterator[tuple[str, Distribution, Path]]:
    """Yield the name of each entry point of a plugin, its distribution, and the folder or file of its package."""
    for entry in (entry for group in GROUPS for entry in entry_points(group=f"benchmatrix.{group}")):
        spec = find_spec(entry.module.partition(".")[0])
        if spec is not None and spec.origin is not None and entry.dist is not None:
            file = Path(spec.origin)
            yield entry.name, entry.dist, file.parent if spec.submodule_search_locations else file


def read_plugin_versions(names: tuple[str, ...]) -> dict[str, str]:
    """Return the version of each distribution that brings one of these models or frameworks: `1.0+CODE`.

    CODE begins the SHA-256 of its Python files: code may change under one version while it is worked on.
    """
    versions = {}
    for name, distribution, package in list_plugins():
        if name in names:
            digest = hashlib.sha256()
            for file in sorted(package.rglob("*.py")) if package.is_dir() else [package]:
                digest.update(file.read_bytes())
            versions[distribution.name] = f"{distribution.version}+{digest.hexdigest()[:8]}"
    return versions
