"""Find the git checkout that the tool runs from, if it runs from one, and its revision."""

import os
import subprocess
from functools import cache
from pathlib import Path

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
    except (OSError, subprocess.TimeoutExpired, GitFailedError):
        return None


def _ask_git(*words: str) -> str:
    command = ["git", "-C", str(ROOT), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=GIT_SECONDS, check=False)
    if done.returncode:
        raise GitFailedError
    return done.stdout.strip()


class GitFailedError(Exception):
    """Git found no checkout, or cannot read it."""
