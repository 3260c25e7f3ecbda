"""Every command in the pages has a command and options that exist; those that can run here do run.

A command stands in a fence of the language `sh`. Without a comment before the fence all its commands run; with
`<!-- not run: REASON -->` they are only parsed, for one of the REASONS. A fence with `title="NAME"` is a file that the
commands of its page find under this name.
"""

import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from build_site import list_pages
from factories import make_cell, make_environment, make_gpu
from runner.cli import make_command
from runner.sources import ROOT
from two_runs import put_run

GROUP: Any = make_command()
MAKEFILE = (ROOT / "Makefile").read_text()
LANGUAGES = {"csv", "json", "mermaid", "python", "sh", "text", "yaml"}
REASONS = {
    *("comes from --help", "needs a GPU", "needs a cloud", "needs a cluster", "needs a file of yours"),
    *("needs another program", "needs Docker", "needs runs of yours", "takes minutes", "writes into the checkout"),
}
MARKER = re.compile(r"<!-- not run: (.*) -->\n?")
KEYWORDS = {"do", "then", "else", "eval", "export"}
# In the text of a page, options of other programs that have no command beside them.
OPTIONS_OF_OTHERS = {
    "gcloud": "--accelerator --system-config-from-file --zone",
    "kubectl": "--cascade",
    "kube-controller-manager": "--concurrent-job-syncs --kube-api-burst --kube-api-qps",
    "cluster-autoscaler": "--scale-down-unneeded-time",
    "docker": "--cpuset-cpus",
    "kube-apiserver": "--delete-collection-workers",
    "benchmarks/interval_coverage.py": "--every",
    "benchmarks/large_run.py": "--job-syncs --kill-at --recorded",
    "benchmarks/job_objects.py": "--layout",
    "apt-get": "--no-install-recommends",
    "helm": "--reset-then-reuse-values",
    "benchmarks/cluster_scale.py": "--stock-limits",
    "XLA": "--xla_gpu_dump_autotune_results_to",
}


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
    text = script.replace("\\\n", " ").replace("\n", "\n;")  # a comment ends with its line
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    command: list[str] = []
    for word in [*lexer, ";"]:
        if not re.fullmatch(r"[;&|()]+", word):
            command.append(word)
            continue
        while command and (command[0] in KEYWORDS or re.fullmatch(r"[A-Z_]+=.*", command[0])):
            command = command[1:]
        ends = [index for index, found in enumerate(command) if found in {">", ">>", "<", "$"}]
        command = command[: ends[0]] if ends else command
        if command:
            yield ["benchmatrix" if command[0] == ".venv/bin/benchmatrix" else command[0], *command[1:]]
        command = []


BLOCKS = [block for page in list_pages(ROOT) for block in find_blocks(page)]


def parse(words: list[str]) -> str | None:
    """Return what is wrong with the words after `benchmatrix`, or None."""
    try:
        name, command, rest = GROUP.resolve_command(GROUP.make_context("benchmatrix", ["-"]), words)
        if hasattr(command, "commands"):
            name, command, rest = command.resolve_command(command.make_context(name, ["-"]), rest)
        command.make_context(name, list(rest))
    except Exception as error:  # of classes that Typer does not export
        return str(error.format_message() if hasattr(error, "format_message") else repr(error))
    return None


def list_options(command: Any) -> set[str]:
    """Return the options of a command and of those below it."""
    own = {option for parameter in command.params for option in parameter.opts + parameter.secondary_opts}
    return own.union({"--help"}, *map(list_options, getattr(command, "commands", {}).values()))


def test_every_block_has_a_language_and_every_reason_is_known() -> None:
    assert [f"{block}: {block.language or 'no language'}" for block in BLOCKS if block.language not in LANGUAGES] == []
    marked = [block for block in BLOCKS if block.reason is not None]
    assert [f"{block}: {block.reason}" for block in marked if block.reason not in REASONS] == []
    assert [str(block) for block in marked if block.language != "sh"] == []
    assert REASONS == {block.reason for block in marked}


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.language == "sh"], ids=str)
def test_every_command_exists(block: Block) -> None:
    for words in split_commands(block.text):
        if words[0] == "benchmatrix":
            assert parse(words[1:]) is None, words
        elif words[0] == "make":
            check_make(words[1:])
        elif words[0].endswith("python"):
            assert (ROOT / words[1]).is_file(), words


def check_make(words: list[str]) -> None:
    """Check that the Makefile has the targets, and uses the variables."""
    for word in words:
        variable, is_assignment, _ = word.partition("=")
        pattern = rf"\$\({variable}\)" if is_assignment else rf"^{variable}:|^\.PHONY:.* {variable}\b"
        assert re.search(pattern, MAKEFILE, re.MULTILINE), word


