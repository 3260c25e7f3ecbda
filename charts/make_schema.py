"""Make values.schema.json and the table in README.md from values.schema.yaml and the models of the tool."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from runner.matrix import MATRIX_FILE
from runner.profiles import BUILTIN_PROFILES
from runner.profiles.model import Profile
from runner.sources import list_builtin_matrices

CHART = Path(__file__).parent / "benchmatrix"
SOURCE, SCHEMA, README = CHART / "values.schema.yaml", CHART / "values.schema.json", CHART / "README.md"
VALUES = CHART / "values.yaml"
BEGIN, END = "<!-- made by `make chart` from values.schema.yaml -->", "<!-- end -->"
OWN_PROFILE_KEYS = (
    "name",
    "namespace",
    "service_account",
    "service_account_annotations",
    "store_secret",
    "image_pull_secrets",
)
"""Keys of a profile that the chart says."""
OWN_GPU_KEYS = ("request", "device_class", "claim_prefix")
"""Keys of a profile's `gpu` that `claims` says."""
QUANTITY = "^[1-9][0-9]{0,14}(Ki|Mi|Gi|Ti|k|M|G|T)?$"
"""Of a profile, as in runner/kubernetes/names.py."""
IMAGE = "^[^\\s]+$"
"""No blanks; doctor checks the rest of an image's name."""

Schema = dict[str, Any]


def make_schema() -> Schema:
    schema: Schema = yaml.safe_load(SOURCE.read_text(encoding="utf-8"))
    require_defaults(schema, yaml.safe_load(VALUES.read_text(encoding="utf-8")), schema["$defs"])
    profile, definitions = make_profile_schema()
    schema["properties"]["profile"] |= profile
    schema["properties"]["matrix"] |= {"enum": list_builtin_matrices()}
    schema["$defs"] |= definitions | make_matrix_schema()
    return {"$comment": "made by `make chart` from values.schema.yaml"} | schema


def require_defaults(schema: Schema, defaults: Mapping[str, Any], definitions: Mapping[str, Schema]) -> None:
    """Require every key that has a default: a user's null takes it away, and the templates count on it."""
    schema["required"] = list(defaults)
    for key, part in schema.get("properties", {}).items():
        if key in defaults and key != "resources" and "properties" in resolve(part, definitions):
            require_defaults(part, defaults[key], definitions)


def resolve(schema: Schema, definitions: Mapping[str, Schema]) -> Schema:
    return definitions[schema["$ref"].rpartition("/")[2]] | schema if "$ref" in schema else schema


def make_profile_schema() -> tuple[Schema, dict[str, Schema]]:
    """Return the schema of `profile` and the definitions that it refers to: no key is needed, any may be null."""
    schema = Profile.model_json_schema(ref_template="#/$defs/profile{model}")
    definitions = {f"profile{name}": loosen(part) for name, part in schema.pop("$defs").items()}
    for key in OWN_GPU_KEYS:
        del definitions["profileGpus"]["properties"][key]
    definitions["profilePool"]["properties"]["memory"]["pattern"] = QUANTITY
    loosened = loosen(schema)
    for key in ("tmp_size", "shm_size"):
        loosened["properties"][key]["pattern"] = QUANTITY
    loosened["properties"]["gpu"]["anyOf"].insert(0, {"enum": ["T4", "L4", "A10G", "A100", "H100"]})
    # What is below is checked when the profile is read; doctor reads it.
    parts = {"metadata": {"type": ["object", "null"]}, "spec": {"type": ["object", "null"]}}
    loosened["properties"]["overlay"] |= {"properties": parts, "additionalProperties": False}
    # Argo CD would prune what carries its tracking label; the chart's own label is not the profile's to set.
    loosened["properties"]["labels"]["patternProperties"] = {"^(app[.]kubernetes[.]io/instance$|benchmatrix/)": False}
    loosened["properties"]["images"]["additionalProperties"]["additionalProperties"]["pattern"] = IMAGE
    loosened["properties"] = {
        "extends": {"enum": list(BUILTIN_PROFILES), "description": "A built-in profile that this one differs from."}
    } | {key: part for key, part in loosened["properties"].items() if key not in OWN_PROFILE_KEYS}
    del loosened["description"]  # that of values.schema.yaml is kept
    return loosened, definitions


