"""The container images of benchmatrix: their names, building and pushing them.

A tag is a hash of the image's content: the Dockerfile, the locks, the packages that go in, and the build's arguments.
The same sources have the same tag everywhere.
"""

import hashlib
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bench.errors import UserError
from bench.redaction import hide_secrets
from bench.registry import FRAMEWORKS, Device, Framework
from runner.processes import end_programs
from runner.sources import locate_sources, read_git_revision

Flavour = Literal["cpu", "cuda"]
FLAVOURS: dict[Device, Flavour] = {"cpu": "cpu", "gpu": "cuda"}
DEVICES: dict[Flavour, Device] = {flavour: device for device, flavour in FLAVOURS.items()}
LOCAL_REGISTRY = "benchmatrix"
CONTROL = "control"
"""Name of the image of runner and collector."""
TAG_DIGITS = 12
DEFAULT_BASE = "python:3.11-slim-bookworm"

FRAMEWORK_DOCKERFILE = "images/framework.Dockerfile"
CONTROL_DOCKERFILE = "images/benchmatrix/Dockerfile"
# What every image contains, and what decides which files reach the build.
_SHARED = ("images/bench/src", "images/bench/pyproject.toml", "images/bench/requirements-build.txt", ".dockerignore")
_TOOL = (
    "requirements.lock", "pyproject.toml", "hatch_build.py", "README.md", "benchmatrix", "runner", "collector",
    "manifests", "charts/benchmatrix", "images/benchmatrix", "images/framework.Dockerfile",
    "images/install_requirements.sh", "images/jax", "images/pytorch", "images/tensorflow",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ImageSpec:
    """One image that this project builds."""

    name: str
    flavour: Flavour | None
    """None for the image of runner and collector."""
    dockerfile: str
    """Path below the root of the sources, as are the paths in `sources`."""
    sources: tuple[str, ...]
    """Files and folders that decide what is in the image."""

    def select_arguments(self, arguments: Mapping[str, str]) -> dict[str, str]:
        """Return those of the build's arguments that this image depends on, with its own added."""
        selected = dict(arguments)
        if (self.name, self.flavour) != ("pytorch", "cpu"):
            selected.pop("CPU_INDEX", None)
        if self.flavour is not None:
            selected |= {"FRAMEWORK": self.name, "FLAVOUR": self.flavour}
        return selected


def locate_requirements(framework: Framework, flavour: Flavour) -> str:
    """Return the path of the locked requirements below the sources' root; an environment has those of the image."""
    return f"images/{framework}/requirements-{flavour}.txt"


def list_images() -> Iterator[ImageSpec]:
    for name, framework in FRAMEWORKS.items():
        if framework.module is not None:
            continue  # a plugin's: its image is the user's
        for flavour in (FLAVOURS[device] for device in framework.devices):
            own = (FRAMEWORK_DOCKERFILE, "images/install_requirements.sh", locate_requirements(name, flavour))
            yield ImageSpec(name=name, flavour=flavour, dockerfile=FRAMEWORK_DOCKERFILE, sources=(*own, *_SHARED))
    yield ImageSpec(
        name=CONTROL, flavour=None, dockerfile=CONTROL_DOCKERFILE, sources=(CONTROL_DOCKERFILE, *_TOOL, *_SHARED)
    )


def choose_images(names: Sequence[str] | None) -> list[ImageSpec]:
    """Return the images named, with or without flavour (UserError: unknown); without names, all but those for CUDA."""
    if not names:
        return [image for image in list_images() if image.flavour != "cuda"]
    chosen = []
    for given in names:
        name, _, flavour = given.partition(":")
        found = [image for image in list_images() if image.name == name and flavour in ("", image.flavour)]
        if not found:
            known = ", ".join(dict.fromkeys(image.name for image in list_images()))
            raise UserError(f"image '{given}': unknown; there are {known}, the frameworks' each with :cpu or :cuda")
        chosen += found
    return chosen


def find_image(framework: Framework, device: Device) -> ImageSpec:
    flavour = FLAVOURS[device]
    return next(image for image in list_images() if (image.name, image.flavour) == (framework, flavour))


def name_image(registry: str, image: ImageSpec, arguments: Mapping[str, str] | None = None) -> str:
    """Return `REGISTRY/NAME:FLAVOUR-HASH` of an image built from the sources of this tool."""
    digest = hashlib.sha256()
    root = locate_sources()
    for path in _list_files(root, image.sources):
        digest.update(f"{path.relative_to(root)}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    for name, value in sorted(image.select_arguments(arguments or {}).items()):
        digest.update(f"{name}={value}\0".encode())
    tag = "-".join(filter(None, (image.flavour, digest.hexdigest()[:TAG_DIGITS])))
    return f"{registry}/{image.name}:{tag}"


def make_arguments(base: str | None, cpu_index: str | None) -> dict[str, str]:
    """Return the arguments of a build that differ from the Dockerfile's defaults; only these change a tag."""
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


TAIL_LINES = 20
PROFILE_KEYS = {"BASE": "image_base", "CPU_INDEX": "image_cpu_index"}
"""The keys of a profile for the arguments of a build that change a tag."""


QUESTION_SECONDS = 60.0
"""How long a Docker engine may take to say what it has, and, below, to build or push an image of gigabytes."""
TRANSFER_SECONDS = 4 * 3600.0


def run_docker(*words: str, limit_seconds: float = QUESTION_SECONDS) -> str:
    """Return what `docker WORDS` prints, run at the root of the sources. Raise UserError if it fails or hangs."""
    docker = shutil.which("docker")
    if docker is None:
        raise UserError("docker: is not installed; on Debian: apt-get install docker.io")
    try:
        with subprocess.Popen(
            [docker, *words], cwd=locate_sources(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, errors="replace",
        ) as process:  # fmt: skip
            try:
                printed, said = process.communicate(timeout=limit_seconds)
            except BaseException:
                end_programs([process.pid])  # and what they have started, which `subprocess.run` would leave running
                raise
    except subprocess.TimeoutExpired:
        reason = f"has not ended after {limit_seconds:g} s; see what the Docker engine waits for"
        raise UserError(f"docker {words[0]}: {reason}") from None
    except OSError as error:
        raise UserError(f"{docker}: cannot be run ({error.strerror or error}); is it the Docker client?") from error
    if process.returncode:
        shown = hide_secrets(printed + said)  # of a build, whatever a step of it prints
        tail = "\n".join(shown.strip().splitlines()[-TAIL_LINES:])
        raise UserError(f"docker {words[0]} failed (exit code {process.returncode}):\n{tail}")
    return printed.strip()


def is_built(name: str) -> bool:
    return bool(run_docker("image", "ls", "--quiet", name))


def build_image(image: ImageSpec, name: str, arguments: Mapping[str, str], *, network: str = "") -> None:
    """Build the image under this name. `network`: Docker's network for the build; empty: its default."""
    passed = image.select_arguments(arguments) | {"REVISION": read_git_revision() or "unknown"}
    words = [word for key, value in passed.items() for word in ("--build-arg", f"{key}={value}")]
    words += ["--network", network] if network else []
    words += ["--quiet", "--tag", name, "--file", image.dockerfile, "."]
    run_docker("build", *words, limit_seconds=TRANSFER_SECONDS)


def push_images(
    registry: str, images: Iterable[ImageSpec], arguments: Mapping[str, str]
) -> tuple[dict[str, object], dict[str, object]]:
    """Push images that were built with these arguments; return what a profile, and the chart's values, have to say.

    Both name the images by digest, and are empty where they have nothing to name. UserError if one cannot be pushed.
    """
    by_framework: dict[str, dict[str, str]] = {}
    for_chart: dict[str, object] = {}
    for image in images:
        local, remote = (name_image(place, image, arguments) for place in (LOCAL_REGISTRY, registry))
        if not is_built(local):
            raise UserError(f"{local}: is not built; run `benchmatrix images build {image.name}` with the same options")
        run_docker("tag", local, remote)
        run_docker("push", "--quiet", remote, limit_seconds=TRANSFER_SECONDS)
        repository, digest = _read_digest(remote)
        if image.flavour is None:
            for_chart = {"image": {"repository": repository, "digest": digest}}
        else:
            by_framework.setdefault(image.name, {})[DEVICES[image.flavour]] = f"{repository}@{digest}"
    for_profile: dict[str, object] = {"images": by_framework} if by_framework else {}
    return for_profile, for_chart | ({"profile": for_profile} if for_chart and for_profile else {})


def _read_digest(name: str) -> tuple[str, str]:
    repository = name.rpartition(":")[0]
    for line in run_docker("image", "inspect", "--format", '{{join .RepoDigests "\\n"}}', name).splitlines():
        if re.fullmatch(f"{re.escape(repository)}@sha256:[0-9a-f]{{64}}", line):
            return repository, line.partition("@")[2]
    raise UserError(f"docker image inspect {name}: names no digest of {repository}; was it pushed there?")