@pytest.mark.parametrize("page", list_pages(ROOT), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_and_option_in_the_text_exists(page: Path) -> None:
    known = list_options(GROUP)
    for code in find_inline_code(page):
        if re.match(r"(\.venv/bin/)?benchmatrix [a-z]", code):
            names = [word for word in code.split()[1:] if not word.startswith("-")]
            command = GROUP.commands[names[0]]
            assert {word for word in code.split() if word.startswith("--")} <= list_options(command), code
        option = re.match(r"--[\w-]+", code)
        assert option is None or option[0] in known.union(*map(str.split, OPTIONS_OF_OTHERS.values())), code
        if re.match(r"make [a-z]", code):
            check_make([word for word in code.split()[1:] if not word.endswith(("...", '"'))])


PLACEHOLDERS = {
    "RUN": "nightly-2",
    "RUN_A": "nightly-1",
    "RUN_B": "nightly-2",
    "RUN_CPU": "nightly-1",
    "RUN_GPU": "nightly-2",
    "RUN_ID": "nightly-2",
}
RESNET = {"model": "resnet18", "input_size": 224, "num_classes": 1000, "device": "gpu"}
CELLS = {
    make_cell(): (0.100, 0.101, 0.099),
    make_cell(phase="infer", framework="pytorch"): (0.030, 0.031, 0.030),
    make_cell(phase="infer", framework="tensorflow", mode="graph"): (0.040, 0.041, 0.040),
    make_cell(phase="infer", batch_size=1): (0.010, 0.011, 0.010),
    make_cell(phase="infer", batch_size=8): (0.020, 0.021, 0.020),
    make_cell(phase="infer", batch_size=1, framework="tensorflow", mode="graph"): (0.008, 0.009, 0.008),
    make_cell(phase="infer", batch_size=8, framework="tensorflow", mode="graph"): (0.018, 0.019, 0.018),
    make_cell(**RESNET): (0.233, 0.235, 0.231),
    make_cell(**RESNET, framework="tensorflow", mode="graph"): (0.250, 0.251, 0.249),
}
"""Repeats of each cell in seconds, near enough to one another that a comparison has an answer."""
DRIVERS = {
    "before-1": "550.54.15",
    "before-2": "550.54.15",
    "after-1": "580.65.06",
    "after-2": "580.65.06",
    "nightly-1": "580.65.06",
    "nightly-2": "580.65.06",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the folder in which a reader types the docs' commands: results of some runs, the checkout's docs."""
    folder = tmp_path_factory.mktemp("reader")
    for day, (run_id, driver) in enumerate(DRIVERS.items()):
        machine = make_environment(gpus=(make_gpu(driver_version=driver),))
        put_run(folder / "results", run_id, CELLS, day=day, environment=machine)
    (folder / "docs").symlink_to(ROOT / "docs")
    return folder


# Of `compare` and `watch`, 1 is an answer.
ANSWERS = {"compare": (0, 1), "watch": (0, 1)}
RUNNABLE = [block for block in BLOCKS if block.language == "sh" and block.reason is None]


@pytest.mark.parametrize("block", RUNNABLE, ids=str)
def test_every_command_that_can_run_here_runs(
    block: Block, folder: Path, run_command: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    for file in find_blocks(block.page):
        if file.file_name is not None:
            (folder / file.file_name).write_text(file.text)
    for words in split_commands(block.text):
        assert words[0] == "benchmatrix", f"{words[0]} is not run by a test: give the reason before the block"
        code, said = run_command(*(PLACEHOLDERS.get(word, word) for word in words[1:]))
        assert code in ANSWERS.get(words[1], (0,)), f"{words} ended with {code}: {said}"


def test_the_audited_table_gets_the_verdicts_that_the_page_says(
    folder: Path, run_command: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    page = ROOT / "docs" / "how-to" / "audit-a-table.md"
    (table,) = [block for block in find_blocks(page) if block.file_name == "paper.csv"]
    (folder / "said.csv").write_text(table.text)
    _, said = run_command("audit", "said.csv")
    text = " ".join(page.read_text().split())
    verdicts = re.findall(r"(?:of a T4's peak: |The second is |algorithms take: )\*([\w ]+)\*", text)
    assert verdicts == ["possible", "implausible without Winograd", "impossible"]
    for number, verdict in enumerate(verdicts, start=1):
        assert re.search(rf"^{number}\. .*  {verdict} *$", said, re.MULTILINE)
