"""What `make` would run: what tests need is installed side by side; users get the bytecode of all that they have."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[3]


def list_commands(*words: str) -> list[str]:
    """Return the commands that `make` would run in a checkout whose locks have just changed."""
    variables = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "PYTEST")}
    command = ["make", "--dry-run", "--what-if", "requirements.lock", "--what-if", "requirements-dev.lock", *words]
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def count(commands: list[str], part: str) -> int:
    return sum(part in command for command in commands)


def test_the_frameworks_are_installed_beside_the_check_and_the_tests_unless_tests_are_chosen() -> None:
    program = "tests/framework_environments.py"
    commands = list_commands("test")
    assert [count(commands, part) for part in ("ruff check", "bin/pytest -n auto", program)] == [1, 1, 1]
    chosen = list_commands("test", "PYTEST=-k store")
    assert [count(chosen, part) for part in ("ruff check", "bin/pytest -n auto", program)] == [1, 1, 0]
    assert (ROOT / program).is_file()


def test_only_the_tests_compile_what_they_import_themselves() -> None:
    for target, number in (("test", 1), ("tests", 2), ("check", 2)):  # `test` has `tests` install the rest
        installing = [command for command in list_commands(target) if "--require-hashes" in command]
        assert ["--no-compile" in command for command in installing] == [True] * number
    assert count(list_commands("install"), "--require-hashes") == 1
    assert count(list_commands("install"), "--no-compile") == 0
