"""Look up the figures that a scenario names: the speeds and slowdowns of its kinds of GPUs."""

from collector.access.choices import KindFigures
from collector.access.scenario import Kind, Scenario
from runner.access_scenarios.slowdowns import state_slowdowns
from runner.yaml_files.node import Node


def look_up_figures(scenario: Scenario, tree: Node) -> dict[str, KindFigures]:
    """Return the figures of every kind by its name; YamlError, at its place in `tree`, where they cannot be had."""
    kinds = tree.find_nearest("kinds")
    return {name: _look_up_kind(kind, kinds.find_child(name) or kinds) for name, kind in scenario.kinds.items()}


def _look_up_kind(kind: Kind, node: Node) -> KindFigures:
    if kind.samples_per_second is None:
        from runner.access_scenarios.measured import read_measured_kind  # pandas takes a second to import

        return read_measured_kind(kind, node)
    return KindFigures(
        samples_per_second=kind.samples_per_second,
        origin="stated",
        source=kind.source or "",
        slowdowns=state_slowdowns(kind),
    )
