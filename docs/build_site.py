"""Build the site from README.md, docs/ and the chart's page: `python docs/build_site.py` writes it to .site/html.

The pages keep their places, so a link between them leads to the same page on the site as in the repository. What a
page links to besides (pictures, reports, YAML files) is copied; a link to anything that is not there is an error.
"""

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import yaml
from markdown_it import MarkdownIt

from site_pages import adapt_page

ROOT = Path(__file__).parents[1]
CONFIGURATION = "mkdocs.yml"


class SiteError(Exception):
    """What is wrong with the pages, in words for whoever writes them."""


def list_pages(root: Path) -> list[Path]:
    """Return the Markdown files that are pages of the site."""
    beside_docs = [root / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")]
    return [*beside_docs, root / "charts" / "benchmatrix" / "README.md", *sorted((root / "docs").rglob("*.md"))]


def list_linked_files(page: Path) -> Iterator[Path]:
    """Yield the files other than pages that a page links to or shows; raise SiteError where one is not there."""
    for token in MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8")):
        for child in token.children or ():
            target = str(child.attrs.get("href") or child.attrs.get("src") or "")
            path = unquote(target.partition("#")[0])
            if not path or re.match(r"[a-z]+:", path):
                continue
            file = (page.parent / path).resolve()
            if not file.exists():
                raise SiteError(f"{page}: the link {target} leads to {file}, which is not there")
            if file.is_file() and file.suffix != ".md":
                yield file


def unlink_folders(text: str, folder: Path) -> str:
    """Return a page's text without links to folders, which GitHub lists and a site does not have."""

    def unlink(link: re.Match[str]) -> str:
        return link[1] if (folder / link[2]).is_dir() else link[0]

    return re.sub(r"\[([^\]]*)\]\(([^)#:\s]+)\)", unlink, text)


def load_configuration() -> dict[str, Any]:
    """Return the site's configuration; in its navigation, folders are replaced by their pages."""
    configuration: dict[str, Any] = yaml.safe_load((ROOT / CONFIGURATION).read_text(encoding="utf-8"))
    pages = [page.relative_to(ROOT).as_posix() for page in list_pages(ROOT)]
    named = set(list_navigation(configuration["nav"]))
    for section in configuration["nav"]:
        for title, folder in section.items():
            if isinstance(folder, str) and folder.endswith("/"):
                own = [page for page in pages if page.startswith(folder) and page not in named]
                section[title] = sorted(own, key=lambda page: (page != f"{folder}README.md", page))
    return configuration


def list_navigation(entries: Any) -> Iterator[str]:
    """Yield the pages and folders that entries of a navigation name, at any depth."""
    if isinstance(entries, str):
        yield entries
    else:
        for entry in entries.values() if isinstance(entries, dict) else entries:
            yield from list_navigation(entry)


def build_site(folder: Path) -> Path:
    """Write the site of this checkout below `folder` and return its folder; raise SiteError with what is wrong."""
    source = folder / "pages"
    shutil.rmtree(folder, ignore_errors=True)
    for page in list_pages(ROOT):
        for file in {page, *list_linked_files(page)}:
            copy = source / file.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, copy)
        copy = source / page.relative_to(ROOT)
        text = adapt_page(page.read_text(encoding="utf-8"), copy)
        copy.write_text(unlink_folders(text, page.parent), encoding="utf-8")
    for name in ("site.css",):
        shutil.copy(ROOT / "docs" / name, source / name)
    (folder / CONFIGURATION).write_text(yaml.safe_dump(load_configuration(), sort_keys=False), encoding="utf-8")
    program = [str(Path(sys.executable).parent / "zensical"), "build", "--strict", "--config-file", CONFIGURATION]
    done = subprocess.run(program, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SiteError(done.stdout + done.stderr)
    return folder / "html"


def main() -> None:
    """Write the site to .site/html, or exit with 1 and what is wrong."""
    argparse.ArgumentParser(description=__doc__.partition("\n")[0]).parse_args()
    try:
        print(build_site(ROOT / ".site"))
    except SiteError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
