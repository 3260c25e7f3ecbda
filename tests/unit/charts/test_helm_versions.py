"""Versions of Helm that drop the nulls of values are refused."""

import json
import re
import shutil
from pathlib import Path

import helm_python
import pytest

from chart import CHART, make_values, parse

NULL_KEEPERS = ["v3.18.6", "v3.19.4", "v3.19.6", "v3.20.1", "v4.1.3", "v4.2.3", "v4.2", "v4.1"]
NULL_DROPPERS = ["v3.19.5", "v3.20.0", "v4.0.0", "v4.0.5+gabc", "v4.1.2"]


def test_versions_of_helm_that_drop_nulls_are_refused(tmp_path: Path) -> None:
    """The engine of the tests has one version: so the rule is asked about others, in a copy of the chart."""
    chart = shutil.copytree(CHART, tmp_path / "benchmatrix")
    asked = json.dumps(NULL_KEEPERS + NULL_DROPPERS)
    rule = '{{- range fromJsonArray `%s` }}\n{{ . }}: {{ include "benchmatrix.dropsNulls" . | quote }}\n{{- end }}'
    (chart / "templates" / "asked.yaml").write_text(rule % asked)

    with helm_python.Chart.load(chart) as loaded:
        (answers,) = parse([loaded.render(make_values())["benchmatrix/templates/asked.yaml"]])

    assert answers == dict.fromkeys(NULL_KEEPERS, "") | dict.fromkeys(NULL_DROPPERS, "true")


def test_the_rule_about_versions_of_helm_holds_for_the_one_that_renders(tmp_path: Path) -> None:
    chart = shutil.copytree(CHART, tmp_path / "benchmatrix")
    config = chart / "templates" / "_config.tpl"
    config.write_text(config.read_text().replace(".Capabilities.HelmVersion.Version", '"v4.1.2"'))
    with (
        helm_python.Chart.load(chart) as loaded,
        pytest.raises(helm_python.HelmRenderError, match=re.escape("Helm v4.1.2 drops the nulls")),
    ):
        loaded.render(make_values())
