"""Every command in the pages has a command and options that exist; those that can run here do run."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from build_site import list_pages
from documented_commands import LANGUAGES, REASONS, Block, find_blocks, find_inline_code, list_blocks, split_commands
from documented_runs import put_documented_runs, replace_placeholders
from runner.cli import make_command
from runner.sources import ROOT

BLOCKS = list_blocks()
GROUP: Any = make_command()
MAKEFILE = (ROOT / "Makefile").read_text()
# In the text of a page, options of other programs that have no command beside them.
OPTIONS_OF_OTHERS = {
    "--accelerator": "gcloud",
    "--cascade": "kubectl",
    "--concurrent-job-syncs": "kube-controller-manager",
    "--scale-down-unneeded-time": "cluster-autoscaler",
    "--cpuset-cpus": "docker",
    "--delete-collection-workers": "kube-apiserver",
    "--every": "benchmarks/interval_coverage.py",
    "--job-syncs": "benchmarks/large_run.py",
    "--kill-at": "benchmarks/large_run.py",
    "--kube-api-burst": "kube-controller-manager",
    "--kube-api-qps": "kube-controller-manager",
    "--layout": "benchmarks/job_objects.py",
    "--no-install-recommends": "apt-get",
    "--recorded": "benchmarks/large_run.py",
    "--reset-then-reuse-values": "helm",
    "--stock-limits": "benchmarks/cluster_scale.py",
    "--system-config-from-file": "gcloud",
    "--xla_gpu_dump_autotune_results_to": "XLA",
    "--zone": "gcloud",
}


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
    assert set(REASONS) == {block.reason for block in marked}


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
        assert option is None or option[0] in known | set(OPTIONS_OF_OTHERS), code
        if re.match(r"make [a-z]", code):
            check_make([word for word in code.split()[1:] if not word.endswith(("...", '"'))])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the folder in which a reader types the docs' commands: results of some runs, the checkout's docs."""
    folder = tmp_path_factory.mktemp("reader")
    put_documented_runs(folder / "results")
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
        code, said = run_command(*replace_placeholders(words[1:]))
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
