"""The Docker client that builds and pushes images, as one function per question and command."""

import re
import shutil

from bench.errors import UserError
from bench.foreign_programs import ProgramLimitError, ProgramTooSlowError, run_program
from bench.known_secrets import hide_printed_secrets
from runner.sources import locate_sources

TAIL_LINES = 20
QUESTION_SECONDS = 60.0
"""An engine answers in a second; one that hangs never does."""
PROGRAM_SECONDS = 600.0
"""For a program in a container."""
TRANSFER_SECONDS = 4 * 3600.0
"""For a build or a push: CUDA images have 10 GB, and the package index may be slow."""
MAX_OUTPUT_BYTES = 16 * 2**20
"""The list of an image's packages has 30 KB; builds and pushes are asked to be quiet."""
DIGEST = "sha256:[0-9a-f]{64}"


class DockerMissingError(UserError):
    """The Docker client is not installed."""


def run_docker(*words: str, limit_seconds: float = QUESTION_SECONDS) -> str:
    """Return what `docker WORDS` prints, run at the root of the sources. Raise UserError if it fails or hangs."""
    docker = shutil.which("docker")
    if docker is None:
        raise DockerMissingError("docker: is not installed; on Debian: apt-get install docker.io")
    command, folder = [docker, *words], locate_sources()
    try:
        done = run_program(command, limit_seconds=limit_seconds, max_bytes=MAX_OUTPUT_BYTES, folder=folder)
    except OSError as error:
        raise UserError(f"{docker}: cannot be run ({error.strerror or error}); is it the Docker client?") from error
    except ProgramTooSlowError as error:
        raise UserError(f"docker {words[0]}: {error}; see what the Docker engine waits for") from None
    except ProgramLimitError as error:
        raise UserError(f"docker {words[0]}: {error}; is `docker` the Docker client?") from None
    if done.returncode:
        printed = hide_printed_secrets(done.printed + done.errors)  # of a build, whatever a step of it prints
        tail = "\n".join(printed.strip().splitlines()[-TAIL_LINES:])
        raise UserError(f"docker {words[0]} failed (exit code {done.returncode}):\n{tail}")
    return done.printed.strip()


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
    return int(_inspect_one(name, "{{.Size}}", "[0-9]{1,18}", "a number of bytes"))


def read_image_id(name: str) -> str:
    """Return the digest of an image's configuration, by which the engine knows it."""
    return _inspect_one(name, "{{.Id}}", DIGEST, "a digest")


def read_digest(name: str) -> str:
    """Return `REPOSITORY@sha256:...` of an image that was pushed as `name`."""
    repository = name.rpartition(":")[0]
    reference = f"{re.escape(repository)}@{DIGEST}"
    digests = _inspect(name, '{{join .RepoDigests "\\n"}}').splitlines()
    found = next((digest for digest in digests if re.fullmatch(reference, digest)), None)
    if found is None:
        raise UserError(f"docker image inspect {name}: names no digest of {repository}; was it pushed there?")
    return found


def _inspect(name: str, template: str) -> str:
    return run_docker("image", "inspect", "--format", template, name)


def _inspect_one(name: str, template: str, pattern: str, expected: str) -> str:
    """Return one value that the engine says of an image; UserError where that is not as `pattern` says."""
    found = _inspect(name, template)
    if not re.fullmatch(pattern, found):
        printed = f"docker image inspect {name}: printed {found[:100]!r}, expected {expected}"
        raise UserError(f"{printed}; is `docker` the Docker client?")
    return found
