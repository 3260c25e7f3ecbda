"""import_rules: what the table of allowed imports lets through, and what it reports."""

import pytest
from grimp import ImportGraph
from importlinter.domain.fields import ValidationError

from import_rules import Rule, RulesField, find_errors, find_idle_entries

RULES = [
    Rule("bench", ()),
    Rule("bench.schema", ("pydantic",)),
    Rule("bench.schema.cell", ("pydantic", "bench.store")),
    Rule("bench.store", ("bench.schema",)),
]


def make_graph(*imports: tuple[str, str]) -> ImportGraph:
    """Return a graph of these imports that has a module for each rule."""
    graph = ImportGraph()
    for module in {*(rule.package for rule in RULES), *(name for pair in imports for name in pair)}:
        graph.add_module(module)
    for importer, imported in imports:
        graph.add_import(importer=importer, imported=imported)
    return graph


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("bench.schema.run", "pydantic"),
        ("bench.schema.run", "bench.schema.document"),
        ("bench.schema", "pydantic.fields"),
        ("bench.schema.run", "json"),
        ("bench.schema.run", "os.path"),
        ("bench.store", "bench.schema.cell"),
        ("bench.schema.cell", "bench.store"),
        ("pydantic", "bench.store"),
    ],
)
def test_what_a_line_names_is_allowed(importer: str, imported: str) -> None:
    assert list(find_errors(make_graph((importer, imported)), RULES)) == []


@pytest.mark.parametrize(
    ("importer", "imported", "package"),
    [
        ("bench.schema.run", "bench.store", "bench.schema"),
        ("bench.schema.run", "pydantic_core", "bench.schema"),
        ("bench.schema.run", "bench", "bench.schema"),
        ("bench.schema.cell", "bench.schema.run", "bench.schema.cell"),
        ("bench.store", "pydantic", "bench.store"),
        ("bench", "bench.store", "bench"),
    ],
)
def test_what_no_line_names_is_reported(importer: str, imported: str, package: str) -> None:
    (error,) = find_errors(make_graph((importer, imported)), RULES)
    assert error.startswith(f"{importer} imports {imported}; the rule of {package} does not allow it")


def test_a_package_without_a_line_is_reported_even_where_its_parent_has_one() -> None:
    (error,) = find_errors(make_graph(("bench.new.part", "json")), RULES)
    assert error.startswith("bench.new.part: it has no rule; add one to ")


@pytest.mark.parametrize(
    "rule", [Rule("bench.gone", ()), Rule("bench.order", ("bench.gone",))], ids=["of it", "with it"]
)
def test_a_rule_that_names_a_package_that_does_not_exist_is_reported(rule: Rule) -> None:
    graph = make_graph(("bench.order", "json"))
    rules = [*RULES, Rule("bench.order", ()), rule]
    (error,) = find_errors(graph, rules)
    assert error.startswith(f"bench.gone, in the rule of {rule.package}: there is no such package; ")


def test_an_entry_that_nothing_needs_is_reported() -> None:
    imports = [("bench.schema.run", "pydantic"), ("bench.schema.cell", "bench.store"), ("bench.store", "bench.schema")]
    (error,) = find_idle_entries(make_graph(*imports), RULES)
    assert error.startswith("pydantic, in the rule of bench.schema.cell: nothing imports it; ")
    assert list(find_idle_entries(make_graph(*imports, ("bench.schema.cell", "pydantic.fields")), RULES)) == []


@pytest.mark.parametrize("table", ["bench.store", ["bench.store"], {"bench.store": "bench.schema"}])
def test_a_table_that_is_none_is_refused(table: object) -> None:
    with pytest.raises(ValidationError, match="Expected a table"):
        RulesField().parse(table)
