"""Say what the figures rest on: how many machines, and in what frameworks differ beside their names."""

from collector.analysis import Analysis
from collector.answers.answer import Said
from collector.answers.planning_rules import find_libraries
from collector.answers.unknown_rules import find_one_machine, list_lone_machines
from collector.facts import join_words
from collector.report.trust_line import TrustLine


def name_single_machines(analysis: Analysis) -> TrustLine | None:
    """Beware of kinds of GPU and CPU of which one card or host was measured."""
    nouns = dict.fromkeys(noun for noun, _ in list_lone_machines(analysis))
    doubt = f"only {join_words([f'one {noun}' for noun in nouns])} measured"
    return _take_said("Machines", find_one_machine(analysis), doubt, "environments")


def name_differing_libraries(analysis: Analysis) -> TrustLine | None:
    """Beware of ratios of frameworks that differ in libraries and settings, too."""
    return _take_said(
        "Frameworks",
        find_libraries(analysis),
        "frameworks differ, or may, in libraries and settings, too",
        "comparisons",
    )


def _take_said(title: str, said: list[Said], doubt: str, anchor: str) -> TrustLine | None:
    """Return what a rule of the answers says as a line, with the section that has more; nothing said is no line."""
    if not said:
        return None
    text = " ".join(one.text for one in said)
    return TrustLine(title=title, text=text, state="beware", doubt=doubt, anchor=anchor)
