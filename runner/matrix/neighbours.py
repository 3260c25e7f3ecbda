"""Resolve the neighbours that a matrix file names: what the other tenants of a cell run."""

from collections.abc import Mapping
from typing import Any

from bench.registry import MODELS
from bench.schema import Cell, Neighbour
from runner.matrix.definition import Setting
from runner.matrix.values import NEIGHBOUR_KEYS
from runner.yaml_files.errors import ErrorKind
from runner.yaml_files.wording import suggest_word


def resolve_neighbour(
    setting: Setting, definitions: Mapping[str, Mapping[str, Setting]], fields: Mapping[str, Any]
) -> dict[str, Any]:
    """Return every field of the neighbour that a cell with these `fields` names; YamlError for an unknown name.

    What the definition does not give is the cell's; of another model, the input size is that model's own, and so is the
    number of classes unless both models have classes.
    """
    name = str(setting.value)
    if name not in definitions:
        message = f"found '{name}', expected a name under 'neighbours'"
        hint = suggest_word(name, list(definitions)) if definitions else "the matrix defines none; add it there"
        raise setting.node.error(ErrorKind.NOT_FOUND, f"{message}; {hint}")
    given = {key: found.value for key, found in definitions[name].items()}
    of_cell = {key: fields.get(key, Cell.model_fields[key].default) for key in NEIGHBOUR_KEYS}
    model = str(given.get("model", of_cell["model"]))
    if model != of_cell["model"]:
        spec = MODELS[model]
        of_cell["input_size"] = spec.input_size
        if spec.num_classes is None or of_cell["num_classes"] is None:
            of_cell["num_classes"] = spec.num_classes
    return of_cell | given


def name_neighbours(neighbours: Mapping[Neighbour, str]) -> dict[str, Any]:
    """Return `neighbours` of a matrix file in which each of these has its name."""
    return {name: neighbour.model_dump(mode="json") for neighbour, name in neighbours.items()}
