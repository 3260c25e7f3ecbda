"""Executables for `--python` that stand in for a Python with the frameworks.

They are called as the runner calls a real one, `INTERPRETER -m bench` with an order in the environment.

To import what makes a record takes 0.4 s of CPU, to import the store 0.3 s, and tests start hundreds of them: a record
is made once for each cell, and kept as the template of the others, which differ from it in run, repeat and attempt; and
a file is written here.
"""

import atexit
import hashlib
import json
import os
import re
import shlex
import shutil
import sys
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

from waiting import wait_for

TEMPLATE_VARIABLES = ("BENCH_CELL", "BENCH_TENANT", "FAKE_STEP_SECONDS", "FAKE_VERDICT")
"""What a record depends on, beside its own place in the run; the last two: see stand_in_records.py."""


def make_interpreter(path: Path, body: str) -> Path:
    """Return `path`, now an executable shell script of the commands `body`; it does not say which modules it has."""
    path.write_text(f'#!/bin/sh\n[ "$1" = -c ] && exit\n{body}\n', encoding="utf-8")
    path.chmod(0o755)
    return path


def make_measuring_interpreter(
    path: Path, *, log: Path, before: str = "", after: str = "", num_samples_that_fit: int = 10**9
) -> Path:
    """Return an executable that writes an ok result at once, as `python -m bench` does after a measurement.

    A batch of more than `num_samples_that_fit` is out of memory, 1 GiB being asked for each sample. `log` gets one
    line for each start: cell_id, repeat, attempt, pid. `before` and `after`: shell commands around it.
    """
    # The runner asks for a safe path; this script finds the modules beside it all the same.
    words = ["env", "-u", "PYTHONSAFEPATH", sys.executable, __file__, str(log), str(num_samples_that_fit)]
    start = shlex.join([*words, str(make_template_folder())])
    return make_interpreter(path, f"{before}\n{start} || exit\n{after}")


def is_running(pid: int) -> bool:
    """Return whether the process exists and is no zombie (which only waits for its parent to read how it ended)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def await_end(pid: int) -> None:
    """Return when the process has ended."""
    wait_for(lambda: not is_running(pid), f"the end of process {pid}")


def read_log(log: Path) -> list[tuple[str, int]]:
    """Return cell_id and repeat of each start, in order."""
    lines = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
    return [(cell_id, int(repeat)) for cell_id, repeat, *_ in lines]


def read_pids(log: Path) -> list[int]:
    """Return the process of each start, in order."""
    return [int(line.split()[3]) for line in log.read_text().splitlines()] if log.exists() else []


@cache
def make_template_folder() -> Path:
    """Return the folder of this process's templates, which ends with it."""
    folder = Path(tempfile.mkdtemp(prefix="records-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def put_result(log: Path, num_samples_that_fit: int, templates: Path) -> None:
    """Do what the order in the environment asks for, in no time. Exit code 3 where another one does so now."""
    run_id, repeat, attempt = os.environ["BENCH_RUN_ID"], int(os.environ["BENCH_REPEAT"]), os.environ["BENCH_ATTEMPT"]
    text = read_template(num_samples_that_fit, templates)
    for name, value in (("run_id", run_id), ("repeat", repeat), ("attempt", attempt)):
        # In its line: the text stays as the contract writes numbers.
        text = re.sub(rf'^ "{name}": [^,\n]+', f' "{name}": {json.dumps(value)}', text, count=1, flags=re.MULTILINE)
    place = str(json.loads(text)["cell_id"]), repeat, attempt
    others = read_pids(log)
    with log.open("a") as file:
        file.write(" ".join(map(str, (*place, os.getpid()))) + "\n")
    if any(is_running(pid) for pid in others):
        sys.exit(3)
    put_text(os.environ["BENCH_STORE"], f"runs/{run_id}/results/{place[0]}/{repeat}-{attempt}.json", text)


def put_text(url: str, key: str, text: str) -> None:
    """Put an object into a store as `Store.put` does: a file whole, or not at all."""
    if not url.startswith("file://"):
        from bench.store import Store

        Store.open(url).put(key, text.encode())
        return
    path = Path(url.removeprefix("file://"), key)
    path.parent.mkdir(parents=True, exist_ok=True)
    staged = path.with_name(f"{path.name}#{os.getpid()}")
    try:
        staged.write_text(text)
        staged.replace(path)
    finally:
        staged.unlink(missing_ok=True)


def read_template(num_samples_that_fit: int, folder: Path) -> str:
    """Return a record of the ordered cell as JSON, of any run, repeat and attempt."""
    parts = [str(num_samples_that_fit), *(os.environ.get(name) for name in TEMPLATE_VARIABLES)]
    path = folder / hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    with suppress(OSError):
        return path.read_text()
    from stand_in_records import make_record

    text = make_record(num_samples_that_fit).to_json().decode()
    with suppress(OSError):  # a process that may write little, or nothing there, has none to leave
        own = folder / f"{path.name}-{os.getpid()}"
        own.write_text(text)
        own.replace(path)
    return text


if __name__ == "__main__":
    put_result(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
