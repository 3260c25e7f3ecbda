"""Made-up trees of files, such as /proc and /sys/fs/cgroup."""

from pathlib import Path


def write_tree(root: Path, files: dict[str, str]) -> None:
    """Write files with their contents below `root`."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
