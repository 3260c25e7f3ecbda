"""docs/access.md shows the shipped scenario as it is, and every key that a scenario can have."""

import re

import pytest

from bench.schema.document import Document
from collector.access.scenario import Alternative, Buy, Group, Kind, Rent, Scenario
from runner.access_scenarios import SHIPPED
from runner.sources import ROOT

PAGE = (ROOT / "docs" / "access.md").read_text()


def test_the_example_is_the_shipped_scenario() -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert example == SHIPPED["one-h100-or-t4s"].read_text()


@pytest.mark.parametrize("model", [Scenario, Kind, Group, Alternative, Buy, Rent])
def test_every_key_is_explained(model: type[Document]) -> None:
    keys = re.findall(r"^\| `.*$", PAGE, re.MULTILINE)
    missing = [name for name in model.model_fields if not any(re.search(rf"\b{name}\b", row) for row in keys)]
    assert missing == []


def test_every_policy_is_explained() -> None:
    for policy in ("exclusive", "time-slicing", "mps", "fair-share"):
        assert re.search(rf"^\| .*`{policy}`", PAGE, re.MULTILINE)
