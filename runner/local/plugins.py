"""The plugins of the tool's own environment, made importable for measuring processes, which have other environments."""

import hashlib
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from bench.registry.plugins import list_plugins
from runner.sources import find_cache_folder


@cache
def link_plugins() -> tuple[str, ...]:
    """Return the folder that has a link to each plugin's package and metadata, and nothing else; empty without one."""
    targets = set[Path]()
    for _, distribution, package in list_plugins():
        metadata = f"{distribution.name.replace('-', '_')}-{distribution.version}.dist-info"
        targets |= {package, Path(str(distribution.locate_file(metadata)))}
    if not targets:
        return ()
    listed = sorted(str(target) for target in targets)
    folder = find_cache_folder() / "plugins" / hashlib.sha256("\n".join(listed).encode()).hexdigest()[:16]
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = Path(mkdtemp(dir=folder.parent))
        for target in targets:
            (made / target.name).symlink_to(target)
        made.rename(folder)
    return (str(folder),)
