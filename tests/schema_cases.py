"""Documents for tests of the schema: documents with one value replaced, and a neighbour."""

import json
from typing import Any

from pydantic import BaseModel

from bench.schema import Neighbour


def make_neighbour(batch_size: int) -> Neighbour:
    """Return a neighbour that every framework can run."""
    return Neighbour(
        model="conv6",
        phase="infer",
        batch_size=batch_size,
        precision="fp32",
        mode="compiled",
        input_size=32,
        num_classes=10,
    )


def change_document(document: BaseModel, path: str, value: Any) -> str:
    """Return the document as JSON text with the value at `a.b.c` replaced or added."""
    *parents, key = path.split(".")
    content = json.loads(document.model_dump_json())
    inner = content
    for parent in parents:
        inner = inner[int(parent)] if isinstance(inner, list) else inner[parent]
    inner[int(key) if isinstance(inner, list) else key] = value
    return json.dumps(content)
