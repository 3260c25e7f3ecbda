"""Build an image with Docker, and name the keys by which a profile finds an image built with options."""

from collections.abc import Mapping

from runner.checkout import read_git_revision
from runner.images.docker import TRANSFER_SECONDS, run_docker
from runner.images.names import ImageSpec

PROFILE_KEYS = {"BASE": "image_base", "CPU_INDEX": "image_cpu_index"}
"""The keys of a profile for the arguments of a build that change a tag."""


def build_image(image: ImageSpec, name: str, arguments: Mapping[str, str], *, network: str = "") -> None:
    """Build the image under this name. `network`: Docker's network for the build; empty: its default.

    Raise UserError with the end of Docker's output if the build fails.
    """
    passed = image.select_arguments(arguments) | {"REVISION": read_git_revision() or "unknown"}
    build_args = [word for key, value in passed.items() for word in ("--build-arg", f"{key}={value}")]
    network_words = ["--network", network] if network else []
    run_docker(
        "build",
        "--quiet",
        "--tag",
        name,
        "--file",
        image.dockerfile,
        *build_args,
        *network_words,
        ".",
        limit_seconds=TRANSFER_SECONDS,
    )


def make_profile_values(arguments: Mapping[str, str]) -> dict[str, str]:
    """Return what a profile with `registry` has to say so that a run looks for images built with these arguments."""
    return {PROFILE_KEYS[name]: value for name, value in arguments.items()}
