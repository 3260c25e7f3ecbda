"""Every command that takes a file, a store or a cluster is fuzzed with each of them, or says here why it is not."""

import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import typer.main

from fuzz.cases import CORPUS, list_corpus
from fuzz.surroundings import EXAMPLES
from fuzz.targets import list_targets
from runner.cli import app
from runner.command_loading import CatalogGroup, parse_words
from runner.commands.catalog import COMMANDS

FOREIGN = ("FILE", "URL", "MATRIX", "PROFILE", "CONTEXT", "RUN_ID", "TABLE", "SCENARIO", "PATH")
"""Words in the place holder of an option or an argument that takes what somebody else wrote."""
WRITTEN = frozenset({"output", "plot", "metrics_file", "confirmation", "site", "manifests"})
"""Parameters that name what is written, not what is read."""
NAMES = frozenset({"run_id", "run_ids", "run_a", "run_b", "matrix"})
"""Parameters whose words are fuzzed themselves (target `words`): names of what lies in the store."""
NOT_FUZZED = {
    ("probe", "python"): "it measures: the interpreter runs as long as it likes; `words` has one that fails",
    ("run", "python"): "only plans are fuzzed, which start no interpreter",
    ("render", "on"): "only the context's name is read",
    **dict.fromkeys(
        [(f"images {command}", "cpu_index") for command in ("list", "build", "push", "sbom")],
        "it is passed on to pip as it is, in a build",
    ),
}
MAX_CASE_BYTES = 20_000


def make_group() -> CatalogGroup:
    group = typer.main.get_command(app)
    assert isinstance(group, CatalogGroup)
    return group


def list_foreign_parameters() -> Iterator[tuple[str, str]]:
    """Yield command and parameter of everything that takes a foreign input."""
    group = make_group()
    for entry in COMMANDS:
        found: Any = group
        for word in entry.name.split():
            found = found.commands[word]
        for parameter in found.params:
            if any(word in (parameter.metavar or "") for word in FOREIGN) and parameter.name not in WRITTEN | NAMES:
                yield entry.name, parameter.name


def list_fuzzed_parameters() -> set[tuple[str, str]]:
    """Return command and parameter of everything that a use of a target names."""
    group, fuzzed = make_group(), set()
    for target in list_targets().values():
        for words in target.uses.values():
            if not words or "--help" in words:
                continue
            context = parse_words(group, shlex.split(words))
            name = context.command_path.removeprefix("benchmatrix ")
            fuzzed |= {(name, key) for key, value in context.params.items() if value}
    return fuzzed


def test_every_foreign_input_of_every_command_is_fuzzed_or_says_why_not() -> None:
    foreign, fuzzed = set(list_foreign_parameters()), list_fuzzed_parameters()

    assert foreign - fuzzed - set(NOT_FUZZED) == set()


def test_what_is_said_not_to_be_fuzzed_is_not_and_has_a_reason() -> None:
    assert set(NOT_FUZZED) <= set(list_foreign_parameters()) - list_fuzzed_parameters()
    assert [place for place, reason in NOT_FUZZED.items() if len(reason.split()) < 4] == []


def test_every_command_is_fuzzed_by_its_words() -> None:
    assert {entry.name for entry in COMMANDS} == {
        entry.name for entry in COMMANDS for words in EXAMPLES if " ".join(words).startswith(entry.name)
    }


@pytest.mark.parametrize("path", list_corpus(), ids=lambda path: "/".join(path.parts[-3:]))
def test_a_case_of_the_corpus_is_of_a_target_and_small(path: Any) -> None:
    target, use, name = path.relative_to(CORPUS).parts

    assert use in list_targets()[target].uses
    assert path.stat().st_size <= MAX_CASE_BYTES
    assert len(path.stem.split("-")) > 1, f"{name}: name it by what it was"
