"""A console of rich that foreign texts cannot steer: no escape sequence and no change of direction is in them."""

from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from runner.terminal_text import replace_unprintable


class PrintableConsole(Console):
    """A console that replaces what is unprintable in texts; rich's own control codes are no texts.

    The one of rich leaves ESC and the marks that change a text's direction (U+202E) as they are.
    """

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Yield what the console would print, with a space for each unprintable character."""
        return map(_clean, super().render(renderable, options))


def _clean(segment: Segment) -> Segment:
    text, style, control = segment
    return segment if control or text.isprintable() else Segment(replace_unprintable(text), style)