def loosen(schema: Schema) -> Schema:
    """Return the schema of an object of which only what differs is said: null removes what another profile says."""
    left = {key: value for key, value in schema.items() if key not in ("title", "required")}
    if "properties" in left:
        left["properties"] = {key: allow_null(part) for key, part in left["properties"].items()}
    return left


def allow_null(schema: Schema) -> Schema:
    left = {key: value for key, value in schema.items() if key not in ("title", "default", "anyOf")}
    parts = [part for part in schema.get("anyOf", [{}]) if part != {"type": "null"}]
    if len(parts) != 1:
        raise AssertionError(f"several kinds of values: {parts}")
    found: Schema = left | parts[0]
    if isinstance(found.get("additionalProperties"), dict):
        found["additionalProperties"] = allow_null(found["additionalProperties"])
    if "enum" in found:
        found["enum"] = [*found["enum"], None]
    if "type" in found:
        return found | {"type": [found["type"], "null"]}
    description = found.pop("description", None)
    return {"anyOf": [found, {"type": "null"}]} | ({"description": description} if description else {})


def make_matrix_schema() -> dict[str, Schema]:
    """Return the definitions of a matrix as in a file: which keys and values there are, not which go together."""
    schema = strip(MATRIX_FILE.json_schema(ref_template="#/$defs/matrix{model}"))
    for name in ("Axes", "Neighbour"):  # what is empty there is refused after the model
        schema["$defs"][name]["minProperties"] = 1
    return {f"matrix{name}": part for name, part in schema.pop("$defs").items()} | {"matrix": schema}


def strip(part: Any) -> Any:
    """Return a part of a schema without what is not checked; `title` and so on are keys of a property's own too."""
    if not isinstance(part, dict):
        return part
    left = {key: value for key, value in part.items() if key not in ("title", "default") or isinstance(value, dict)}
    return {key: [strip(one) for one in value] if key == "anyOf" else strip(value) for key, value in left.items()}


def make_table() -> str:
    schema = yaml.safe_load(SOURCE.read_text(encoding="utf-8"))
    defaults = yaml.safe_load(VALUES.read_text(encoding="utf-8"))
    lines = ["| value | default | what it says |", "|---|---|---|"]
    for path, default, description in list_values(schema, defaults, schema["$defs"]):
        shown = json.dumps(default).replace("|", "\\|")
        lines.append(f"| `{path}` | `{shown}` | {description} |")
    return "\n".join(lines)


def list_values(
    schema: Schema, defaults: Mapping[str, Any], definitions: Mapping[str, Schema], prefix: str = ""
) -> Iterator[tuple[str, Any, str]]:
    """Yield path, default and description of every value that has a default, in the order of the schema."""
    for key, part in schema["properties"].items():
        if key not in defaults:
            continue
        resolved = resolve(part, definitions)
        if "properties" in resolved and key != "resources":
            yield from list_values(resolved, defaults[key], definitions, f"{prefix}{key}.")
            continue
        yield f"{prefix}{key}", defaults[key], resolved["description"]


def make_files() -> dict[Path, str]:
    readme = README.read_text(encoding="utf-8")
    table = f"{BEGIN}\n{make_table()}\n{END}"
    return {
        SCHEMA: json.dumps(make_schema(), ensure_ascii=False, indent=1) + "\n",
        README: re.sub(f"{re.escape(BEGIN)}.*{re.escape(END)}", lambda match: table, readme, flags=re.DOTALL),
    }


if __name__ == "__main__":
    for path, text in make_files().items():
        path.write_text(text, encoding="utf-8")
