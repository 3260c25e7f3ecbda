"""Builds and pushes images with the Docker client."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterable, Mapping

from bench.errors import UserError
from bench.redaction import hide_secrets
from runner.images.names import DEVICES, LOCAL_REGISTRY, ImageSpec, name_image
from runner.sources import locate_sources, read_git_revision

TAIL_LINES = 20
QUESTION_SECONDS = 60.0
"""An engine answers in a second; one that hangs never does."""
TRANSFER_SECONDS = 4 * 3600.0
"""For a build or a push: CUDA images have 10 GB, and the package index may be slow."""
PROFILE_KEYS = {"BASE": "image_base", "CPU_INDEX": "image_cpu_index"}
"""The keys of a profile for the arguments of a build that change a tag."""


class DockerMissingError(UserError):
    """The Docker client is not installed."""


def run_docker(*words: str, limit_seconds: float = QUESTION_SECONDS) -> str:
    """Return what `docker WORDS` prints, run at the root of the sources. Raise UserError if it fails or hangs."""
    docker = shutil.which("docker")
    if docker is None:
        raise DockerMissingError("docker: is not installed; on Debian: apt-get install docker.io")
    command, folder = [docker, *words], locate_sources()
    try:
        with subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            errors="replace", start_new_session=True,
        ) as process:  # fmt: skip
            try:
                printed, errors = process.communicate(timeout=limit_seconds)
            except BaseException:  # Ctrl-C too: the plugins of the client are to end with it
                os.killpg(process.pid, signal.SIGKILL)
                raise
    except OSError as error:
        raise UserError(f"{docker}: cannot be run ({error.strerror or error}); is it the Docker client?") from error
    except subprocess.TimeoutExpired:
        reason = f"has not ended after {limit_seconds:g} s; see what the Docker engine waits for"
        raise UserError(f"docker {words[0]}: {reason}") from None
    if process.returncode:
        shown = hide_secrets(printed + errors)  # of a build, whatever a step of it prints
        tail = "\n".join(shown.strip().splitlines()[-TAIL_LINES:])
        raise UserError(f"docker {words[0]} failed (exit code {process.returncode}):\n{tail}")
    return printed.strip()


def is_built(name: str) -> bool:
    try:
        return bool(run_docker("image", "ls", "--quiet", name))
    except DockerMissingError:
        raise
    except UserError as error:
        raise UserError(f"{error}\nis the Docker engine running?") from error


def build_image(image: ImageSpec, name: str, arguments: Mapping[str, str], *, network: str = "") -> int:
    """Build the image under this name, and return its size in bytes, with all its layers.

    `network`: Docker's network for the build; empty: its default.
    """
    passed = image.select_arguments(arguments) | {"REVISION": read_git_revision() or "unknown"}
    words = [word for key, value in passed.items() for word in ("--build-arg", f"{key}={value}")]
    words += ["--network", network] if network else []
    run_docker(
        *("build", "--quiet", "--tag", name, "--file", image.dockerfile, *words, "."), limit_seconds=TRANSFER_SECONDS
    )
    found = run_docker("image", "inspect", "--format", "{{.Size}}", name)
    if not found.isdecimal():
        raise UserError(f"docker image inspect {name}: printed {found[:100]!r}, expected a number of bytes")
    return int(found)


def push_images(
    registry: str, images: Iterable[ImageSpec], arguments: Mapping[str, str]
) -> tuple[dict[str, object], dict[str, object]]:
    """Push images that were built with these arguments; return what a profile, and the chart's values, have to say.

    Both name the images by digest, and are empty where they have nothing to name. Raise UserError if one is not built
    or cannot be pushed.
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
