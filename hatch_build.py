"""Make the description of the distribution for a package index from README.md, whose links are relative.

A package index has no other file of the repository, so each link leads to the repository where the release is built:
GitHub Actions names it (https://docs.github.com/actions/reference/workflows-and-actions/variables). Where nothing
names it, as in a build on somebody's machine, a link becomes its text: none is dead.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

VERSION_FILE = "images/bench/src/bench/__init__.py"
FENCE = re.compile(r"(^```.*?^```[^\n]*$)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?P<mark>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")
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
