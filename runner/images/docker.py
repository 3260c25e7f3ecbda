"""The Docker client that builds and pushes images, as one function per question and command."""

import re
import shutil
import subprocess

from bench.errors import UserError
from runner.sources import locate_sources

TAIL_LINES = 20
MAX_SHOWN = 80
"""Characters of an answer that is none."""
SIZE = re.compile(r"[0-9]{1,18}")
# https://github.com/opencontainers/image-spec/blob/v1.1.0/descriptor.md#digests
DIGEST = re.compile(r"[a-z0-9]+([+._-][a-z0-9]+)*:[a-zA-Z0-9=_-]+")


class DockerMissingError(UserError):
    """The Docker client is not installed."""


def run_docker(*words: str) -> str:
    """Return what `docker WORDS` prints, run at the root of the sources. Raise UserError if it fails.

    Whatever is no UTF-8 in what it prints becomes U+FFFD.
    """
    docker = shutil.which("docker")
    if docker is None:
        raise DockerMissingError("docker: is not installed; on Debian: apt-get install docker.io")
    try:
        done = subprocess.run(
            [docker, *words], cwd=locate_sources(), capture_output=True, encoding="utf-8", errors="replace"
        )
    except OSError as error:  # a script without its interpreter, a program of another machine
        raise UserError(f"{docker}: cannot be started ({error.strerror}); install Docker's client anew") from None
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-TAIL_LINES:])
        raise UserError(f"docker {words[0]} failed (exit code {done.returncode}):\n{tail}")
    return done.stdout.strip()


def is_built(name: str) -> bool:
    """Return whether the engine has an image of this name."""
    try:
        return bool(run_docker("image", "ls", "--quiet", name))
    except DockerMissingError:
        raise
    except UserError as error:
        raise UserError(f"{error}\nis the Docker engine running?") from error


def require_built(name: str, short_name: str) -> None:
    """Raise UserError if the engine has no image of this name."""
    if not is_built(name):
        raise UserError(f"{name}: is not built; run `benchmatrix images build {short_name}` with the same options")


def read_size_bytes(name: str) -> int:
    """Return the size of an image with all its layers."""
    size = run_docker("image", "inspect", "--format", "{{.Size}}", name)
    if not SIZE.fullmatch(size):
        raise explain_answer("image inspect", f"the size of {name}", size)
    return int(size)


def read_image_id(name: str) -> str:
    """Return the digest of an image's configuration, by which the engine knows it."""
    found = run_docker("image", "inspect", "--format", "{{.Id}}", name)
    if not DIGEST.fullmatch(found):
        raise explain_answer("image inspect", f"the id of {name}", found)
    return found


def read_digest(name: str) -> str:
    """Return `REPOSITORY@sha256:...` of an image that was pushed as `name`."""
    digests = run_docker("image", "inspect", "--format", '{{join .RepoDigests "\\n"}}', name).splitlines()
    repository = name.rpartition(":")[0]
    for found in digests:
        if found.startswith(f"{repository}@") and DIGEST.fullmatch(found.removeprefix(f"{repository}@")):
            return found
    raise explain_answer("image inspect", f"the digest of {name} in its registry", "\n".join(digests))


def explain_answer(command: str, what: str, answer: str) -> UserError:
    """Return the error of a client that answered something else than what it was asked for."""
    shown = repr(answer[:MAX_SHOWN]) if answer else "nothing"
    return UserError(
        f"docker {command}: printed {shown}, expected {what}; is the `docker` on your PATH Docker's client?"
    )
