"""push_chart: what is packaged and pushed is the chart, byte for byte, and a version never changes."""

import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import helm_python
import pytest
import yaml

from chart import CHART, NEEDED, RELEASE, render_texts
from container_registry import serve_registry
from push_chart import PushError, push_chart


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[str]:
    with serve_registry(tmp_path) as address:
        yield f"{address}/team"


@pytest.fixture
def own_chart(tmp_path: Path) -> Path:
    """A copy of the chart that a test may change."""
    return Path(shutil.copytree(CHART, tmp_path / "benchmatrix"))


def render_archive(archive: Path) -> dict[str, str]:
    with helm_python.Chart.load_archive(archive.read_bytes()) as chart:
        return chart.render(NEEDED, name=RELEASE, namespace="team-a")


def test_a_packaged_chart_renders_as_the_folder_does(tmp_path: Path) -> None:
    archive = Path(helm_python.package(CHART, destination=tmp_path))

    assert archive.name == f"benchmatrix-{yaml.safe_load((CHART / 'Chart.yaml').read_text())['version']}.tgz"
    assert render_archive(archive) == render_texts(NEEDED, namespace="team-a")
    with tarfile.open(archive) as opened:
        names = set(opened.getnames())
    assert {"benchmatrix/README.md", "benchmatrix/values.schema.json"} <= names
    assert "benchmatrix/values.schema.yaml" not in names


def test_what_is_pushed_can_be_pulled_and_rendered_again(registry: str, tmp_path: Path) -> None:
    pushed = push_chart(registry, plain_http=True)

    assert pushed.is_new
    helm_python.pull(pushed.url, destination=tmp_path, version=pushed.version, plain_http=True)
    assert render_archive(tmp_path / f"benchmatrix-{pushed.version}.tgz") == render_texts(NEEDED, namespace="team-a")


def test_the_same_version_is_pushed_once_and_refused_with_other_files(registry: str, own_chart: Path) -> None:
    first = push_chart(registry, chart=own_chart, plain_http=True)
    again = push_chart(registry, chart=own_chart, plain_http=True)
    assert (again.is_new, again.digest) == (False, first.digest)

    (own_chart / "README.md").write_text("another\n")
    with pytest.raises(PushError, match=r"version 0\.1\.0 is there with other files.*raise `version`"):
        push_chart(registry, chart=own_chart, plain_http=True)

    text = (own_chart / "Chart.yaml").read_text()
    (own_chart / "Chart.yaml").write_text(text.replace("\nversion: 0.1.0\n", "\nversion: 0.2.0\n"))
    assert push_chart(registry, chart=own_chart, plain_http=True).is_new


def test_a_registry_that_does_not_answer_is_one_message() -> None:
    program = [sys.executable, str(CHART.parent / "push_chart.py"), "127.0.0.1:1/team", "--plain-http"]

    done = subprocess.run(program, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: oci://127.0.0.1:1/team/benchmatrix: ")
    assert done.stderr.count("\n") == 1
