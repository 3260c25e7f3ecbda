"""Write the answers of a run as lines for the terminal."""

from collections.abc import Iterable, Iterator

from collector.answers.answer import Answer, Kind
from collector.facts import count_things

TITLES: dict[Kind, str] = {"finding": "What the run says", "unknown": "What it does not say"}


def list_lines(answers: Iterable[Answer], *, measured: str = "", is_short: bool = False) -> Iterator[str]:
    """Yield what was measured, the findings and what is not known, with titles; control characters are left out.

    `measured`: what the names of cells leave out, as `describe_measured` has it. `is_short`: what a reader of this run
    need not know at once is counted: the report has it.
    """
    if measured:
        yield f"Measured: {''.join(filter(str.isprintable, measured))}"
    found = list(answers)
    shown = [answer for answer in found if answer.is_on_terminal or not is_short]
    for kind, title in TITLES.items():
        texts = [answer.text for answer in shown if answer.kind == kind]
        if texts:
            yield f"{title}:"
            yield from (f"- {''.join(filter(str.isprintable, text))}" for text in texts)
    if len(shown) < len(found):
        yield f"The report has {count_things(len(found) - len(shown), 'more sentence')}, and all tables."
