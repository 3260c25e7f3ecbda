"""runner.cli: what the start of the command line loads, and what it says without a command."""

import os
import subprocess
import sys

import pytest

from bench import __version__
from runner.commands.catalog import GROUPS

# Each takes a tenth of a second or more.
LEFT_TO_WORK = {
    *("altair", "bench.schema", "bench.store", "boto3", "collector", "jsonschema", "kubernetes", "kubernetes_validate"),
    *("numpy", "obstore", "pandas", "pyarrow", "runner.reporting", "scipy", "statsmodels", "vl_convert", "yaml"),
}
# What the commands need to say what they take.
LEFT_TO_COMMANDS = LEFT_TO_WORK | {"runner.commands.options", "runner.commands.run"}
PROGRAM = "import sys, atexit; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); import runner.cli as c"


def list_modules(*words: str, **variables: str) -> tuple[str, set[str]]:
    """Return what the command line prints, and the modules that it has loaded at its end."""
    program = f"{PROGRAM}; sys.argv = ['benchmatrix', *{words!r}]; c.main()"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ, **variables}, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, set(done.stderr.splitlines()[-1].split())


def complete(typed: str) -> tuple[str, set[str]]:
    number = len(typed.split()) - (not typed.endswith(" "))
    words = {"_BENCHMATRIX_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(number)}
    return list_modules(**words)


@pytest.mark.parametrize("words", [(), ("--help",), ("--version",), ("version",)])
def test_help_and_version_load_no_command(words: tuple[str, ...]) -> None:
    out, modules = list_modules(*words)

    assert out.strip() == __version__ if words[-1:] != ("--help",) and words else "Find the largest batch" in out
    assert sorted(LEFT_TO_COMMANDS & modules) == []


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_without_a_command_shows_its_help_and_ends_well(group: str) -> None:
    assert list_modules(group)[0] == list_modules(group, "--help")[0]


def test_completion_of_commands_loads_none_of_them() -> None:
    out, modules = complete("benchmatrix re")

    assert out.split() == ["render", "report"]
    assert sorted(LEFT_TO_COMMANDS & modules) == []


def test_no_command_loads_what_it_works_with_for_its_help() -> None:
    program = (
        "import importlib, sys; from runner.commands.catalog import COMMANDS\n"
        "for entry in COMMANDS: importlib.import_module(entry.module)\n"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert "runner.commands.run" in done.stdout.split()
    assert sorted(LEFT_TO_WORK & set(done.stdout.split())) == []


def test_completion_of_options_does_no_work() -> None:
    out, modules = complete("benchmatrix run --max")

    assert out.split() == ["--max-in-flight", "--max-nodes", "--max-cost"]
    assert sorted(LEFT_TO_WORK & modules) == []


@pytest.mark.parametrize("columns", ["²", "wide", "-5", "99999999999"])
def test_a_width_that_is_none_does_not_matter(columns: str) -> None:
    out, _ = list_modules("--help", COLUMNS=columns, TERMINAL_WIDTH=columns)

    assert max(len(line) for line in out.splitlines()) == 80


def test_the_end_of_a_run_loads_nothing_that_only_forecasts_need() -> None:
    """They take longer than all else that the table and the answers of a run need."""
    program = "import collector.answers.run_answers, collector.report.terminal, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert "pandas" in done.stdout.split()
    assert sorted({"scipy.optimize", "scipy.stats", "statsmodels"} & set(done.stdout.split())) == []


@pytest.mark.parametrize("value", ["abc", "", "1.5", "9" * 30])
def test_a_time_of_a_build_that_is_none_is_one_message(value: str) -> None:
    """numpy and Matplotlib read it while they are imported, and fail."""
    words = [sys.executable, "-m", "benchmatrix", "version"]
    variables = {**os.environ, "SOURCE_DATE_EPOCH": value}
    done = subprocess.run(words, capture_output=True, text=True, env=variables, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: SOURCE_DATE_EPOCH: is '")
    assert len(done.stderr.splitlines()) == 1
