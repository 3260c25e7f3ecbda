"""Names and paths of matrices, and the ids of their cells."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.errors import UserError
from matrix_files import DEMO, expand, write
from runner.checkout import ROOT
from runner.matrix.builtin import list_builtin_matrices
from runner.matrix.expansion import Matrix, load_matrix


def test_a_cell_id_ends_in_the_sha_256_of_its_canonical_json() -> None:
    for planned in load_matrix("smoke").cells:
        text = planned.cell.canonical_json
        assert json.loads(text).items() <= planned.cell.model_dump(mode="json").items()
        digits = planned.cell.cell_id.rpartition("-")[2]
        assert 8 <= len(digits)
        assert hashlib.sha256(text.encode()).hexdigest().startswith(digits)


def test_cell_ids_are_the_same_in_a_process_with_another_hash_seed() -> None:
    program = (
        "from runner.matrix.expansion import load_matrix; print(*[p.cell.cell_id for p in load_matrix('smoke').cells])"
    )
    environment = os.environ | {"PYTHONHASHSEED": "12345"}
    printed = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, check=True
    )
    assert printed.stdout.decode().split() == [planned.cell.cell_id for planned in load_matrix("smoke").cells]


def test_a_path_loads_and_is_shown_as_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, DEMO)
    monkeypatch.chdir(tmp_path)
    expected = Matrix(name="demo", description="", cells=tuple(expand(DEMO)), source="demo.yaml")
    assert load_matrix("demo.yaml") == expected
    assert load_matrix("./demo.yaml") == expected
    assert load_matrix(str(tmp_path / "demo.yaml")) == expected


def test_a_file_without_extension_loads_by_its_bare_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine").write_text(DEMO)
    monkeypatch.chdir(tmp_path)
    assert len(load_matrix("mine").cells) == 4


def test_an_unknown_name_gets_the_nearest_and_the_list() -> None:
    with pytest.raises(UserError) as caught:
        load_matrix("smoek")
    assert "matrix 'smoek': is neither a built-in matrix nor a file; did you mean 'smoke'?" in str(caught.value)
    assert ", ".join(list_builtin_matrices()) in str(caught.value)


@pytest.mark.parametrize("name", ["", "x" * 5000, "line\nbreak"])
def test_an_impossible_name_is_refused_in_one_line(name: str) -> None:
    with pytest.raises(UserError, match="^matrix '.{0,70}': is neither") as caught:
        load_matrix(name)
    assert "\n" not in str(caught.value)


def test_a_missing_path_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none\.yaml: there is no such file"):
        load_matrix(str(tmp_path / "none.yaml"))
    with pytest.raises(UserError, match="none: there is no such file"):
        load_matrix(str(tmp_path / "none"))
