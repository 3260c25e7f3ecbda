"""Expansion against a reference that works on plain dicts, loop by loop."""

import itertools
import json
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from bench.schema import PlannedCell
from matrix_files import expand_or_refuse

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "batch_size": st.integers(1, 4),
    "seed": st.integers(0, 3),
    "num_steps": st.integers(5, 8),
    "min_seconds": st.sampled_from([0.5, 1, 1.0, 2.5]),
    "model": st.sampled_from(["conv6", "resnet18"]),
    "repeats": st.integers(1, 3),
}
REQUIRED = {"model": "conv6", "framework": "pytorch", "device": "cpu", "phase": "train", "batch_size": 16}
# Keys that may be axes and that a cell of its own may leave out, for they are not required.
OPTIONAL_AXES = ("seed", "num_steps", "min_seconds")


@st.composite
def draw_matrices(draw: st.DrawFn) -> dict[str, Any]:
    axes = {
        key: draw(st.lists(VALUES[key], min_size=1, max_size=3, unique=True))
        for key in draw(st.lists(st.sampled_from(OPTIONAL_AXES), min_size=1, unique=True))
    }
    on_axes = st.fixed_dictionaries({}, optional={key: st.sampled_from(values) for key, values in axes.items()})
    anything = st.fixed_dictionaries({}, optional=VALUES)
    others = st.fixed_dictionaries({}, optional={key: value for key, value in VALUES.items() if key not in axes})
    return {
        "name": "drawn",
        "axes": axes,
        "defaults": REQUIRED | draw(others),
        "exclude": draw(st.lists(on_axes.filter(bool), max_size=3)),
        "include": draw(st.lists((on_axes | anything).filter(bool), max_size=4)),
    }


def combine_by_hand(source: dict[str, Any]) -> list[dict[str, Any]]:
    """The rules of GitHub's documentation, word by word: axes, minus exclude, plus include; then defaults below all."""
    axes = source["axes"]
    originals = [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
    originals = [
        original
        for original in originals
        if not any(all(original[key] == entry[key] for key in entry) for entry in source["exclude"])
    ]
    extended = [dict(original) for original in originals]
    new = []
    for entry in source["include"]:
        was_added = False
        for original, combination in zip(originals, extended, strict=True):
            if not any(key in original and original[key] != value for key, value in entry.items()):
                combination.update(entry)
                was_added = True
        if not was_added:
            new.append(dict(entry))
    sizes = {"conv6": {"input_size": 32, "num_classes": 10}, "resnet18": {"input_size": 224, "num_classes": 1000}}
    below = {"repeats": 3, "timeout_seconds": 600} | source["defaults"]
    return [sizes[(below | made)["model"]] | below | made for made in extended + new]


def flatten(planned: PlannedCell, keys: set[str]) -> dict[str, Any]:
    return {key: value for key, value in (planned.cell.model_dump() | planned.model_dump()).items() if key in keys}


def count_distinct_cells(combinations: list[dict[str, Any]]) -> int:
    """Cells differ where anything but the repeats differs, the defaults of a cell filled in."""
    filled = [{"seed": 0, "num_steps": 30, "min_seconds": 2.0} | made for made in combinations]
    return len({tuple(sorted((key, value) for key, value in made.items() if key != "repeats")) for made in filled})


@given(draw_matrices())
@example(
    {"name": "x", "axes": {"seed": [1]}, "defaults": REQUIRED, "exclude": [], "include": [{"seed": 2}, {"seed": 2}]}
)
@settings(max_examples=200)
def test_expansion_agrees_with_the_reference(source: dict[str, Any]) -> None:
    expected = combine_by_hand(source)
    outcome = expand_or_refuse(json.dumps(source))
    if not expected or count_distinct_cells(expected) < len(expected):
        assert ("again, which" if expected else "leave no cell") in str(outcome)
    else:
        assert not isinstance(outcome, str), outcome
        assert [flatten(planned, set(made)) for planned, made in zip(outcome, expected, strict=True)] == expected
        assert len({planned.cell.cell_id for planned in outcome}) == len(expected)


@given(draw_matrices(), st.data())
def test_lists_in_entries_mean_the_entries_written_out(source: dict[str, Any], data: st.DataObject) -> None:
    with_lists: dict[str, list[dict[str, Any]]] = {"exclude": [], "include": []}
    written_out: dict[str, list[dict[str, Any]]] = {"exclude": [], "include": []}
    for kind in with_lists:
        for entry in source[kind]:
            lists = {
                key: data.draw(st.lists(st.sampled_from(values), min_size=1, unique=True))
                for key, values in source["axes"].items()
                if key in entry
            }
            with_lists[kind].append(entry | lists)
            combinations = itertools.product(*lists.values())
            written_out[kind] += [entry | dict(zip(lists, values, strict=True)) for values in combinations]
    expected = expand_or_refuse(json.dumps(source | written_out))
    outcome = expand_or_refuse(json.dumps(source | with_lists))
    assert expected == outcome or (isinstance(expected, str) and isinstance(outcome, str))
