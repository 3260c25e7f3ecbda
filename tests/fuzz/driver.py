"""Runs cases: puts each into a fresh folder, has the tool read it in a process with limits, and judges the outcome."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from collector.results.dataset.columns import compute_version
from fuzz.cases import Case, put, read_words
from fuzz.judging import Fault, Outcome, judge, take_inventory
from fuzz.markers import SECRET
from fuzz.server_inputs import CLUSTER
from fuzz.servers import S3_TRUTH, ApiLiar, S3Liar
from fuzz.signed import write_signed
from fuzz.targets import Target, list_targets
from fuzz.workspaces import write_workspace
from fuzz.zygote import Ending, Request
from runner.checkout import ROOT

ZYGOTE = Path(__file__).with_name("zygote.py")
PLACEHOLDER = b"API_SERVER"
KILLED_BYTES = 1500 * 10**6
"""Resident, at which a case is ended at once: long before the machine would suffer."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """After which a case is ended. A machine that others use too is no fault: the wall clock's is wide."""

    cpu_seconds: int
    wall_seconds: float


GENEROUS = Limits(cpu_seconds=120, wall_seconds=300.0)
"""For the tests of every day, which assert no time: only a hang is a fault."""
STRICT = Limits(cpu_seconds=20, wall_seconds=600.0)
"""For `make fuzz`: 20 s of CPU, as the tool promises for any input."""


