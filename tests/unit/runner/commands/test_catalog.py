"""runner.commands.catalog: its sentences, its examples, and the options that commands share."""

import ast
import inspect
import re
import shlex
from collections import defaultdict
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer.main

import runner.commands
from runner.cli import app
from runner.command_loading import CatalogGroup, parse_words
from runner.commands.catalog import COMMANDS
from runner.commands.catalog_entry import CatalogEntry

EXAMPLES = [words for entry in COMMANDS for _, words in entry.examples]
# Options that take different things in different commands, and what each command takes.
DIFFERENT = {
    "--output": {"FILE", "FOLDER", "FILE|FOLDER"},  # commands that write several files take a folder, `report` both
    "--where": {"KEY=VALUE", "COLUMN[=VALUE]"},  # rows of results, or of anybody's table
    "--table": {"FILE", "FILE|URL"},
}


def make_group() -> CatalogGroup:
    group = typer.main.get_command(app)
    assert isinstance(group, CatalogGroup)
    return group


def find_command(entry: CatalogEntry) -> Any:
    found: Any = make_group()
    for word in entry.name.split():
        found = found.commands[word]
    return found


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)
def test_the_sentence_is_the_first_of_the_docstring(entry: CatalogEntry) -> None:
    docstring = inspect.getdoc(getattr(import_module(entry.module), entry.function_name))

    assert docstring is not None
    assert entry.summary == " ".join(docstring.partition("\n\n")[0].split())


def test_every_command_with_a_module_is_in_the_catalog() -> None:
    modules = {
        path.stem
        for path in Path(runner.commands.__path__[0]).glob("*.py")
        if re.match("The commands? `", str(ast.get_docstring(ast.parse(path.read_text()))))
    }
    assert modules == {entry.name.split()[0] for entry in COMMANDS}, "each needs an entry in runner/commands/catalog.py"


@pytest.mark.parametrize("words", EXAMPLES)
def test_every_example_is_a_command_that_there_is(words: str) -> None:
    context = parse_words(make_group(), shlex.split(words))

    assert words.startswith(context.command_path.removeprefix("benchmatrix "))


def test_every_command_has_an_example_which_its_help_shows(capsys: pytest.CaptureFixture[str]) -> None:
    for entry in COMMANDS:
        command = find_command(entry)
        command.get_help(command.make_context(entry.name, [], resilient_parsing=True))
        shown = capsys.readouterr().out.splitlines()
        assert entry.examples
        assert not any("<bool>" in line for line in shown)  # a flag takes no value
        assert [f"   benchmatrix {words}" for _, words in entry.examples] == [
            line for line in shown if line.startswith("   benchmatrix ")
        ]
        assert all(words.startswith(entry.name) for _, words in entry.examples)


def test_an_option_takes_the_same_in_every_command() -> None:
    metavars = defaultdict(set)
    for entry in COMMANDS:
        for parameter in find_command(entry).params:
            for option in parameter.opts:
                if option.startswith("--"):
                    metavars[option].add(parameter.metavar)

    shared = {option: found for option, found in metavars.items() if len(found) > 1}
    assert shared == DIFFERENT


def test_a_json_document_is_described_in_the_same_words_everywhere() -> None:
    texts = {
        parameter.help for entry in COMMANDS for parameter in find_command(entry).params if "--json" in parameter.opts
    }
    assert len(texts) == 2  # one document, or one a line
