"""Find what the tool reads of its repository: in the checkout that it runs from, or in the installed package.

The wheel has copies of these files in `runner/repository`; pyproject.toml lists them. Where programs want the whole
repository (a build of an image, the measuring processes), it is put together once in the user's cache.
"""

import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path

from bench.errors import UserError
from runner import checkout

CACHE_VARIABLE = "BENCHMATRIX_CACHE_DIR"
COPIES = "repository"
"""The folder of the package `runner` that has the copies."""
PACKAGES = {
    "benchmatrix": "benchmatrix",
    "collector": "collector",
    "runner": "runner",
    "bench": "images/bench/src/bench",
}
"""Installed packages, and where they are in the repository."""


def find_source(path: str) -> Path:
    """Return a file or folder of the repository that only data is read from, such as `manifests`."""
    return (checkout.ROOT if checkout.has_checkout() else _find_package("runner") / COPIES) / path


def locate_sources() -> Path:
    """Return the root of a tree that is laid out as the repository: the checkout's, or one in the user's cache.

    Raise UserError if the cache cannot be written.
    """
    return checkout.ROOT if checkout.has_checkout() else _assemble(find_cache_folder())


def find_cache_folder() -> Path:
    """Return where an installed tool keeps what it can make again: virtual environments, and its sources.

    As the XDG specification says (https://specifications.freedesktop.org/basedir-spec/latest/), unless
    BENCHMATRIX_CACHE_DIR names another folder.
    """
    try:
        if named := os.environ.get(CACHE_VARIABLE):
            return Path(named).expanduser().absolute()
        base = Path(os.environ.get("XDG_CACHE_HOME", ""))
        return (base if base.is_absolute() else Path.home().absolute() / ".cache") / "benchmatrix"
    except (RuntimeError, OSError):  # no HOME, and a user whom the system does not know; the current folder was deleted
        raise UserError(f"there is no home folder; set HOME, or name a folder in {CACHE_VARIABLE}") from None


def _find_package(name: str) -> Path:
    found = files(name)
    if not isinstance(found, Path):  # in a zip file, where no other program could read it
        raise UserError(f"{name}: is not installed as files; install benchmatrix with pip or uv")
    return found


@cache
def _assemble(folder: Path) -> Path:
    """Return a folder with all sources below `folder`; its name is a hash of them, so no other version changes it."""
    sources = dict(_list_sources())
    digest = hashlib.sha256()
    for name, path in sorted(sources.items()):
        digest.update(f"{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\0".encode())
    target = folder / "sources" / digest.hexdigest()[:12]
    if not target.is_dir():
        part = target.with_name(f".{target.name}-{secrets.token_hex(4)}")
        try:
            for name, path in sources.items():
                (part / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, part / name)
            part.rename(target)
        except OSError as error:
            shutil.rmtree(part, ignore_errors=True)
            if not target.is_dir():  # another process may have been faster
                raise UserError(
                    f"{error.filename or target}: cannot be written ({error.strerror}); name another folder for what "
                    f"the tool keeps in {CACHE_VARIABLE}"
                ) from error
    return target


def _list_sources() -> Iterator[tuple[str, Path]]:
    copies = _find_package("runner") / COPIES
    for root, place in ((copies, ""), *((_find_package(name), f"{place}/") for name, place in PACKAGES.items())):
        for path in root.rglob("*"):
            is_copy = root != copies and path.is_relative_to(copies)
            if path.is_file() and "__pycache__" not in path.parts and not is_copy:
                yield f"{place}{path.relative_to(root)}", path
