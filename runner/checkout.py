"""Find the checkout that the tool runs from, and its git revision."""

import os
import subprocess
from functools import cache
from pathlib import Path

from bench.errors import UserError

REVISION_VARIABLE = "BENCHMATRIX_REVISION"
"""Set by images/benchmatrix/Dockerfile."""
ROOT = Path(__file__).parents[1]


def has_checkout() -> bool:
    """Return whether the tool runs from a checkout; in its image it does not."""
    return (ROOT / "images" / "bench" / "pyproject.toml").is_file()


def require_checkout() -> Path:
    """Return the root of the checkout; raise UserError if the tool was installed without one."""
    if not has_checkout():
        raise UserError(f"{ROOT}: no images/ here; run benchmatrix from a git checkout, or use --python")
    return ROOT


@cache
def read_git_revision() -> str | None:
    """Return the checkout's commit, with the suffix `-dirty` if tracked files differ from it; None outside git.

    In the image, which has no checkout, it is the commit that the image was built from.
    """
    if built_from := os.environ.get(REVISION_VARIABLE):
        return built_from
    try:
        commit = _ask_git("rev-parse", "HEAD")
        return f"{commit}-dirty" if _ask_git("status", "--porcelain", "--untracked-files=no") else commit
    except (OSError, subprocess.CalledProcessError):
        return None


def _ask_git(*words: str) -> str:
    command = ["git", "-C", str(ROOT), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
