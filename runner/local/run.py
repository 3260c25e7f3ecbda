"""Choose which run of a matrix to measure on this machine, and measure what it lacks."""

import json
import os
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from rich.console import Console

from bench.errors import UserError
from bench.schema import Framework, Run
from bench.store import Store
from runner.images import Flavour
from runner.local.executor import CapOptions, LocalCaps, LocalExecutor
from runner.local.hardware import find_gpu, plan_local_run
from runner.local.process import hold_host_lock
from runner.local.virtual_environments import (
    InstallProgress,
    describe_missing,
    locate_environments,
    prepare_virtual_environments,
)
from runner.matrix import Repeat, load_matrix
from runner.progress import LocalProgress, RunEvents
from runner.runs import (
    Records,
    Retries,
    check_run_id,
    choose_run,
    describe_damage,
    describe_plan,
    read_run,
    select_missing,
    store_plan,
)

# Handled like Ctrl-C: what is finished stays, the measuring process is killed.

# What an interpreter needs to measure, by module and by the name that pip knows it by.
PACKAGES = {"pynvml": "nvidia-ml-py", "PIL": "pillow"}
BENCH_MODULES = ("numpy", "obstore", "pydantic", "pynvml")
FRAMEWORK_MODULES: dict[Framework, tuple[str, ...]] = {
    "pytorch": ("torch", "torchvision"),
    "tensorflow": ("tensorflow", "keras"),
    "jax": ("jax", "keras"),
}
DATA_MODULES: dict[Framework, tuple[str, ...]] = {"jax": ("grain", "PIL")}
"""For cells with real data."""
LOOK_SECONDS = 60.0
"""For an interpreter to say what it has; one that does not is taken to have everything."""
LOOK = (
    "import json, sys; from importlib.util import find_spec; "
    "print(json.dumps([name for name in sys.argv[1:] if find_spec(name) is None]))"
)


@dataclass(frozen=True, kw_only=True)
class LocalRun:
    """What to run on this machine, and how."""

    matrix: str
    store: Store
    run_id: str | None
    start_new: bool
    retries: Retries
    interpreters: Mapping[Framework, Path]
    """Used instead of virtual environments, which are not made for these frameworks."""
    caps: CapOptions = field(default_factory=CapOptions)
    """When the run ends before everything is measured."""

    def choose_run(self) -> Run:
        """Return the run to resume (the one named, or this plan's newest unfinished one), or a new one.

        A new one is not stored: it is not known yet whether this machine is free to measure it.
        """
        if self.run_id is not None:
            check_run_id(self.run_id)
        return choose_run(
            self.store,
            self._plan,
            self.matrix,
            is_named=self.run_id is not None,
            start_new=self.start_new,
            retries=self.retries,
        )

    def _plan(self) -> Run:
        plan = plan_local_run(load_matrix(self.matrix), gpu=find_gpu(), run_id=self.run_id)
        self.caps.check_prices(planned.cell.device for planned in plan.cells)
        self.store.check_writable()
        return plan

    def measure(
        self,
        run: Run,
        console: Console,
        *,
        resume_command: str,
        retry_command: str | None = None,
        events: RunEvents | None = None,
    ) -> None:
        """Measure every repeat that the run lacks. Raise UserError if another run measures on this machine.

        Cells whose interpreter of --python lacks a module are left out, which is said once. `retry_command`: measures
        contaminated repeats again; None: nobody is told while others disturb the run. `events`: where the repeats are
        shown as JSON lines, and not on the console.
        """
        records = Records.of(self.store, run)
        if not select_missing(run, records.read_snapshot(), self.retries):
            console.print(f"run {run.run_id}: all {run.num_repeats} repeats are there, nothing is measured")
            return
        with hold_host_lock(run.run_id) as lock:
            snapshot = records.read_snapshot()  # again: a dead runner's last process may have ended well since
            missing = select_missing(run, snapshot, self.retries)
            repeats, reasons = leave_out_unequipped(missing, self.interpreters)
            if missing and not repeats:
                raise UserError("; ".join(reasons))
            if read_run(self.store, run.run_id):
                console.print(f"run {run.run_id} is resumed (--new starts another)")
            else:
                store_plan(self.store, run)
                console.print(f"run {run.run_id}")
            describe_plan(run, missing, console.print)
            describe_damage(snapshot, console.print)
            for reason in reasons:
                console.print(f"left out: {reason}", style="yellow", highlight=False, soft_wrap=True)
            console.print(f"to resume after an interruption: {resume_command}", style="dim", soft_wrap=True)
            frameworks = {repeat.planned.cell.framework for repeat in repeats}
            progress = LocalProgress(console, repeats, events, retry_command)
            executor = LocalExecutor(
                run_id=run.run_id,
                store=self.store,
                interpreters=find_interpreters(frameworks, self.interpreters, console, lock),
                lock=lock,
                observer=progress,
            )
            with progress:
                ended = executor.measure_repeats(repeats, LocalCaps(self.caps, run, snapshot.seconds))
            if ended is not None:
                console.print(
                    f"{ended}: what is missing is not measured; a later cap and --run-id {run.run_id} resume it"
                )

    def describe_installation(self, run: Run) -> str | None:
        """Return what the run installs first, what is there, and what given interpreters lack; None: nothing."""
        frameworks = sorted({planned.cell.framework for planned in run.cells} - self.interpreters.keys())
        environments = list(locate_environments(frameworks, _find_flavour()).values())
        present = [environment for environment in environments if environment.is_up_to_date()]
        missing = [environment for environment in environments if environment not in present]
        parts = [f"to be installed first: {describe_missing(missing)}"] if missing else []
        parts += [f"installed already: {', '.join(one.directory.name for one in present)}"] if present else []
        _, reasons = leave_out_unequipped([Repeat(planned=one, number=1) for one in run.cells], self.interpreters)
        return "; ".join([*parts, *(f"left out: {reason}" for reason in reasons)]) or None


