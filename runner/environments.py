"""One Python environment per image on this machine: a framework in, the interpreter that has it out.

An environment holds exactly what the image's Dockerfile installs: the locked requirements and the package `bench`. A
stamp, written last, says what was installed; an environment without it (a killed installation) is made anew.
"""

import hashlib
import shutil
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal

from bench.errors import UserError
from bench.schema import Framework
from runner.checkout import require_checkout

Flavour = Literal["cpu", "cuda"]
Report = Callable[[str], None]

STAMP = "installed"
TAIL_LINES = 12


def prepare_environments(frameworks: Iterable[Framework], flavour: Flavour, report: Report) -> dict[Framework, Path]:
    """Return the interpreter of each framework's environment, installing what is missing.

    `report` is told in one line what is being installed. UserError where an installation fails.
    """
    return {framework: prepare_environment(framework, flavour, report) for framework in frameworks}


def prepare_environment(framework: Framework, flavour: Flavour, report: Report) -> Path:
    """Return the interpreter of one environment, making it first where its stamp is missing or out of date."""
    root = require_checkout()
    directory = root / ".environments" / f"{framework}-{flavour}"
    requirements = root / "images" / framework / f"requirements-{flavour}.txt"
    python = directory / "bin" / "python"
    stamp = directory / STAMP
    fingerprint = _fingerprint(requirements, root / "images" / "bench" / "pyproject.toml")
    if stamp.is_file() and stamp.read_text() == fingerprint:
        return python
    report(f"{directory.name}: new environment")
    shutil.rmtree(directory, ignore_errors=True)
    _run(["-m", "venv", str(directory)], directory.name, report)
    pip = ["-m", "pip", "install", "--progress-bar", "off", "--disable-pip-version-check"]
    _run([*pip, "--require-hashes", "-r", str(requirements)], directory.name, report, python)
    _run([*pip, "--no-deps", "-e", str(root / "images" / "bench")], directory.name, report, python)
    stamp.write_text(fingerprint)
    return python


def _fingerprint(*files: Path) -> str:
    """Return a text that changes with the files' contents and with this Python."""
    digest = hashlib.sha256(sys.version.encode())
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _run(arguments: list[str], name: str, report: Report, python: Path = Path(sys.executable)) -> None:
    """Run Python with `arguments`, reporting what it prints; UserError with its last lines where it fails."""
    tail: deque[str] = deque(maxlen=TAIL_LINES)
    process = subprocess.Popen(
        [python, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    try:
        for line in process.stdout or ():
            tail.append(line.rstrip())
            report(f"{name}: {line.strip()}")
        if process.wait() != 0:
            raise UserError(_explain_failure(name, list(tail)))
    finally:
        process.kill()
        process.wait()


def _explain_failure(name: str, tail: list[str]) -> str:
    text = "\n".join(tail)
    if "ensurepip is not available" in text:
        hint = "install your system's venv package (Debian: apt-get install python3-venv)"
    elif "No space left on device" in text:
        hint = "the disk is full: an environment takes up to 6 GB"
    else:
        hint = "check that pip reaches a package index, then run the same command again"
    return f"environment {name}: the installation failed; {hint}. The end of its output:\n{text}"
