"""Names and paths of matrices, and the ids of their cells."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.errors import UserError
from runner.checkout import ROOT
from runner.matrix.builtin import list_builtin_matrices
from runner.matrix.expansion import load_matrix


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


def test_an_unknown_name_gets_the_nearest_and_the_list() -> None:
    with pytest.raises(UserError) as caught:
        load_matrix("smoek")
    assert "matrix 'smoek': is neither a built-in matrix nor a file; did you mean 'smoke'?" in str(caught.value)
    assert ", ".join(list_builtin_matrices()) in str(caught.value)


def test_a_missing_path_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none\.yaml: there is no such file"):
        load_matrix(str(tmp_path / "none.yaml"))
    with pytest.raises(UserError, match="none: there is no such file"):
        load_matrix(str(tmp_path / "none"))
