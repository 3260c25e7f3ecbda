"""Make one virtual environment per framework on this machine, with exactly what the framework's image installs.

That is the locked requirements and the package `bench`. A stamp, written last, says what was installed; an environment
without it (a killed installation) is created again.
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from bench.errors import UserError
from bench.schema import Framework
from runner.checkout import has_checkout
from runner.images.names import Flavour, locate_requirements
from runner.local.process import POLL_SECONDS, end_group, has_ended, kill_group, start_group
from runner.signal_handlers import delay_interrupts
from runner.sources import find_cache_folder, find_source, locate_sources
from runner.terminal import can_redraw
from runner.terminal_text import format_wait

Report = Callable[[str], None]

TAIL_LINES = 12
INSTALLED = "installed in"
"""What is reported at the end of an installation, before the time that it took."""
WAITING = "waiting for another installation"
INSTALL_SECONDS = 4 * 3600.0
"""For one step of an installation: PyTorch for CUDA has 3 GB, which a slow network takes an hour for."""
TABLE = Path(__file__).with_name("installation_sizes.json")
"""Written by images/make_sizes.py from what the package index states of the locked wheels."""
MEGABITS_PER_SECOND = 100
"""The connection that the stated time is for; it stands beside the time, so that readers can scale it."""
BITS_PER_BYTE = 8
SIGN_SECONDS = 15.0
"""How long a log stays silent at the most: pip says nothing for minutes while it loads or unpacks 3 GB."""
KEPT = (" to download", "new environment", WAITING, INSTALLED)
"""Lines with one of these stay on the screen."""
DOWNLOAD = re.compile(r"(?:Downloading|Using cached) (?P<file>\S+) \((?P<size>[\d.]+) (?P<unit>bytes|kB|MB|GB)\)")
UNITS = {"bytes": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9}


@dataclass(frozen=True, kw_only=True)
class VirtualEnvironment:
    """The folder of a virtual environment, which may be missing, and what is installed into it."""

    directory: Path
    requirements: Path
    project: Path | None
    """The folder of the package `bench` in a checkout; None elsewhere: measuring processes find it by PYTHONPATH."""

    @property
    def python(self) -> Path:
        """Return the path of the interpreter."""
        return self.directory / "bin" / "python"

    @property
    def stamp(self) -> Path:
        """Return the path of the file that records what was installed."""
        return self.directory / "installed"

    def compute_fingerprint(self) -> str:
        """Return a text that changes with the requirements' contents and with this Python."""
        digest = hashlib.sha256(sys.version.encode())
        project = [] if self.project is None else [self.project / "pyproject.toml"]
        for file in (self.requirements, *project):
            digest.update(file.read_bytes())
        return digest.hexdigest()

    def is_up_to_date(self) -> bool:
        """Return whether the installation was completed, from the requirements as they are now."""
        return self.stamp.is_file() and self.stamp.read_text() == self.compute_fingerprint()


def prepare_virtual_environments(
    frameworks: Iterable[Framework], flavour: Flavour, report: Report, *, keep_open: Sequence[int] = ()
) -> dict[Framework, Path]:
    """Return the interpreter of each framework's virtual environment; install what is missing or out of date.

    `report` gets each line that an installation prints; the processes that install inherit the file descriptors
    `keep_open`. Raise UserError if an installation fails.
    """
    frameworks = list(frameworks)
    missing = list_missing(frameworks, flavour)
    if len(missing) > 1:
        report(describe_missing(missing))
    interpreters = {}
    for framework in frameworks:
        environment = _locate_environment(framework, flavour)
        if not environment.is_up_to_date():
            with _lock_directory(environment.directory, report) as lock:
                if not environment.is_up_to_date():
                    _install(environment, report, [lock, *keep_open])
        interpreters[framework] = environment.python
    return interpreters


def list_missing(frameworks: Iterable[Framework], flavour: Flavour) -> list[VirtualEnvironment]:
    """Return the environments that a run of the frameworks installs first."""
    environments = [_locate_environment(framework, flavour) for framework in frameworks]
    return [environment for environment in environments if not environment.is_up_to_date()]


def list_present(frameworks: Iterable[Framework], flavour: Flavour) -> list[VirtualEnvironment]:
    """Return the environments of the frameworks that are installed and up to date."""
    environments = [_locate_environment(framework, flavour) for framework in frameworks]
    return [environment for environment in environments if environment.is_up_to_date()]


def describe_missing(environments: Sequence[VirtualEnvironment]) -> str:
    """Return what the installation of the environments, one or more, downloads and takes on the disk."""
    requirements = {environment.directory.name: environment.requirements for environment in environments}
    return describe_installations(requirements, environments[0].directory.parent)


