"""Find numbers in a template that somebody typed instead of having them generated from results.

The rule: every number in the text of a page comes from an expression of its template, and an expression has numbers
only where it says which rows are meant. What is typed all the same (dates, sizes of the configuration, figures that
the page withdraws) stands in the page's list of typed phrases, to be reviewed there.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from jinja2 import Environment, nodes

WORDS = (
    "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|"
    "nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|dozen|hundred|thousand|million|billion|"
    "twice|thrice|double|doubled|triple|half|halved|third|thirds|quarter|quarters|tenth|tenths|percent|"
    "(?:two|three|four|five|six|seven|eight|nine|ten|hundred|thousand)-?fold"
)
# A digit inside a name (VGG16, fp32, H200) is no number; a date, a version or a factor (x2) is, and so is a fraction.
NUMBER = re.compile(rf"(?<![A-Za-z0-9_])x?\d[\d.,:]*|[¼-¾⅐-⅞]|\b(?:{WORDS})\b", re.IGNORECASE)
# The address of a link is no text of the page. An address has no spaces: `[time](64 ms)` is shown as it stands.
LINK_TARGET = re.compile(r"\]\([^)\s]*\)")
# The one method whose argument, a condition on columns, says which rows are meant; others take such by keyword.
SELECTING_METHOD = "query"
CONTEXT = 30


def list_typed_numbers(template: str, typed: Sequence[str]) -> list[str]:
    """Return each number of the template that neither an expression makes nor `typed` lists, with the text around."""
    text = remove_phrases(read_text(template), typed)
    found = [show_context(text, match) for match in NUMBER.finditer(text)]
    return found + [f"{{{{ {constant} }}}}" for constant in list_shown_constants(template)]


def list_unused_phrases(template: str, typed: Sequence[str]) -> list[str]:
    """Return the phrases that the text of the template does not hold: a list that is too long hides mistakes."""
    text = read_text(template)
    return [phrase for phrase in typed if not make_pattern(phrase).search(text)]


def read_text(template: str) -> str:
    """Return what the template says outside its expressions and comments, in one line; an expression is a `{}`."""
    tokens = Environment().lex(template)
    parts = (_read_token(kind, value) for _, kind, value in tokens)
    return " ".join(LINK_TARGET.sub("]", "".join(parts)).split())


def remove_phrases(text: str, phrases: Iterable[str]) -> str:
    """Return `text` without the phrases, the longest first, so that a part of one does not hide the rest."""
    for phrase in sorted(phrases, key=len, reverse=True):
        text = make_pattern(phrase).sub("_", text)
    return text


def make_pattern(phrase: str) -> re.Pattern[str]:
    """Return a pattern that matches the phrase as whole words: `batch 6` is not in `batch 64`."""
    return re.compile(rf"(?<![\w.,-]){re.escape(' '.join(phrase.split()))}(?!\w|[.,]\d)")


def show_context(text: str, match: re.Match[str]) -> str:
    """Return the number with the text around it."""
    return f"...{text[max(0, match.start() - CONTEXT) : match.end() + CONTEXT]}..."


def list_shown_constants(template: str) -> Iterator[object]:
    """Yield constants with a number that an expression shows or keeps in a variable, those that select rows aside."""
    for node in _list_shown(Environment().parse(template)):
        yield from (value for value in _list_constants(node) if NUMBER.search(str(value)))


def _read_token(kind: str, value: str) -> str:
    if kind == "data":
        return value
    return "{}" if kind == "variable_begin" else ""


def _list_shown(template: nodes.Template) -> Iterator[nodes.Node]:
    """Yield the expressions whose value the page shows, or gives a name under which it can be shown."""
    yield from template.find_all((nodes.Output, nodes.Assign))
    yield from (loop.iter for loop in template.find_all(nodes.For))
    for named in template.find_all(nodes.With):
        yield from named.values
    for macro in template.find_all(nodes.Macro):
        yield from macro.defaults


def _list_constants(node: nodes.Node) -> Iterator[object]:
    """Yield the constants under `node`, those that select rows aside: keyword arguments, a query and subscripts."""
    if isinstance(node, nodes.Const):
        yield node.value
    is_query = isinstance(node, nodes.Call) and getattr(node.node, "attr", "") == SELECTING_METHOD
    for child in node.iter_child_nodes():
        if isinstance(node, nodes.Call) and (isinstance(child, nodes.Keyword) or (is_query and child is not node.node)):
            continue
        if isinstance(node, nodes.Getitem) and child is node.arg:
            continue
        yield from _list_constants(child)
