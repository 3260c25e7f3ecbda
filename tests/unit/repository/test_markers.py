"""Tests get their markers from tests/conftest.py: by module, by folder and by fixture."""

import subprocess
import sys
from pathlib import Path

import conftest

TESTS = Path(__file__).parents[2]


def test_a_module_that_is_said_to_be_slow_exists_and_has_a_reason() -> None:
    named = [*conftest.SLOW_MODULES, *conftest.LONG_MODULES]
    assert [name for name in named if not (TESTS / name).is_file()] == [], "was it moved?"
    assert [name for name, reason in conftest.SLOW_MODULES.items() if len(reason.split()) < 4] == []


def test_modules_folders_and_fixtures_mark_their_tests() -> None:
    marked = ("cluster/test_executor.py", "e2e/test_push.py", "unit/collector/test_extremes.py")
    paths = [str(TESTS / path) for path in (*marked, "unit/bench/frameworks/test_pytorch.py")]
    expression = "not (framework or cluster or browser or e2e or slow)"
    command = [sys.executable, "-m", "pytest", "-n0", "--collect-only", "-q", "-m", expression, *paths]
    done = subprocess.run(command, cwd=TESTS.parent, capture_output=True, text=True)
    left = [line.partition("::") for line in done.stdout.splitlines() if "::" in line]

    assert {path for path, _, _ in left} == {"tests/unit/bench/frameworks/test_pytorch.py"}
    names = {name for _, _, name in left}
    assert "test_a_batch_has_the_cells_shape_standard_normal_values_and_labels_of_every_class" in names
    # It gets the interpreters through a fixture of its module.
    assert "test_equal_seeds_make_equal_weights_and_others_do_not" not in names
