"""Check manifests against Kubernetes' published schemas."""

from collections.abc import Mapping
from typing import Any

import kubernetes_validate

from bench.errors import UserError

# The schemas that are checked against: clusters of a version before and after read the same fields.
KUBERNETES_VERSION = "1.36"
MAX_SHOWN_CHARACTERS = 300
"""How much is shown of the schema check's message, which quotes the value."""


def check_manifest(manifest: Mapping[str, Any], *, source: str) -> None:
    """Raise UserError if a manifest has an unknown key, lacks one or has a value of the wrong kind.

    `source` is the template's name in the message.
    """
    try:
        kubernetes_validate.validate(dict(manifest), KUBERNETES_VERSION, strict=True)
    except kubernetes_validate.ValidationError as error:
        path = ".".join([str(manifest.get("kind")), *map(str, error.path)])
        words = " ".join(error.message[:MAX_SHOWN_CHARACTERS].split())
        raise UserError(
            f"{source}: {path}: {words}; the value comes from the profile or the matrix: fix it there"
        ) from None
