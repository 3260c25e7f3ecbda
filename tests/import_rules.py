"""The contract type `allowed_imports` of import-linter: every package names all that it may import.

import-linter's own contracts forbid, so what nobody thought of passes them. Here a table in pyproject.toml says what is
allowed, and everything else fails: a package without a rule, an import that its rule does not name.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output
from importlinter.domain.fields import ValidationError

ROOTS = ("bench", "runner", "collector", "benchmatrix")
WHERE = "allowed_imports in pyproject.toml"


@dataclass(frozen=True)
class Rule:
    """What a package may import; the rule of a root package is about its __init__ alone."""

    package: str
    allowed: tuple[str, ...]

    def covers(self, module: str) -> bool:
        """Return whether the rule is about `module`."""
        return module == self.package if self.package in ROOTS else is_within(module, self.package)

    def allows(self, module: str) -> bool:
        """Return whether the package may import `module`: what the rule names, and what is its own."""
        return self.covers(module) or any(is_named_by(module, name) for name in self.allowed)


class RulesField(fields.Field[tuple[Rule, ...]]):
    """A table of packages and lists of packages."""

    def parse(self, raw_data: object) -> tuple[Rule, ...]:
        """Return the rules of the table."""
        if not isinstance(raw_data, dict) or not all(isinstance(allowed, list) for allowed in raw_data.values()):
            raise ValidationError('Expected a table of lines "package" = ["package", ...].')
        return tuple(Rule(package, tuple(allowed)) for package, allowed in raw_data.items())


class AllowedImports(Contract):
    """Check that modules import directly only what the rules of their packages allow, and the standard library."""

    type_name = "allowed_imports"

    allowed_imports = RulesField()

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Return the errors of the graph, as sentences."""
        rules: tuple[Rule, ...] = self.allowed_imports  # type: ignore[assignment]  # import-linter sets the parsed value
        errors = [*find_errors(graph, rules), *find_idle_entries(graph, rules)]
        return ContractCheck(kept=not errors, metadata={"errors": errors})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print one line per error."""
        for error in check.metadata["errors"]:
            output.print_error(error, bold=False)


def find_errors(graph: ImportGraph, rules: Sequence[Rule]) -> Iterator[str]:
    """Yield a sentence for each import that is not allowed and for each rule that is missing or says nothing."""
    for module in sorted(graph.modules):
        if module.split(".")[0] not in ROOTS:
            continue
        rule = find_rule(module, rules)
        if rule is None:
            yield f"{module}: it has no rule; add one to {WHERE}"
            continue
        for imported in sorted(graph.find_modules_directly_imported_by(module)):
            if not rule.allows(imported) and imported.split(".")[0] not in sys.stdlib_module_names:
                yield f"{module} imports {imported}; the rule of {rule.package} does not allow it ({WHERE})"
    for rule in rules:
        for package in (rule.package, *rule.allowed):
            if package.split(".")[0] in ROOTS and package not in graph.modules:
                yield f"{package}, in the rule of {rule.package}: there is no such package; take it out of {WHERE}"


def find_idle_entries(graph: ImportGraph, rules: Sequence[Rule]) -> Iterator[str]:
    """Yield a sentence for each package that a rule allows and none of the rule's modules imports."""
    used = set()
    for module in graph.modules:
        rule = find_rule(module, rules)
        if rule is None:
            continue
        for imported in graph.find_modules_directly_imported_by(module):
            if named := [name for name in rule.allowed if is_named_by(imported, name)]:
                used.add((rule.package, max(named, key=len)))
    for rule in rules:
        for name in rule.allowed:
            if (rule.package, name) not in used:
                yield f"{name}, in the rule of {rule.package}: nothing imports it; take it out of {WHERE}"


def find_rule(module: str, rules: Sequence[Rule]) -> Rule | None:
    """Return the most specific rule about `module`."""
    return max((rule for rule in rules if rule.covers(module)), key=lambda rule: len(rule.package), default=None)


def is_named_by(module: str, name: str) -> bool:
    """Return whether `name` in a list of allowed packages means `module`."""
    return module == name if name in ROOTS else is_within(module, name)


def is_within(module: str, package: str) -> bool:
    """Return whether `module` is `package` or inside it."""
    return module == package or module.startswith(f"{package}.")
