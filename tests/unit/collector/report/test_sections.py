"""Every table has a place in the report."""

import importlib
import inspect
import pkgutil
from collections.abc import Callable
from functools import partial
from typing import get_type_hints

import collector.tables
from collector.comparisons import COMPARISONS
from collector.report.sections import SECTIONS
from collector.tables.comparisons import make_comparison_table
from collector.tables.table import Table


def list_table_makers() -> set[Callable[..., Table | None]]:
    """The public functions of collector.tables that return a table of a run, or None where it has none."""
    modules = [
        importlib.import_module(f"collector.tables.{info.name}")
        for info in pkgutil.iter_modules(collector.tables.__path__)
    ]
    return {
        function
        for module in modules
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__ and not name.startswith("_")
        if get_type_hints(function).get("return") == Table | None
    }


def list_placed() -> list[Callable[..., Table | None]]:
    """The functions that the sections of the report make their tables with."""
    return [make for section in SECTIONS for make in section.tables]


def test_every_table_stands_in_a_section() -> None:
    makers = list_table_makers()
    placed = {make.func if isinstance(make, partial) else make for make in list_placed()}
    assert len(makers) >= 11
    forgotten = [f"{make.__module__}.{make.__name__}" for make in makers - placed]
    assert forgotten == [], "tables in no section: name each in SECTIONS of collector/report/sections.py"


def test_every_comparison_stands_in_a_section() -> None:
    compared = [
        make.args[0] for make in list_placed() if isinstance(make, partial) and make.func is make_comparison_table
    ]
    assert compared == list(COMPARISONS)


def test_no_table_stands_in_two_sections_and_no_anchor_is_used_twice() -> None:
    functions = [make for make in list_placed() if not isinstance(make, partial)]
    assert len(functions) == len(set(functions))
    anchors = [section.anchor for section in SECTIONS]
    assert len(anchors) == len(set(anchors))
