"""Find the commands in the pages of the documentation, and say which of them a test can run.

A command stands in a fence of the language `sh`. Without a comment before the fence all its commands run; with
`<!-- not run: REASON -->` they are only parsed, for one of the REASONS. A fence with `title="NAME"` is a file that the
commands of its page find under this name.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from build_site import list_pages
from runner.sources import ROOT

LANGUAGES = {"csv", "json", "mermaid", "python", "sh", "text", "yaml"}
REASONS = {
    "comes from --help": "its words stand for the reader's own",
    "needs a GPU": "it measures on one",
    "needs a cloud": "it works in somebody's account, or in a bucket there",
    "needs a cluster": "it talks to an API server",
    "needs a file of yours": "it reads one that no page shows in full",
    "needs another program": "one that is not this project's",
    "needs Docker": "it builds, moves or pushes images",
    "needs runs of yours": "it selects runs of several machines, images or weeks",
    "takes minutes": "it installs frameworks, measures, or runs the tests",
    "writes into the checkout": "the tests read what it would change",
}
MARKER = re.compile(r"<!-- not run: (.*) -->\n?")
SEPARATORS = {"&&", "||", ";", "|", "&", "(", ")"}
KEYWORDS = {"do", "then", "else", "eval", "export"}
PROGRAM = ".venv/bin/benchmatrix"


@dataclass(frozen=True, kw_only=True)
class Block:
    """A fence of a page."""

    page: Path
    line: int
    language: str
    text: str
    reason: str | None
    """Why its commands are not run; None: they are."""
    file_name: str | None
    """The name under which commands find it."""

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def list_blocks() -> list[Block]:
    """Return all fences of all pages, in their order."""
    return [block for page in list_pages(ROOT) for block in find_blocks(page)]


def find_blocks(page: Path) -> Iterator[Block]:
    """Yield the fences of a page; a block of indented code has the language `indented`."""
    before: Token | None = None
    for token in MarkdownIt("commonmark").parse(page.read_text(encoding="utf-8")):
        if token.type in {"fence", "code_block"}:
            assert token.map is not None
            marker = MARKER.fullmatch(before.content) if before and before.type == "html_block" else None
            language, _, attributes = token.info.partition(" ")
            title = re.search(r'title="([^"]+)"', attributes)
            yield Block(
                page=page,
                line=token.map[0] + 1,
                language="indented" if token.type == "code_block" else language,
                text=token.content,
                reason=marker[1] if marker else None,
                file_name=title[1] if title else None,
            )
        before = token


def find_inline_code(page: Path) -> Iterator[str]:
    """Yield what stands between backticks in a page's text and tables."""
    for token in MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8")):
        yield from (child.content for child in token.children or () if child.type == "code_inline")


def split_commands(script: str) -> Iterator[list[str]]:
    """Yield the words of each command of a script, without variables before it and redirections after it."""
    pending = ""
    for line in script.replace("\\\n", " ").splitlines():
        pending += f"{line}\n"
        try:
            words = _split_words(pending)
        except ValueError:  # a quotation that goes on in the next line
            continue
        pending = ""
        yield from _split_at_separators(words)
    if pending:
        raise ValueError(f"a quotation has no end: {pending}")


def _split_words(text: str) -> list[str]:
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    return list(lexer)


def _split_at_separators(words: list[str]) -> Iterator[list[str]]:
    command: list[str] = []
    for word in [*words, ";"]:
        if word not in SEPARATORS:
            command.append(word)
            continue
        found = _strip(command)
        if found:
            yield found
        command = []


def _strip(words: list[str]) -> list[str]:
    while words and (words[0] in KEYWORDS or re.fullmatch(r"[A-Z_]+=.*", words[0])):
        words = words[1:]
    ends = [index for index, word in enumerate(words) if word in {">", ">>", "<", "$"}]
    words = words[: ends[0]] if ends else words
    return ["benchmatrix", *words[1:]] if words[:1] == [PROGRAM] else words
