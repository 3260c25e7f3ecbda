"""Say what the figures rest on: how many machines, and in what frameworks differ beside their names."""

from collector.analysis import Analysis
from collector.answers.answer import Said
from collector.answers.planning_rules import find_libraries
from collector.answers.unknown_rules import find_one_machine
from collector.report.trust_line import TrustLine


def name_single_machines(analysis: Analysis) -> TrustLine | None:
    """Beware of kinds of GPU and CPU of which one card or host was measured."""
    return _take_said("Machines", find_one_machine(analysis), "environments")


def name_differing_libraries(analysis: Analysis) -> TrustLine | None:
    """Beware of ratios of frameworks that differ in libraries and settings, too."""
    return _take_said("Frameworks", find_libraries(analysis), "comparisons")


def _take_said(title: str, said: list[Said], anchor: str) -> TrustLine | None:
    """Return what a rule of the answers says as a line, with the section that has more; nothing said is no line."""
    if not said:
        return None
    return TrustLine(title=title, text=" ".join(one.text for one in said), state="beware", anchor=anchor)
