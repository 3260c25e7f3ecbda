"""Find the scenarios that come with the tool: examples to begin with, one YAML file each."""

from pathlib import Path

FOLDER = Path(__file__).parent / "scenarios"


def list_shipped_scenarios() -> dict[str, Path]:
    """Return their names with their files."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.yaml"))}
