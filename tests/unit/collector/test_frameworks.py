"""Every framework of the registry in everything that the collector keeps by framework."""

from bench.registry import FRAMEWORKS
from collector import comparisons
from collector.cell_words import FRAMEWORK_NAMES
from collector.report.charts import COLOURS_BY_FRAMEWORK, FRAMEWORK_COLOURS


def test_every_framework_has_a_colour_of_its_own_and_is_compared() -> None:
    assert list(COLOURS_BY_FRAMEWORK) == list(FRAMEWORKS)
    assert len(set(COLOURS_BY_FRAMEWORK.values())) == len(FRAMEWORKS)
    scale = FRAMEWORK_COLOURS.to_dict()
    assert scale["domain"] == list(FRAMEWORK_NAMES.values())
    assert scale["range"][0] == "#D55E00"  # PyTorch's, as in reports that are published
    assert {name for pair in comparisons.FRAMEWORKS.pairs for name in pair} == set(FRAMEWORKS)
