"""Say how much an installation downloads and takes on the disk, and about how long that lasts, before it begins."""

import hashlib
import json
from pathlib import Path

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
    size = json.loads(TABLE.read_text()).get(name, {})
    if size.get("requirements_sha256") != hashlib.sha256(requirements.read_bytes()).hexdigest():
        return "how much there is to download is not known: the table of sizes is of other requirements"
    seconds = size["download_bytes"] * BITS_PER_BYTE / (MEGABITS_PER_SECOND * 1e6)
    disk = size["installed_bytes"]
    return (
        f"{size['num_packages']} packages, {_format_size(size['download_bytes'])} to download (the package index's "
        f"sizes of the locked wheels; from pip's cache, none): {format_wait(seconds)} at {MEGABITS_PER_SECOND} Mbit/s, "
        f"and unpacking; {'on the disk more than that' if disk is None else f'{_format_size(disk)} on the disk'}"
    )


def _format_size(num_bytes: int) -> str:
    return f"{num_bytes / 1e9:.1f} GB" if num_bytes >= 1e9 else f"{num_bytes / 1e6:.0f} MB"
