"""runner.images.sbom: the bill of materials names every package."""

import importlib.metadata
import json
import subprocess
import sys

import pytest

from bench.errors import UserError
from runner.images.sbom import format_bom


def test_the_bill_of_materials_names_every_package() -> None:
    python = json.dumps([["Typing_Extensions", "4.1"], ["numpy", "2.0"]])
    debian = "libc6 2.36-9+deb12u10 amd64\nbase-files 12.4 all\n"

    document = json.loads(format_bom("benchmatrix/jax:cpu-00", "sha256:ab", python, debian))

    assert document["bomFormat"] == "CycloneDX"
    assert tuple(document["metadata"]["component"][key] for key in ("name", "version")) == ("benchmatrix/jax", "cpu-00")
    assert {component["purl"] for component in document["components"]} == {
        "pkg:pypi/typing-extensions@4.1",
        "pkg:pypi/numpy@2.0",
        "pkg:deb/debian/libc6@2.36-9%2Bdeb12u10?arch=amd64&distro=debian-12",
        "pkg:deb/debian/base-files@12.4?arch=all&distro=debian-12",
    }


def test_the_bill_of_materials_of_the_tool_names_what_is_installed_with_it() -> None:
    done = subprocess.run([sys.executable, "-m", "runner.images.sbom"], capture_output=True, text=True, check=True)
    document = json.loads(done.stdout)

    component = document["metadata"]["component"]
    assert component["purl"] == f"pkg:pypi/benchmatrix@{importlib.metadata.version('benchmatrix')}"
    named = {found["purl"] for found in document["components"]}
    # A requirement of ours, and one of a requirement.
    for package in ("obstore", "benchmatrix-bench", "botocore"):
        assert f"pkg:pypi/{package}@{importlib.metadata.version(package)}" in named
    assert component["purl"] not in named


@pytest.mark.parametrize(
    "python",
    [
        "[[1, 2]]",
        '[[null, "1"]]',
        '[["a", null]]',
        '[["a", 1]]',
        '{"ab": 1}',
        '"ab"',
        '["ab"]',
        '[["", ""]]',
        '[[["x"], "1"]]',
        '[["a", "1", "2"]]',
        '[["a\\u0000", "1"]]',
        '[["\\ud800", "1"]]',
        "5",
        "null",
        "{",
    ],
)
def test_what_is_no_list_of_packages_is_an_error_that_names_the_image(python: str) -> None:
    with pytest.raises(UserError, match="^docker run a:b: printed something else than the packages in it"):
        format_bom("a:b", "sha256:ab", python, "")


@pytest.mark.parametrize("debian", ["bash", "a b c d", "\x1b[31m 1 amd64"])
def test_what_is_no_package_of_debian_is_an_error_that_names_the_image(debian: str) -> None:
    with pytest.raises(UserError, match="^docker run a:b: printed something else than the packages in it"):
        format_bom("a:b", "sha256:ab", "[]", debian)
