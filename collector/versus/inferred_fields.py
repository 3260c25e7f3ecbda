"""Infer in which fields two sides differ besides those that they name, where there is no other reading."""

from collections.abc import Sequence
from typing import Any

from collector.versus.document import InferredField
from collector.versus.selections import describe_value

Row = dict[str, Any]

PROGRAM_FIELDS = ("framework", "mode")
"""With what a cell is computed: whoever names one of the two asks for programs, and a mode is that of its framework.
The other fields of a cell say what is computed; to let one of them differ unasked would answer another question."""


def infer_fields(rows_a: Sequence[Row], rows_b: Sequence[Row], named: set[str]) -> tuple[InferredField, ...]:
    """Return the fields of the program that no side names, and of which each has exactly one value, another one.

    `rows_a`, `rows_b`: the repeats of the sides; `named`: the fields of a cell that their conditions name.
    """
    if not named & set(PROGRAM_FIELDS):
        return ()
    found = []
    for name in PROGRAM_FIELDS:
        values = [{row[name] for row in rows} for rows in (rows_a, rows_b)]
        if name not in named and all(len(own) == 1 for own in values) and values[0] != values[1]:
            a, b = (describe_value(own.pop()) for own in values)
            found.append(InferredField(field=name, a=a, b=b))
    return tuple(found)
