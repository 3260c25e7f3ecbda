"""The chart from Git: the same values give the same manifests, and the examples for Argo CD and Flux install it."""

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from chart import CHART, find, make_values, parse, render, render_texts

EXAMPLES = CHART / "examples"
TEMPLATES = sorted(path for path in (CHART / "templates").rglob("*") if path.is_file())
# Functions of Helm and Sprig that give another answer each time, or another one in another cluster:
# https://helm.sh/docs/chart_template_guide/function_list/
UNSTABLE = re.compile(
    r"\b(lookup|now|ago|unixEpoch|uuidv4|shuffle|getHostByName|rand[A-Za-z]+|gen[A-Z][A-Za-z]*|buildCustomCert"
    r"|bcrypt|htpasswd|derivePassword|encryptAES|env|expandenv)\b"
)


def read_actions(text: str) -> str:
    """Return what the template engine evaluates, without comments and texts."""
    actions = " ".join(re.findall(r"\{\{(?!-?\s*/\*)(.*?)\}\}", text, re.DOTALL))
    return re.sub(r'"(?:[^"\\]|\\.)*"|`[^`]*`', '""', actions)


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: str(path.relative_to(CHART)))
def test_no_template_asks_for_anything_but_its_values(path: Path) -> None:
    assert UNSTABLE.findall(read_actions(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{{ $a := lookup "v1" "Secret" "" "x" }}', ["lookup"]),
        ("{{ randAlphaNum 20 | upper }}", ["randAlphaNum"]),
        ("{{ now | date }}", ["now"]),
        ('{{ $ca := genCA "x" 1 }}', ["genCA"]),
        ('{{ fail "unknown now; lookup" }}', []),
        ("{{- /* now */}}", []),
        ("now and env outside", []),
        ("{{ .Values.runner.environment }}", []),
    ],
)
def test_what_is_unstable_is_found(text: str, found: list[str]) -> None:
    assert UNSTABLE.findall(read_actions(text)) == found


ALL = make_values(
    trialStore__enabled=True,
    cells__namespace="cells",
    claims__enabled=True,
    profile__extends="gke",
    quota__hard={"pods": 10},
    metrics__enabled=True,
    runner__environment={"B": "1", "A": "2", "C": "3"},
    labels={"z": "1", "a": "2", "m": "3"},
)


@pytest.mark.parametrize("values", [make_values(), ALL], ids=["least", "all"])
def test_every_rendering_is_the_same_to_the_byte(values: dict[str, Any]) -> None:
    for first, second in pairwise(render_texts(values) for _ in range(5)):
        assert first == second


def test_a_store_for_trying_needs_keys_and_the_message_says_how_to_make_them() -> None:
    values = make_values(trialStore__enabled=True)
    values["store"]["secret"] = ""
    with pytest.raises(Exception, match=r"store\.secret: is empty; trialStore takes its keys from that Secret"):
        render(values)


def test_the_chart_makes_no_secret() -> None:
    assert "Secret" not in {manifest["kind"] for manifest in render(ALL)}


def read_example(name: str) -> list[dict[str, Any]]:
    return list(parse([(EXAMPLES / name).read_text(encoding="utf-8")]))


def find_version() -> str:
    version: str = yaml.safe_load((CHART / "Chart.yaml").read_text())["version"]
    return version


def test_argo_cd_installs_this_version_with_values_that_the_chart_takes() -> None:
    (application,) = read_example("argo-cd.yaml")
    spec = application["spec"]
    source = spec["source"]

    assert source["repoURL"].startswith("oci://")
    assert (source["path"], source["targetRevision"]) == (".", find_version())
    assert "ignoreDifferences" not in spec
    release, namespace = source["helm"]["releaseName"], spec["destination"]["namespace"]
    manifests = render(source["helm"]["valuesObject"], name=release, namespace=namespace)
    assert find(manifests, "CronJob")["metadata"]["namespace"] == namespace
    labels = spec["syncPolicy"]["managedNamespaceMetadata"]["labels"]
    assert labels == {"pod-security.kubernetes.io/enforce": "restricted"}


def test_flux_installs_this_version_with_the_same_values_as_argo_cd() -> None:
    namespace, repository, release = read_example("flux.yaml")

    assert namespace["metadata"]["labels"] == {"pod-security.kubernetes.io/enforce": "restricted"}
    assert repository["spec"]["ref"] == {"semver": find_version()}
    assert release["spec"]["chartRef"] == {
        "kind": repository["kind"],
        "name": repository["metadata"]["name"],
    }
    (application,) = read_example("argo-cd.yaml")
    assert release["spec"]["values"] == application["spec"]["source"]["helm"]["valuesObject"]
    assert release["spec"]["releaseName"] == application["spec"]["source"]["helm"]["releaseName"]
    assert {item["metadata"].get("namespace") for item in (repository, release)} == {namespace["metadata"]["name"]}


def test_nothing_that_a_run_makes_carries_the_label_by_which_argo_cd_prunes() -> None:
    """What the chart renders has it; the Jobs that the CronJob makes and the cells' Jobs have their own label."""
    cronjob = find(render(make_values()), "CronJob")
    job = cronjob["spec"]["jobTemplate"]
    for labels in (job["metadata"]["labels"], job["spec"]["template"]["metadata"]["labels"]):
        assert "app.kubernetes.io/instance" not in labels
        assert labels["benchmatrix/release"] == "sweeps"


def test_artifact_hub_is_told_what_the_chart_contains() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    notes = {key.removeprefix("artifacthub.io/"): text for key, text in chart["annotations"].items()}

    assert (notes["license"], notes["prerelease"]) == ("Apache-2.0", "true")
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert [image["image"] for image in yaml.safe_load(notes["images"])] == [values["trialStore"]["image"]]
    for change in yaml.safe_load(notes["changes"]):
        assert change["kind"] in {"added", "changed", "deprecated", "removed", "fixed", "security"}
        assert change["description"]
    assert all(link["url"].startswith("https://") for link in yaml.safe_load(notes["links"]))
    repository = yaml.safe_load((CHART.parent / "artifacthub-repo.yml").read_text())
    assert repository["ignore"] == []
