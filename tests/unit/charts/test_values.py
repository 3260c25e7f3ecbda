"""The chart's values: what is wrong fails with its path, everything is described, what is made of it is in step."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import helm_python
import pytest
import yaml

from chart import CHART, make_values, render

SCHEMA = json.loads((CHART / "values.schema.json").read_text())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"nigth": {}}, "at '': additional properties 'nigth' not allowed"),
        ({"night__schedul": "x"}, "at '/night': additional properties 'schedul' not allowed"),
        ({"night__schedule": "at two"}, "at '/night/schedule': 'at two' does not match pattern"),
        ({"night__deadlineSeconds": 0}, "at '/night/deadlineSeconds': minimum: got 0, want 1"),
        ({"matrix": "nightli"}, "at '/matrix': value must be one of 'nightly'"),
        ({"customMatrix": {"axes": {}}}, "at '/customMatrix': missing property 'name'"),
        ({"customMatrix": {"name": "x", "axes": {"model": ["conv7"]}}}, "at '/customMatrix/axes/model/0': value must"),
        ({"customMatrix": {"name": "x", "axes": {"models": []}}}, "at '/customMatrix/axes': additional properties"),
        ({"customMatrix": {"name": "x", "axes": {"model": ["conv6"]}, "include": [{"repeat": 1}]}}, "include/0"),
        ({"profile__pool": {}}, "at '/profile': additional properties 'pool' not allowed"),
        ({"profile__extends": "gce"}, "at '/profile/extends': value must be one of 'eks', 'gke', 'kind'"),
        ({"profile__namespace": "mine"}, "at '/profile': additional properties 'namespace' not allowed"),
        (
            {"profile__pools": {"cpu": {"cpus": "four"}}},
            "at '/profile/pools/cpu/cpus': got string, want null or integer",
        ),
        ({"image__tag": "latest"}, "at '/image/tag': 'not' failed"),
        ({"store__url": "bucket/prefix"}, "at '/store/url': 'bucket/prefix' does not match pattern"),
        ({"runner__resources": {"request": {}}}, "at '/runner/resources': additional properties 'request' not allowed"),
        (
            {"runner__tolerations": [{"operator": "exists"}]},
            "at '/runner/tolerations/0/operator': value must be one of",
        ),
        ({"networkPolicy__store": {"cidrs": ["any"]}}, "at '/networkPolicy/store/cidrs/0': 'any' does not match"),
    ],
    ids=lambda value: json.dumps(value) if isinstance(value, dict) else "",
)
def test_a_wrong_value_fails_with_its_path(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(helm_python.HelmValuesError, match=re.escape(message)):
        render(make_values(**changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"image__repository": ""}, "image.repository: is empty; name where"),
        ({"image__tag": ""}, "image.tag: is empty, and image.digest as well"),
        ({"store__url": ""}, "store.url: is empty; name the bucket and a prefix of this release's own"),
        ({"profile": {}}, "profile: is empty; say what the cluster is like"),
        ({"runner__serviceAccount": {"create": False}}, "runner.serviceAccount.name: is empty"),
        ({"cells__serviceAccount": {"create": False}}, "cells.serviceAccount.name: is empty"),
    ],
    ids=lambda value: json.dumps(value) if isinstance(value, dict) else "",
)
def test_what_is_needed_and_missing_is_said(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(helm_python.HelmRenderError, match=re.escape(message)):
        render(make_values(**changes))


def walk(schema: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(schema, dict):
        yield path, schema
        for key, part in schema.items():
            yield from walk(part, f"{path}/{key}")


def test_no_object_of_the_schema_takes_unknown_keys() -> None:
    open_ones = [
        path for path, part in walk(SCHEMA) if "properties" in part and part.get("additionalProperties") is not False
    ]
    assert [] == [path for path in open_ones if "type" not in path.rpartition("/")[2]]


def test_every_value_is_described_and_has_a_default() -> None:
    source = yaml.safe_load((CHART / "values.schema.yaml").read_text())
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())

    def compare(schema: dict[str, Any], values: dict[str, Any], path: str) -> None:
        assert set(values) == set(schema) - {"global"}, path
        for key, part in schema.items():
            resolved = source["$defs"][part["$ref"].rpartition("/")[2]] | part if "$ref" in part else part
            assert resolved.get("description"), f"{path}.{key}"
            if "properties" in resolved and key not in ("resources", "global"):
                compare(resolved["properties"], values[key], f"{path}.{key}")

    compare(source["properties"], defaults, "")


def test_what_is_made_of_the_schema_is_in_step() -> None:
    program = CHART.parent / "make_schema.py"
    done = subprocess.run([sys.executable, program, "--check"], capture_output=True, text=True, cwd=CHART.parents[1])
    assert (0, "") == (done.returncode, done.stderr)
