"""Say how much an installation downloads and takes on the disk, and about how long that lasts, before it begins."""

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from runner.terminal_text import format_wait

TABLE = Path(__file__).with_name("installation_sizes.json")
"""Written by images/make_sizes.py from what the package index states of the locked wheels."""
MEGABITS_PER_SECOND = 100
"""The connection that the stated time is for; it stands beside the time, so that readers can scale it."""
BITS_PER_BYTE = 8


def describe_installation(name: str, requirements: Path) -> str:
    """Return what the environment `name`, such as `pytorch-cpu`, downloads from its locked `requirements`.

    A lock that the table was not made from has an unknown size, and the text says so.
    """
    size = _find_size(name, requirements)
    if size is None:
        return "how much there is to download is not known: the table of sizes is of other requirements"
    disk = size["installed_bytes"]
    return (
        f"{size['num_packages']} packages, {_format_size(size['download_bytes'])} to download (the package index's "
        f"sizes of the locked wheels; from pip's cache, none): {_format_download(size['download_bytes'])}, "
        f"and unpacking; {'on the disk more than that' if disk is None else f'{_format_size(disk)} on the disk'}"
    )


def describe_installations(requirements: Mapping[str, Path], folder: Path) -> str:
    """Return what several environments, by name, download together and take in `folder`, and what is free there."""
    sizes = [_find_size(name, path) for name, path in requirements.items()]
    names = ", ".join(requirements)
    free = f"{_format_size(_find_free_bytes(folder))} are free in {folder}"
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes):
        return f"{names}: how much there is to download is not known for each; {free}"
    download = sum(size["download_bytes"] for size in known)
    disk = [size["installed_bytes"] for size in known]
    taken = "more than that" if None in disk else _format_size(sum(filter(None, disk)))
    return (
        f"{names}: {_format_size(download)} to download ({_format_download(download)}, and unpacking), {taken} on the "
        f"disk; {free}"
    )


def _find_size(name: str, requirements: Path) -> dict[str, Any] | None:
    """Return the row of an environment; None where the table was made from another lock."""
    size: dict[str, Any] = json.loads(TABLE.read_text()).get(name, {})
    return size if size.get("requirements_sha256") == hashlib.sha256(requirements.read_bytes()).hexdigest() else None


def _find_free_bytes(folder: Path) -> int:
    """Return what is free where the folder is, or will be made."""
    there = next(place for place in (folder, *folder.absolute().parents) if os.path.exists(place))
    return shutil.disk_usage(there).free


def _format_download(num_bytes: int) -> str:
    seconds = num_bytes * BITS_PER_BYTE / (MEGABITS_PER_SECOND * 1e6)
    return f"{format_wait(seconds)} at {MEGABITS_PER_SECOND} Mbit/s"


def _format_size(num_bytes: int) -> str:
    return f"{num_bytes / 1e9:.1f} GB" if num_bytes >= 1e9 else f"{num_bytes / 1e6:.0f} MB"
