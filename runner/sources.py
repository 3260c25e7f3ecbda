"""Find what the tool reads of its repository: in the checkout that it runs from, or in the installed package.

The wheel has a copy of the repository in `benchmatrix/repository` (hatch_build.py, pyproject.toml).
"""

import getpass
import os
import subprocess
from functools import cache
from pathlib import Path

from bench.errors import UserError

CACHE_VARIABLE = "BENCHMATRIX_CACHE_DIR"


def locate_sources() -> Path:
    """Return the root of the repository: the checkout's, or that of the copy in the installed package."""
    return ROOT if has_checkout() else ROOT / "repository"


def find_source(path: str) -> Path:
    return locate_sources() / path


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


REVISION_VARIABLE = "BENCHMATRIX_REVISION"
"""Set by images/benchmatrix/Dockerfile."""
ROOT = Path(__file__).parents[1]
"""Of the checkout; of the package `benchmatrix` where it is installed."""
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


BUILTIN_FOLDER = Path(__file__).with_name("matrices")


def list_builtin_matrices() -> list[str]:
    return sorted(path.stem for path in BUILTIN_FOLDER.glob("*.yaml"))


def read_user_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as in many containers
        return str(os.getuid())
