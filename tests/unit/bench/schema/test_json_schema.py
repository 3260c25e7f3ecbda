"""The exported JSON Schema accepts what is written and refuses wrong values."""

import json

import jsonschema
import pytest
from pydantic import BaseModel

from bench.schema import Node, export_json_schema
from factories import make_cell, make_failed_result, make_placement, make_result, make_run
from node_faults import make_node_fault
from raw_removals import make_raw_removal
from tenancies import make_record, make_shared_result, make_window


def make_validator(name: str) -> jsonschema.Draft202012Validator:
    schema = export_json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema | {"$ref": f"#/$defs/{name}"})


@pytest.mark.parametrize(
    ("name", "document"),
    [
        ("Cell", make_cell()),
        ("Result", make_result()),
        ("Result", make_result(make_cell(device="gpu"), device_step_seconds=(0.1, 0.1, 0.1))),
        ("Result", make_failed_result(status="oom")),
        ("Result", make_shared_result()),
        ("TenantRecord", make_record()),
        ("CommonWindow", make_window()),
        ("Run", make_run()),
        ("Placement", make_placement(make_result())),
        ("NodeFault", make_node_fault(make_run())),
        ("NodeFault", make_node_fault(make_run(), node_name=None)),
        ("RawRemoval", make_raw_removal([make_result()])),
        ("Placement", make_placement(make_result(), Node(zone="a", is_spot=True, num_cpus=8))),
    ],
)
def test_the_json_schema_accepts_what_is_written(name: str, document: BaseModel) -> None:
    make_validator(name).validate(json.loads(document.model_dump_json()))


def test_the_json_schema_names_every_document_and_describes_its_fields() -> None:
    definitions = export_json_schema()["$defs"]
    documents = {"Cell", "Result", "Run", "Placement"}
    assert documents | {"Samples", "Phases", "Memory", "Environment", "Gpu", "Failure", "Node"} <= set(definitions)
    assert (
        definitions["Cell"]["properties"]["batch_size"]["description"]
        == "Samples of one step, over all GPUs: the global batch."
    )