def _locate_environment(framework: Framework, flavour: Flavour) -> VirtualEnvironment:
    folder = locate_sources() / ".environments" if has_checkout() else find_cache_folder() / "environments"
    return VirtualEnvironment(
        directory=folder / f"{framework}-{flavour}",
        requirements=find_source(locate_requirements(framework, flavour)),
        project=find_source("images/bench") if has_checkout() else None,
    )


@contextmanager
def _lock_directory(directory: Path, report: Report) -> Iterator[int]:
    """Wait for the lock on a directory and hold it; yields its file descriptor.

    The processes that install inherit it: one that outlives its killed parent has to end before the next installation.
    """
    directory.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{directory}.lock", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report(f"{directory.name}: {WAITING}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()


def _install(environment: VirtualEnvironment, report: Report, keep_open: Sequence[int]) -> None:
    name = environment.directory.name
    fingerprint = environment.compute_fingerprint()
    began = time.monotonic()
    report(f"{name}: new environment")
    report(f"{name}: {describe_installation(name, environment.requirements)}")
    shutil.rmtree(environment.directory, ignore_errors=True)
    pip = [str(environment.python), "-m", "pip", "install", "--progress-bar", "off", "--disable-pip-version-check"]
    project = [] if environment.project is None else [[*pip, "--no-deps", "-e", str(environment.project)]]
    for command in (
        [sys.executable, "-m", "venv", str(environment.directory)],
        [*pip, "--require-hashes", "-r", str(environment.requirements)],
        *project,
    ):
        _run(command, name, report, keep_open)
    environment.stamp.write_text(fingerprint)
    report(f"{name}: {INSTALLED} {time.monotonic() - began:.0f} s")


def _run(command: Sequence[str], name: str, report: Report, keep_open: Sequence[int]) -> None:
    """Run a command and report what it prints; raise UserError with its last lines if it fails or takes too long."""
    tail: deque[str] = deque(maxlen=TAIL_LINES)
    process, watch = None, None
    try:
        with delay_interrupts():
            process = start_group(command, keep_open=keep_open)
        watch = threading.Timer(
            INSTALL_SECONDS, kill_group, [process]
        )  # its number is its own until `end_group` has waited
        watch.daemon = True
        watch.start()
        for line in process.stdout or ():
            tail.append(line.decode(errors="replace").rstrip())
            report(f"{name}: {tail[-1].strip()}")
        while not has_ended(process):
            time.sleep(POLL_SECONDS)
    finally:
        if watch is not None:
            watch.cancel()
        if process is not None:
            end_group(process)
    if process.returncode != 0:
        raise UserError(_explain_failure(name, list(tail), process.returncode))


def _explain_failure(name: str, tail: list[str], code: int) -> str:
    text = "\n".join(tail)
    if code == -signal.SIGKILL:
        hint = f"it was killed: it took more than {INSTALL_SECONDS / 3600:g} hours, or the memory was used up"
    elif "ensurepip is not available" in text:
        hint = "install your system's venv package (Debian: apt-get install python3-venv)"
    elif "No space left on device" in text:
        hint = "the disk is full: an environment takes up to 6 GB"
    else:
        hint = "check that pip reaches a package index, then run the same command again"
    return f"environment {name}: the installation failed; {hint}. The end of its output:\n{text}"


# Sizes


def describe_installation(name: str, requirements: Path) -> str:
    """Return what the environment `name`, such as `pytorch-cpu`, downloads from its locked `requirements`.

    A lock that the table was not made from has an unknown size, and the text says so.
    """
    size = _find_size(name, requirements)
    if size is None:
        return "how much there is to download is not known: the table of sizes is of other requirements"
    disk = size["installed_bytes"]
    return (
        f"{size['num_packages']} packages, {_format_size(size['download_bytes'])} to download (the package index's "
        f"sizes of the locked wheels; from pip's cache, none): {_format_download(size['download_bytes'])}, "
        f"and unpacking; {'on the disk more than that' if disk is None else f'{_format_size(disk)} on the disk'}"
    )


def describe_installations(requirements: Mapping[str, Path], folder: Path) -> str:
    """Return what several environments, by name, download together and take in `folder`, and what is free there."""
    sizes = [_find_size(name, path) for name, path in requirements.items()]
    names = ", ".join(requirements)
    free = f"{_format_size(_find_free_bytes(folder))} are free in {folder}"
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes):
        return f"{names}: how much there is to download is not known for each; {free}"
    download = sum(size["download_bytes"] for size in known)
    disk = [size["installed_bytes"] for size in known]
    taken = "more than that" if None in disk else _format_size(sum(filter(None, disk)))
    return (
        f"{names}: {_format_size(download)} to download ({_format_download(download)}, and unpacking), {taken} on the "
        f"disk; {free}"
    )


