"""Matrix files: reading, expanding and planning them."""

from pathlib import Path

BUILTIN_FOLDER = Path(__file__).parents[1] / "matrices"


def list_builtin_matrices() -> list[str]:
    return sorted(path.stem for path in BUILTIN_FOLDER.glob("*.yaml"))
