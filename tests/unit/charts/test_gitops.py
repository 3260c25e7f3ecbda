"""The chart from Git and from a registry: the same values give the same manifests."""

import re
import tarfile
from pathlib import Path
from typing import Any

import helm_python
import pytest
import yaml

from chart import CHART, NEEDED, RELEASE, find, make_values, parse, render, render_texts

EXAMPLES = CHART / "examples"
TEMPLATES = sorted(path for path in (CHART / "templates").rglob("*") if path.is_file())
# Functions of Helm and Sprig that give another answer each time, or another one in another cluster:
# https://helm.sh/docs/chart_template_guide/function_list/
UNSTABLE = re.compile(
    r"\b(lookup|now|ago|unixEpoch|uuidv4|shuffle|getHostByName|rand[A-Za-z]+|gen[A-Z][A-Za-z]*|buildCustomCert"
    r"|bcrypt|htpasswd|derivePassword|encryptAES|env|expandenv)\b"
)


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: str(path.relative_to(CHART)))
def test_no_template_asks_for_anything_but_its_values(path: Path) -> None:
    actions = " ".join(re.findall(r"\{\{(?!-?\s*/\*)(.*?)\}\}", path.read_text(encoding="utf-8"), re.DOTALL))
    assert UNSTABLE.findall(re.sub(r'"(?:[^"\\]|\\.)*"|`[^`]*`', '""', actions)) == []


def test_a_store_for_trying_needs_keys_and_the_message_says_how_to_make_them() -> None:
    values = make_values(trialStore__enabled=True)
    values["store"]["secret"] = ""
    with pytest.raises(Exception, match=r"store\.secret: is empty; trialStore takes its keys from that Secret"):
        render(values)


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


def test_artifact_hub_is_told_which_images_the_chart_names() -> None:
    notes = yaml.safe_load((CHART / "Chart.yaml").read_text())["annotations"]
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert [image["image"] for image in yaml.safe_load(notes["artifacthub.io/images"])] == [
        values["trialStore"]["image"]
    ]


def test_the_package_renders_as_the_folder_does_and_has_the_made_schema_alone(tmp_path: Path) -> None:
    archive = Path(helm_python.package(CHART, destination=tmp_path))
    with helm_python.Chart.load_archive(archive.read_bytes()) as chart:
        assert chart.render(NEEDED, name=RELEASE, namespace="team-a") == render_texts(NEEDED, namespace="team-a")
    with tarfile.open(archive) as opened:
        names = set(opened.getnames())
    assert {"benchmatrix/README.md", "benchmatrix/values.schema.json"} <= names
    assert "benchmatrix/values.schema.yaml" not in names
