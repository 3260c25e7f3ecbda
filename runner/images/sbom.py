"""Write software bills of materials, CycloneDX JSON: of an image's Python and Debian packages, of the tool's own.

`python -m runner.images.sbom` prints that of the tool: the packages in the environment that it is installed in.
"""

import importlib.metadata
import json
from collections.abc import Iterator, Sequence
from typing import Any

from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from bench.errors import UserError
from bench.foreign_json import decode_json
from runner.images.docker import PROGRAM_SECONDS, read_image_id, run_docker
from runner.terminal_text import echo

# Run in the image itself: what is installed counts, not what a lock says should be.
LIST_PYTHON = (
    "python",
    "-c",
    "import importlib.metadata as m, json; "
    "print(json.dumps(sorted({(d.metadata['Name'], d.version) for d in m.distributions()})))",
)
RUN = ("run", "--rm", "--network", "none")
LIST_DEBIAN = ("dpkg-query", "--show", "--showformat", "${Package} ${Version} ${Architecture}\\n")
DISTRIBUTION = "debian-12"
TOOL = "benchmatrix"


def describe_image(name: str) -> str:
    """Return the bill of materials of a built image as JSON, from what the image itself lists."""
    python_packages, debian_packages = (
        run_docker(
            *("run", "--rm", "--network", "none", "--entrypoint", words[0], name, *words[1:]),
            limit_seconds=PROGRAM_SECONDS,
        )
        for words in (LIST_PYTHON, LIST_DEBIAN)
    )
    return format_bom(name, read_image_id(name), python_packages, debian_packages)


def format_bom(image: str, digest: str, python_packages: str, debian_packages: str) -> str:
    """Return the bill of materials of an image as JSON.

    `digest`: the image's id. `python_packages`, `debian_packages`: what LIST_PYTHON and LIST_DEBIAN print in the image.
    UserError where they print something else.
    """
    name, _, tag = image.rpartition(":")
    try:
        components = [*_read_python(python_packages), *_read_debian(debian_packages)]
    except (TypeError, ValueError) as error:
        raise UserError(f"docker run {image}: printed something else than the packages in it ({error})") from error
    root = Component(
        name=name,
        version=tag,
        type=ComponentType.CONTAINER,
        purl=PackageURL("oci", name=name.rpartition("/")[2], version=digest, qualifiers={"tag": tag}),
    )
    return _format(root, components)


def describe_tool() -> str:
    """Return the bill of materials of the installed tool as JSON: every distribution of this environment."""
    found = {(one.metadata["Name"], one.version) for one in importlib.metadata.distributions()}
    root = _make_python(TOOL, importlib.metadata.version(TOOL))
    root.type = ComponentType.APPLICATION
    return _format(root, [_make_python(name, version) for name, version in sorted(found) if name != TOOL])


def _format(root: Component, components: Sequence[Component]) -> str:
    bom = Bom(components=components)
    bom.metadata.component = root
    bom.register_dependency(root, bom.components)
    document: dict[str, Any] = json.loads(JsonV1Dot6(bom).output_as_string())
    return json.dumps(document, indent=1)


def _read_python(text: str) -> Iterator[Component]:
    found = decode_json(text)
    if not isinstance(found, list):
        raise ValueError("expected a list of packages")
    for package in found:
        if not isinstance(package, list) or len(package) != 2 or not all(map(_is_word, package)):
            raise ValueError("expected name and version of each package, two texts")
        name, version = package
        yield _make_python(name, version)


def _is_word(value: object) -> bool:
    """Return whether a value is a text that can be a name or a version: not empty, all of it visible."""
    return isinstance(value, str) and value.isprintable() and value.strip() != ""


def _make_python(name: str, version: str) -> Component:
    return _make_library(name, version, PackageURL("pypi", name=name.lower().replace("_", "-"), version=version))


def _read_debian(text: str) -> Iterator[Component]:
    for line in text.splitlines():
        name, version, architecture = line.split()
        if not line.isprintable():
            raise ValueError("expected names and versions that can be printed")
        qualifiers = {"arch": architecture, "distro": DISTRIBUTION}
        yield _make_library(name, version, PackageURL("deb", "debian", name, version, qualifiers=qualifiers))


def _make_library(name: str, version: str, purl: PackageURL) -> Component:
    return Component(name=name, version=version, type=ComponentType.LIBRARY, purl=purl, bom_ref=str(purl))


if __name__ == "__main__":
    echo(describe_tool())
