"""The exported JSON Schema accepts what is written and refuses wrong values."""

import json
from functools import cache
from typing import Any

import jsonschema
import pytest

from bench.schema import Document, Node
from factories import make_cell, make_failed_result, make_gpu_use, make_placement, make_result, make_run
from node_faults import make_node_fault
from raw_removals import make_raw_removal
from runner.commands.schema import export_schema
from tenancies import make_shared_result


@cache
def load_schema() -> dict[str, Any]:
    schema = export_schema("stored")
    jsonschema.Draft202012Validator.check_schema(schema)
    return schema


@pytest.mark.parametrize(
    ("name", "document"),
    [
        ("Result", make_result()),
        ("Result", make_failed_result(status="oom", message="zu groß: 5 €", stderr_tail="a\x00b\n\ttail")),
        (
            "Result",
            make_result(make_cell(device="gpu"), gpu_use=(make_gpu_use(),), step_seconds=(1e-9, 0.1 + 0.2, 12.3)),
        ),
        ("Result", make_shared_result()),
        ("Run", make_run()),
        ("NodeFault", make_node_fault(make_run())),
        ("RawRemoval", make_raw_removal([make_result()])),
        ("Placement", make_placement(make_result(), Node(zone="a", is_spot=True, num_cpus=8))),
    ],
)
def test_the_json_schema_accepts_what_is_written_and_it_is_read_as_it_was(name: str, document: Document) -> None:
    validator, good = (
        jsonschema.Draft202012Validator(load_schema() | {"$ref": f"#/$defs/{name}"}),
        json.loads(document.to_json()),
    )
    assert list(validator.iter_errors(good)) == []
    assert list(validator.iter_errors(good | {"unknown": 1})) != []
    assert list(validator.iter_errors({key: good[key] for key in good if key != "run_id"})) != []
    assert type(document).model_validate_json(document.to_json()) == document


def test_the_json_schema_names_every_document_and_describes_its_fields() -> None:
    definitions = export_schema("stored")["$defs"]
    documents = {"Cell", "Result", "Run", "Placement"}
    assert documents | {"Samples", "Phases", "Memory", "Environment", "Gpu", "Failure", "Node"} <= set(definitions)
    assert (
        definitions["Cell"]["properties"]["batch_size"]["description"]
        == "Samples of one step, over all GPUs: the global batch."
    )
