"""Write the answers of a run as lines for the terminal."""

from collections.abc import Iterable, Iterator

from collector.answers.answer import Answer, Kind

TITLES: dict[Kind, str] = {"finding": "What the run says", "unknown": "What it does not say"}


def list_lines(answers: Iterable[Answer]) -> Iterator[str]:
    """Yield the findings and then what is not known, each under its title; control characters are left out."""
    found = list(answers)
    for kind, title in TITLES.items():
        texts = [answer.text for answer in found if answer.kind == kind]
        if texts:
            yield f"{title}:"
            yield from (f"- {''.join(filter(str.isprintable, text))}" for text in texts)
