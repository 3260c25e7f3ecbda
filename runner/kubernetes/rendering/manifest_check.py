"""Check manifests against Kubernetes' published schemas."""

from collections.abc import Mapping
from typing import Any

from bench.errors import UserError
from runner.yaml_input import suggest_word

# The schemas that are checked against: clusters of a version before and after read the same fields.
KUBERNETES_VERSION = "1.36"
MAX_SHOWN_CHARACTERS = 300
"""How much is shown of the schema check's message, which quotes the value."""


_KINDS = {
    "integer": "a whole number",
    "number": "a number",
    "string": "a text",
    "boolean": "true or false",
    "array": "a list",
    "object": "keys with values",
}


def check_manifest(manifest: Mapping[str, Any], *, source: str) -> None:
    """Raise UserError if a manifest has an unknown key, lacks one or has a value of the wrong kind.

    `source` is the template's name in the message.
    """
    error = _find_error(manifest)
    if error is not None:
        path = ".".join([str(manifest.get("kind")), *map(str, error.path)])
        raise UserError(
            f"{source}: {path}: {_shorten(error)}; the value comes from the profile or the matrix: fix it there"
        )


def find_mistake(manifest: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the place of the first value that Kubernetes' schema refuses, as in `spec.volumes[0]`, and why."""
    error = _find_error(manifest)
    if error is None:
        return None
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.path).removeprefix(".")
    if error.validator == "additionalProperties":
        known = list(error.schema["properties"])
        unknown = next(key for key in error.instance if key not in known)
        return f"{place}.{unknown}", f"unknown key; {suggest_word(unknown, known)}"
    if error.validator == "type":
        kinds = [error.validator_value] if isinstance(error.validator_value, str) else error.validator_value
        expected = " or ".join(_KINDS[kind] for kind in kinds if kind != "null")
        return place, f"found {str(error.instance)[:MAX_SHOWN_CHARACTERS]!r}, expected {expected}"
    return place, _shorten(error)


def _find_error(manifest: Mapping[str, Any]) -> Any:
    """Return the schema check's error, or None."""
    import kubernetes_validate  # here: every command would wait for it, and few check a manifest

    try:
        kubernetes_validate.validate(dict(manifest), KUBERNETES_VERSION, strict=True)
    except kubernetes_validate.ValidationError as error:
        return error
    return None


def _shorten(error: Any) -> str:
    return " ".join(error.message[:MAX_SHOWN_CHARACTERS].split())
