"""PyYAML's composer, bounded in depth and size, and with the place of every alias."""

from typing import Any

import yaml

MAX_NODES = 250_000
"""Values in a file, those behind an alias counted each time it is used."""
MAX_DEPTH = 20
"""Levels of lists and mappings; a matrix has four, a profile seven."""


class LimitError(Exception):
    """A document is nested too deep or has too many values. `line` counts from 1."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.message, self.line = message, line


class AliasNode(yaml.Node):
    """The use of an anchor. PyYAML would put the anchored node itself in its place, and lose where the alias stands."""

    id = "alias"

    def __init__(self, event: Any, target: yaml.Node | None) -> None:
        super().__init__("", event.anchor, event.start_mark, event.end_mark)
        self.name = str(event.anchor)
        self.target = target
        """The anchored node, of which this may be a part. None: no such anchor stands before the alias."""


class Composer(yaml.SafeLoader):
    """Composes the nodes of one document; nothing is expanded, so the nodes form a tree.

    The parser of PyYAML keeps a stack of its own, but its composer recurses: so depth is bounded while composing.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.depth = 0
        self.num_nodes = 0
        self.explicit_tags: dict[int, str] = {}
        """Tags written in the file, by `id` of the node: PyYAML mixes them with those that it guesses."""

    def compose_node(self, parent: Any, index: Any) -> yaml.Node | None:
        """Compose the next node; LimitError beyond MAX_DEPTH and MAX_NODES."""
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent):
            self.get_event()  # type: ignore[no-untyped-call]
            return AliasNode(event, self.anchors.get(event.anchor))
        self._count(event)
        self.anchors.pop(event.anchor, None)  # YAML lets an anchor be given again, PyYAML's composer does not
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        if event.tag is not None:
            self.explicit_tags[id(node)] = event.tag
        return node

    def _count(self, event: yaml.Event) -> None:
        self.num_nodes += 1
        if self.depth >= MAX_DEPTH:
            raise LimitError(f"nested more than {MAX_DEPTH} levels deep; write it flatter", line_of(event))
        if self.num_nodes > MAX_NODES:
            raise LimitError(f"more than {MAX_NODES:,} values; write less", line_of(event))


def line_of(place: yaml.Event | yaml.Node) -> int:
    """Return the line where an event or a node begins, counted from 1."""
    assert place.start_mark is not None  # PyYAML's parser sets it
    return place.start_mark.line + 1