@dataclass
class Driver:
    """Runs cases, one at a time; a context manager, which starts what it needs and removes what it made."""

    limits: Limits = GENEROUS
    root: Path = field(init=False)
    _zygote: "subprocess.Popen[str]" = field(init=False, repr=False)

    def __enter__(self) -> Self:
        self.root = Path(tempfile.mkdtemp(prefix="fuzz-"))
        self.root.chmod(0o755)
        self._template, self._outside = self.root / "template", self.root / "outside"
        self.folder = self._outside / "a" / "b" / "work"
        self._template.mkdir()
        write_workspace(self._template)
        write_signed(self._template)
        self._s3, self._api = S3Liar(), ApiLiar()
        self._s3.folder = self.folder / "results"
        self._variables = self._make_variables()
        self._start_zygote()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._zygote:  # it ends with its stdin
            assert self._zygote.stdin is not None
            self._zygote.stdin.close()
        self._s3.stop()
        self._api.stop()
        shutil.rmtree(self.root, ignore_errors=True)

    def run(self, case: Case, *, is_real: bool = False) -> list[Fault]:
        """Return what did not hold of a case; `is_real`: in a process of its own, started as users start it."""
        target = list_targets()[case.target]
        words, variables = self._prepare(case, target)
        around = take_inventory(self._outside)
        stdout, stderr = self.root / "stdout", self.root / "stderr"
        before = take_inventory(self.folder)
        request = Request(
            words=words,
            variables=variables,
            folder=str(self.folder),
            stdout=str(stdout),
            stderr=str(stderr),
            cpu_seconds=self.limits.cpu_seconds,
            wall_seconds=self.limits.wall_seconds,
            resident_bytes=KILLED_BYTES,
        )
        ending = self._run_process(request) if is_real else self._ask_zygote(request)
        outcome = Outcome(
            words=words,
            ending=ending,
            stdout=stdout.read_bytes(),
            stderr=stderr.read_bytes(),
            before=before,
            folder=self.folder,
            replaced=target.replaced,
        )
        return judge(outcome) + self._judge_outside(set(around))

    def _judge_outside(self, around: set[str]) -> list[Fault]:
        inside = os.path.relpath(self.folder, self._outside) + "/"
        new = [name for name in take_inventory(self._outside) if not name.startswith(inside) and name not in around]
        return [Fault("file outside", name) for name in new]

    def _prepare(self, case: Case, target: Target) -> tuple[list[str], dict[str, str]]:
        """Fill the folder; return the words of the command and further variables."""
        shutil.rmtree(self._outside, ignore_errors=True)
        shutil.copytree(self._template, self.folder, symlinks=True)
        words, variables = shlex.split(target.uses[case.use]), {}
        self._s3.says, self._api.says, self._s3.kept = S3_TRUTH, CLUSTER, {}
        _fill_in(self.folder / "kubeconfig", self._api.url)
        if target.place == "file":
            put(case.content, self.folder / target.file)
            _fill_in(self.folder / target.file, self._api.url)
            if target.file.startswith("bin/") and isinstance(case.content, bytes):
                (self.folder / target.file).chmod(0o755)
        elif target.place == "words":
            words = read_words(_expect_bytes(case))
        elif target.place == "variables":
            variables = json.loads(_expect_bytes(case))
        elif target.place == "names":
            _put_names(json.loads(_expect_bytes(case)), self.folder / "results")
        elif target.place == "rows":
            name = (
                f"{compute_version()}.{'0' * 32}.parquet"  # as a file of the data set is named, else nothing reads it
            )
            put(case.content, self.folder / "results/tables/attempts/nightly-1" / name)
        else:
            server = self._s3 if target.place == "store-server" else self._api
            server.says = _read_loosely(_expect_bytes(case))
        return words, variables

    def _make_variables(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("LANG", "LC_ALL") if name in os.environ}
        return kept | {
            "PATH": str(self.folder / "bin"),
            "HOME": str(self.folder / "home"),
            "KUBECONFIG": str(self.folder / "kubeconfig"),
            "AWS_ENDPOINT_URL": self._s3.url,
            "AWS_ACCESS_KEY_ID": "AKIAFUZZ",
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "OPENBLAS_NUM_THREADS": "1",  # a fork has none of the threads
            "COLUMNS": "120",
            "SLACK_URL": f"http://127.0.0.1:1/{SECRET}",
        }

    def _start_zygote(self) -> None:
        self._zygote = subprocess.Popen(
            [sys.executable, "-P", str(ZYGOTE)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=self._variables,
            cwd=ROOT,
        )

    def _ask_zygote(self, request: Request) -> Ending:
        assert self._zygote.stdin is not None
        assert self._zygote.stdout is not None
        self._zygote.stdin.write(json.dumps(request) + "\n")
        self._zygote.stdin.flush()
        ending: Ending = json.loads(self._zygote.stdout.readline())
        return ending

    def _run_process(self, request: Request) -> Ending:
        with open(request["stdout"], "wb") as stdout, open(request["stderr"], "wb") as stderr:
            process = subprocess.Popen(
                [sys.executable, "-m", "benchmatrix", *request["words"]],
                cwd=request["folder"],
                env=self._variables | request["variables"],
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
            )
            try:
                code = process.wait(request["wall_seconds"])
                limit = ""
            except subprocess.TimeoutExpired:
                process.kill()
                code, limit = process.wait(), "time"
        number = -code if code < 0 else None
        return Ending(code=None if number else code, signal=number, limit=limit, cpu_seconds=0.0, peak_bytes=0)


def _expect_bytes(case: Case) -> bytes:
    assert isinstance(case.content, bytes), case.target
    return case.content


def _fill_in(path: Path, url: str) -> None:
    if not path.is_symlink() and path.is_file() and path.name == "kubeconfig" and path.stat().st_size < 10**6:
        path.write_bytes(path.read_bytes().replace(PLACEHOLDER, url.encode()))


def _put_names(names: Sequence[str], store: Path) -> None:
    """Make files of these names, as far as the file system takes them."""
    for name in names:
        path = store / name.lstrip("/")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                path.write_bytes(b"{}")
        except (OSError, ValueError):
            continue


def _read_loosely(data: bytes) -> Any:
    """Return what a server is to say; where it is no JSON, all that it says is this text."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        text = data.decode("utf-8", "replace")
        return {kind: text for kind in ("version", "namespaces", "jobs", "pods", "nodes", "secrets")}