def _find_size(name: str, requirements: Path) -> dict[str, Any] | None:
    """Return the row of an environment; None where the table was made from another lock."""
    size: dict[str, Any] = json.loads(TABLE.read_text()).get(name, {})
    return size if size.get("requirements_sha256") == hashlib.sha256(requirements.read_bytes()).hexdigest() else None


def _find_free_bytes(folder: Path) -> int:
    """Return what is free where the folder is, or will be made."""
    there = next(place for place in (folder, *folder.absolute().parents) if os.path.exists(place))
    return shutil.disk_usage(there).free


def _format_download(num_bytes: int) -> str:
    seconds = num_bytes * BITS_PER_BYTE / (MEGABITS_PER_SECOND * 1e6)
    return f"{format_wait(seconds)} at {MEGABITS_PER_SECOND} Mbit/s"


def _format_size(num_bytes: int) -> str:
    return f"{num_bytes / 1e9:.1f} GB" if num_bytes >= 1e9 else f"{num_bytes / 1e6:.0f} MB"


# Progress


class PipOutput:
    """What pip has done by the lines that it printed. It says of a package when it begins, not when it is done."""

    def __init__(self) -> None:
        self._num_packages = 0
        self._num_bytes = 0.0
        self._now = ""
        self._now_bytes = 0.0

    def read(self, line: str) -> None:
        """Read one line."""
        loaded = DOWNLOAD.search(line)
        if loaded and not loaded["file"].endswith(".metadata"):
            self._begin(f"{_shorten(loaded['file'])} ({loaded['size']} {loaded['unit']})")
            self._now_bytes = float(loaded["size"]) * UNITS[loaded["unit"]]
        elif line.startswith("Processing "):
            self._begin(_shorten(line.partition(" (from ")[0].rpartition("/")[2]))
        elif line.startswith("Installing collected packages"):
            self._begin("")

    def describe(self) -> str:
        """Return what is going on; empty before the first package."""
        done = f"{self._num_packages} package{'' if self._num_packages == 1 else 's'}"
        amount = f" ({self._num_bytes / 1e9:.1f} GB)" if self._num_bytes >= 5e7 else ""
        if self._now:
            return f"loading {self._now}, after {done}{amount}"
        return f"unpacking {done}{amount}" if self._num_packages else ""

    def _begin(self, name: str) -> None:
        self._num_packages += bool(self._now)
        self._num_bytes += self._now_bytes
        self._now, self._now_bytes = name, 0.0


class InstallProgress(AbstractContextManager["InstallProgress"]):
    """Shows how far installations are, one after the other, and for how long each of them has lasted.

    A thread prints the lines of a pipe, since pip can be silent for minutes; a terminal draws its line by itself.
    """

    def __init__(self, console: Console, sign_seconds: float = SIGN_SECONDS) -> None:
        self._console = console
        self._sign_seconds = sign_seconds
        self._name = ""
        self._line = ""
        self._pip = PipOutput()
        self._began = time.monotonic()
        self._spinner = Spinner("dots")
        self._is_over = threading.Event()
        self._ticker: threading.Thread | None = None
        self._live: Live | None = None
        if can_redraw(console):
            self._live = Live(get_renderable=self._render, console=console, transient=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        if self._live:
            self._live.stop()
        if self._ticker:
            self._ticker.join()

    def report(self, line: str) -> None:
        """Take one line of an installation, `NAME: TEXT`; one that says how much or how long stays on the screen."""
        name, _, text = line.partition(": ")
        if name != self._name:
            self._name, self._pip, self._began = name, PipOutput(), time.monotonic()
        self._line = text
        self._pip.read(text)
        if any(word in text for word in KEPT):
            self._print(line)
        if self._live:
            self._live.start()
            self._live.refresh()
        elif self._ticker is None:
            self._ticker = threading.Thread(target=self._give_signs, daemon=True)
            self._ticker.start()

    def _give_signs(self) -> None:
        while not self._is_over.wait(self._sign_seconds):
            self._print(self._describe())

    def _describe(self) -> str:
        """Return `pytorch-cpu: loading torch-2.14.1 (888 MB), after 12 packages (0.4 GB), 80 s`."""
        now = self._pip.describe() or (WAITING if self._line == WAITING else "preparing")
        return f"{self._name}: {now}, {time.monotonic() - self._began:.0f} s"

    def _print(self, line: str) -> None:
        prefix = "" if INSTALLED in line else "installing "
        self._console.print(f"{prefix}{line}", highlight=False, markup=False, soft_wrap=True)

    def _render(self) -> Spinner:
        line = f"installing {self._describe()}: {self._line}"
        self._spinner.update(text=Text(line[: self._console.width - 4]))
        return self._spinner


def _shorten(file: str) -> str:
    """Return `torch-2.14.1` of the name of a wheel; that of any other file as it is."""
    return "-".join(file.split("-")[:2]) if file.endswith(".whl") else file
