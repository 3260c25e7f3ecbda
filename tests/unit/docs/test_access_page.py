"""docs/access.md shows the shipped scenario as it is, and every policy."""

import re

from runner.analysis_inputs import SHIPPED_SCENARIOS
from runner.sources import ROOT

PAGE = (ROOT / "docs" / "access.md").read_text()


def test_the_example_is_the_shipped_scenario() -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert example == SHIPPED_SCENARIOS["one-h100-or-t4s"].read_text()


def test_every_policy_is_explained() -> None:
    for policy in ("exclusive", "time-slicing", "mps", "fair-share"):
        assert re.search(rf"^\| .*`{policy}`", PAGE, re.MULTILINE)
