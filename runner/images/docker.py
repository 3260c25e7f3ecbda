"""The Docker client that builds and pushes images, as one function per question and command."""

import re
import shutil
import subprocess
import threading
from typing import IO

from bench.errors import UserError
from runner.sources import locate_sources

TAIL_LINES = 20
MAX_TAIL_BYTES = 64 * 2**10
MAX_OUTPUT_BYTES = 16 * 2**20
"""The list of an image's packages has 30 KB; builds and pushes are asked to be quiet."""
DIGEST = "sha256:[0-9a-f]{64}"


class DockerMissingError(UserError):
    """The Docker client is not installed."""


def run_docker(*words: str) -> str:
    """Return what `docker WORDS` prints, run at the root of the sources. Raise UserError if it fails."""
    docker = shutil.which("docker")
    if docker is None:
        raise DockerMissingError("docker: is not installed; on Debian: apt-get install docker.io")
    try:
        process = subprocess.Popen(
            [docker, *words],
            cwd=locate_sources(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    except OSError as error:
        raise UserError(f"{docker}: cannot be run ({error.strerror or error}); is it the Docker client?") from error
    printed, errors = _read_outputs(process, words[0])
    if process.returncode:
        tail = "\n".join((printed + errors).strip().splitlines()[-TAIL_LINES:])
        raise UserError(f"docker {words[0]} failed (exit code {process.returncode}):\n{tail}")
    return printed.strip()


def _read_outputs(process: "subprocess.Popen[bytes]", word: str) -> tuple[str, str]:
    """Return what the client prints, and the end of its errors; UserError where it prints more than any answer has."""
    assert process.stdout is not None
    errors = bytearray()
    reader = threading.Thread(target=_keep_end, args=(process.stderr, errors), daemon=True)
    with process:
        try:
            reader.start()
            printed = process.stdout.read(MAX_OUTPUT_BYTES + 1)
        except BaseException:  # Ctrl-C
            process.kill()
            raise
        if len(printed) > MAX_OUTPUT_BYTES:
            process.kill()
        reader.join()
    if len(printed) > MAX_OUTPUT_BYTES:
        raise UserError(f"docker {word}: printed more than {MAX_OUTPUT_BYTES:,} bytes; is `docker` the Docker client?")
    return printed.decode(errors="replace"), errors.decode(errors="replace")


def _keep_end(stream: IO[bytes], end: bytearray) -> None:
    while chunk := stream.read(MAX_TAIL_BYTES):
        end += chunk
        del end[:-MAX_TAIL_BYTES]


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
