"""Find what the tool reads of its repository: in the checkout that it runs from, or in the installed package.

The wheel has copies of these files in `runner/repository`; pyproject.toml lists them. Where programs want the whole
repository (a build of an image, the measuring processes), it is put together once in the user's cache.
"""

import hashlib
import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path

from bench.errors import UserError

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
    return (ROOT if has_checkout() else _find_package("runner") / COPIES) / path


def locate_sources() -> Path:
    """Return the root of a tree that is laid out as the repository: the checkout's, or one in the user's cache.

    Raise UserError if the cache cannot be written.
    """
    return ROOT if has_checkout() else _assemble(find_cache_folder())


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


REVISION_VARIABLE = "BENCHMATRIX_REVISION"
"""Set by images/benchmatrix/Dockerfile."""
ROOT = Path(__file__).parents[1]
GIT_SECONDS = 10.0
"""`git status` reads each file of the checkout: 50 ms; more on a network's disk, and never an end where that hangs."""


def has_checkout() -> bool:
    """Return whether the tool runs from a checkout; one that was installed from a wheel, and its image, do not."""
    return (ROOT / "images" / "bench" / "pyproject.toml").is_file()


def is_image() -> bool:
    """Return whether the tool runs in its container image."""
    return REVISION_VARIABLE in os.environ


@cache
def read_git_revision() -> str | None:
    """Return the checkout's commit, with the suffix `-dirty` if tracked files differ from it; None outside git.

    In the image, which has no checkout, it is the commit that the image was built from. A tool that was installed from
    a wheel has none: the folder that it is in may be within somebody else's repository.
    """
    if built_from := os.environ.get(REVISION_VARIABLE):
        return built_from
    if not has_checkout():
        return None
    try:
        commit = _ask_git("rev-parse", "HEAD")
        return f"{commit}-dirty" if _ask_git("status", "--porcelain", "--untracked-files=no") else commit
    except (OSError, subprocess.SubprocessError):
        return None


def _ask_git(*words: str) -> str:
    command = ["git", "-C", str(ROOT), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=GIT_SECONDS, check=True).stdout.strip()
