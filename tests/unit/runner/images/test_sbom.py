"""runner.images.sbom: the bill of materials names every package."""

import importlib.metadata
import json
import subprocess
import sys

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
