"""The sources of the images in, their names out, whose tags are the content.

Same sources, same tag: it is a hash of the Dockerfile, the locks, the packages that go in, and the build's arguments.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bench.registry import FRAMEWORKS
from bench.schema import Device, Framework
from runner.checkout import require_checkout

Flavour = Literal["cpu", "cuda"]
FLAVOURS: dict[Device, Flavour] = {"cpu": "cpu", "gpu": "cuda"}
LOCAL_REGISTRY = "benchmatrix"
CONTROL = "control"
"""Name of the image of runner and collector."""
TAG_DIGITS = 12
DEFAULT_BASE = "python:3.11-slim-bookworm"


@dataclass(frozen=True, kw_only=True)
class Image:
    """One image that this project builds."""

    name: str
    flavour: Flavour | None
    folder: str
    sources: tuple[str, ...]
    """Files and folders below the checkout that decide what is in it."""

    def name_arguments(self, arguments: Mapping[str, str]) -> dict[str, str]:
        """Return the build's arguments that this image heeds."""
        heeded = dict(arguments) | ({"FLAVOUR": self.flavour} if self.flavour else {})
        if self.name != "pytorch" or self.flavour != "cpu":
            heeded.pop("CPU_INDEX", None)
        return heeded


def list_images() -> Iterator[Image]:
    """Yield every image: one per framework and flavour, and that of the runner."""
    shared = ("images/bench/src", "images/bench/pyproject.toml", "images/bench/requirements-build.txt", ".dockerignore")
    for name, framework in FRAMEWORKS.items():
        folder = framework.image_folder
        for flavour in (FLAVOURS[device] for device in framework.devices):
            files = (f"{folder}/Dockerfile", f"{folder}/requirements-{flavour}.txt")
            yield Image(name=name, flavour=flavour, folder=folder, sources=(*files, *shared))
    control = ("images/benchmatrix/Dockerfile", "requirements.lock", "pyproject.toml", "README.md")
    packages = ("runner", "collector", "manifests")
    yield Image(name=CONTROL, flavour=None, folder="images/benchmatrix", sources=(*control, *packages, *shared))


def find_image(framework: Framework, device: Device) -> Image:
    """Return the image for a framework's cells on a device."""
    flavour = FLAVOURS[device]
    return next(image for image in list_images() if (image.name, image.flavour) == (framework, flavour))


def name_image(registry: str, image: Image, arguments: Mapping[str, str] | None = None) -> str:
    """Return `REGISTRY/NAME:FLAVOUR-HASH` of an image built from this checkout; UserError without a checkout."""
    digest = hashlib.sha256()
    root = require_checkout()
    for path in _list_files(root, image.sources):
        digest.update(f"{path.relative_to(root)}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    for name, value in sorted(image.name_arguments(arguments or {}).items()):
        digest.update(f"{name}={value}\0".encode())
    tag = "-".join(filter(None, (image.flavour, digest.hexdigest()[:TAG_DIGITS])))
    return f"{registry}/{image.name}:{tag}"


def make_arguments(base: str | None, cpu_index: str | None) -> dict[str, str]:
    """Return the arguments of a build; those that are as in the Dockerfile change no tag."""
    given = {"BASE": "" if base == DEFAULT_BASE else base, "CPU_INDEX": cpu_index}
    return {name: value for name, value in given.items() if value}


def _list_files(root: Path, sources: Sequence[str]) -> Iterator[Path]:
    for source in sources:
        path = root / source
        if path.is_dir():
            found = (file for file in path.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
            yield from sorted(found)
        else:
            yield path
