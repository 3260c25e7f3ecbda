"""Write how much each environment of a framework downloads, for what `benchmatrix run` says before it installs.

The sizes are those that the package index states for the locked wheels (the key `size` of PEP 700), as uv writes them
into a lock of PEP 751. What an environment takes on the disk is measured where it is installed here. `make lock` runs
this; it needs the index.
"""

import hashlib
import json
import subprocess
import tomllib
from itertools import chain
from pathlib import Path
from typing import Any

from packaging.tags import compatible_tags, cpython_tags
from packaging.utils import parse_wheel_filename

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "runner" / "local" / "installation_sizes.json"
PYTHON = (3, 11)
PLATFORMS = [
    *(f"manylinux_2_{minor}_x86_64" for minor in range(28, 4, -1)),
    *("manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64", "linux_x86_64"),
]
"""What `make lock` resolves for: x86-64 with glibc 2.28."""
UV = (ROOT / ".venv" / "bin" / "uv", "pip", "compile", "-q", "--no-deps", "--format", "pylock.toml")
BLOCK_BYTES = 512
"""The unit of `st_blocks` (inode(7))."""


def main() -> None:
    sizes = {}
    for path in sorted(ROOT.glob("images/*/requirements-*.txt")):
        framework, flavour = path.parent.name, path.stem.removeprefix("requirements-")
        if framework != "bench":
            sizes[f"{framework}-{flavour}"] = measure(path)
    TARGET.write_text(json.dumps(sizes, indent=1) + "\n")


def measure(path: Path) -> dict[str, Any]:
    version = ".".join(map(str, PYTHON))
    command = (*UV, "--python-version", version, "--python-platform", "x86_64-manylinux_2_28", path)
    lock = tomllib.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    sizes = [find_size(package) for package in lock["packages"]]
    environment = ROOT / ".environments" / f"{path.parent.name}-{path.stem.removeprefix('requirements-')}"
    files = [file.lstat() for file in environment.rglob("*") if file.is_symlink() or file.is_file()]
    return {
        "requirements_sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "num_packages": len(sizes),
        "download_bytes": sum(sizes),
        "installed_bytes": BLOCK_BYTES * sum(file.st_blocks for file in files)
        if (environment / "installed").exists()
        else None,
    }


def find_size(package: dict[str, Any]) -> int:
    """Return the bytes of the file that pip installs: the wheel whose tag fits best, else the source."""
    best = chain(cpython_tags(PYTHON, platforms=PLATFORMS), compatible_tags(PYTHON, "cp311", PLATFORMS))
    order = {tag: place for place, tag in enumerate(best)}
    fitting = [
        (min(order[tag] for tag in tags), int(wheel["size"]))
        for wheel in package.get("wheels", ())
        if (tags := order.keys() & parse_wheel_filename(wheel["url"].rpartition("/")[2])[3])
    ]
    return min(fitting)[1] if fitting else int(package["sdist"]["size"])


if __name__ == "__main__":
    main()
