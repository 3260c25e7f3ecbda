"""runner.images.sbom: the bill of materials names every package."""

import json

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
