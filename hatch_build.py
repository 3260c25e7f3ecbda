"""Make what differs between the checkout and the distribution: the description, and where the packages are.

A package index has no other file of the repository, so each link of README.md leads to the repository where the release
is built: GitHub Actions names it (https://docs.github.com/actions/reference/workflows-and-actions/variables). Where
nothing names it, as in a build on somebody's machine, a link becomes its text: none is dead.

The folders `runner`, `collector` and `bench` are packages of their own in the checkout. Installed so, they would clash
with anybody's: the wheel has them below `benchmatrix`, with their imports changed, and `benchmatrix/repository` has
the files as they are, for images and measuring processes.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

VERSION_FILE = "images/bench/src/bench/__init__.py"
FENCE = re.compile(r"(^```.*?^```[^\n]*$)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?P<mark>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")
PACKAGES = {"benchmatrix": ".", "runner": "runner", "collector": "collector", "images/bench/src/bench": "bench"}
"""Folders of the repository, and where they are below `benchmatrix` in the wheel."""
IMPORT = re.compile(r"^(\s*(?:from|import) )(runner|collector|bench)\b", re.MULTILINE)
ABSOLUTE = re.compile(r"[a-z][a-z0-9+.-]*:|#")


class CustomMetadataHook(MetadataHookInterface):
    """Give the distribution its description; hatchling finds the class by its name."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the field `readme`, which is among `dynamic` in pyproject.toml."""
        root = Path(self.root)
        version = re.search(r'__version__ = "(.+)"', (root / VERSION_FILE).read_text())
        assert version is not None  # tests/unit/repository/test_release.py
        text = change_links((root / "README.md").read_text(), find_repository(os.environ), f"v{version[1]}")
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def find_repository(variables: Mapping[str, str]) -> str | None:
    """Return the URL of the repository that GitHub Actions builds from; None elsewhere."""
    server, name = variables.get("GITHUB_SERVER_URL"), variables.get("GITHUB_REPOSITORY")
    return f"{server}/{name}" if server and name else None


def change_links(text: str, repository: str | None, tag: str) -> str:
    """Return the page with every relative link led to the tag in the repository; without a repository, as its text."""

    def change(link: re.Match[str]) -> str:
        if ABSOLUTE.match(link["target"]):
            return link[0]
        if repository is None:
            return "" if link["mark"] else link["text"]
        kind = "raw" if link["mark"] else "blob"
        return f"{link['mark']}[{link['text']}]({repository}/{kind}/{tag}/{link['target']})"

    def list_parts() -> Iterator[str]:
        for number, part in enumerate(FENCE.split(text)):  # every second one is a block of code
            yield part if number % 2 else LINK.sub(change, part)

    return "".join(list_parts())


class CustomBuildHook(BuildHookInterface[Any]):
    """Put the packages below `benchmatrix`; hatchling finds the class by its name."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the packages in a folder that `finalize` removes; an editable installation uses the checkout."""
        if version == "editable":
            return
        self._folder = Path(tempfile.mkdtemp())
        for place, name in PACKAGES.items():
            for path in (Path(self.root) / place).rglob("*"):
                if path.is_file() and "__pycache__" not in path.parts:
                    target = self._folder / name / path.relative_to(Path(self.root) / place)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(path, target)
                    if path.suffix == ".py":
                        target.write_text(IMPORT.sub(r"\1benchmatrix.\2", path.read_text()))
        build_data["force_include"][str(self._folder)] = "benchmatrix"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what `initialize` made."""
        if version != "editable":
            shutil.rmtree(self._folder)
