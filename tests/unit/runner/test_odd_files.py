"""Whatever stands in a matrix, profile, price table or scenario: it is loaded, or refused in one printable line."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, settings

from bench.errors import UserError
from odd_documents import draw_documents
from runner.access_scenarios import load_scenario
from runner.checkout import ROOT
from runner.matrix.expansion import load_matrix
from runner.price_tables.loading import load_prices
from runner.profiles.loading import load_profile

LOADERS: dict[str, Callable[[str], object]] = {
    "runner/matrices": load_matrix,
    "runner/profiles": load_profile,
    "collector/prices": lambda path: load_prices(Path(path)),
    "collector/access/scenarios": load_scenario,
}
"""Loaders of files, by the folder of the valid ones that are changed."""
NUM_EXAMPLES = 50


@cache
def read_shipped(folder: str) -> tuple[Any, ...]:
    return tuple(yaml.safe_load(path.read_bytes()) for path in sorted((ROOT / folder).glob("*.yaml")))


def load(loader: Callable[[str], object], path: str) -> str | None:
    try:
        loader(path)
    except UserError as error:
        return str(error)
    return None


@pytest.mark.parametrize("folder", LOADERS)
def test_an_odd_file_is_loaded_or_refused_in_one_line(folder: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.yaml"
    assert read_shipped(folder)

    @settings(derandomize=True, max_examples=NUM_EXAMPLES, database=None, deadline=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(draw_documents(read_shipped(folder)))
    def look(content: bytes) -> None:
        path.write_bytes(content)
        message = load(LOADERS[folder], str(path))
        assert message is None or (message.startswith(str(path)) and message.isprintable() and len(message) < 2000)

    look()