def find_interpreters(
    frameworks: Set[Framework], given: Mapping[Framework, Path], console: Console, lock: int
) -> Mapping[Framework, Path]:
    """Return each framework's interpreter: the one given, else that of its virtual environment, made if missing."""
    wanted = sorted(frameworks - given.keys())
    if not wanted:
        return given
    with InstallProgress(console) as progress:
        made = prepare_virtual_environments(wanted, _find_flavour(), progress.report, keep_open=[lock])
    return {**made, **given}


def _find_flavour() -> Flavour:
    return "cpu" if find_gpu() is None else "cuda"


def leave_out_unequipped(
    repeats: Sequence[Repeat], interpreters: Mapping[Framework, Path]
) -> tuple[list[Repeat], list[str]]:
    """Return the repeats whose interpreter has every module that their cells need, and why the others are left out.

    `interpreters`: those that the user gave; the tool's own environments have everything.
    """
    kept = []
    left_out: defaultdict[tuple[Path, Framework, tuple[str, ...]], set[str]] = defaultdict(set)
    for repeat in repeats:
        cell = repeat.planned.cell
        python = interpreters.get(cell.framework)
        data = DATA_MODULES.get(cell.framework, ()) if cell.data_dir is not None else ()
        modules = (*BENCH_MODULES, *FRAMEWORK_MODULES[cell.framework], *data)
        if python is not None and (absent := _find_lacking(python, modules)):
            left_out[python, cell.framework, absent].add(cell.cell_id)
        else:
            kept.append(repeat)
    return kept, [
        f"{len(cells)} {framework} cell{'s' * (len(cells) > 1)}: {python} has no {', '.join(absent)}; install it with "
        f"`{python} -m pip install {' '.join(PACKAGES.get(name, name) for name in absent)}` and give the same command "
        "again, which measures what is missing"
        for (python, framework, absent), cells in sorted(left_out.items())
    ]


@cache
def _find_lacking(python: Path, modules: Sequence[str]) -> tuple[str, ...]:
    """Return those of the modules that an interpreter does not have. None is imported."""
    with suppress(OSError, subprocess.SubprocessError, ValueError):
        found = subprocess.run(
            [str(python), "-c", LOOK, *modules],
            env={**os.environ, "PYTHONSAFEPATH": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LOOK_SECONDS,
            check=True,
        )
        return tuple(sorted(set(json.loads(found.stdout)).intersection(modules)))
    return ()


def parse_interpreters(values: list[str], frameworks: tuple[Framework, ...]) -> dict[Framework, Path]:
    """Read the values of --python: `PATH` for every framework or `FRAMEWORK=PATH` for one."""
    interpreters: dict[Framework, Path] = {}
    for value in values:
        name, separator, path = value.partition("=")
        chosen = [framework for framework in frameworks if framework == name] if separator else list(frameworks)
        if not chosen:
            words = " or ".join(f"{framework}=PATH" for framework in frameworks)
            raise UserError(f"--python {value}: '{name}' is no framework; it takes PATH or {words}")
        found = shutil.which(path if separator else value)
        if not found:
            raise UserError(f"--python {value}: no such program; it takes the name or path of a Python interpreter")
        interpreters |= dict.fromkeys(chosen, Path(found).absolute())
    return interpreters
