"""A whole run on this machine: a matrix and a store in, every missing repeat measured; the finished Run out."""

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from rich.console import Console

from bench.errors import UserError
from bench.schema import Framework, Run
from bench.store import Store, run_key
from runner.environments import prepare_environments
from runner.hardware import count_gpus
from runner.host_lock import hold_host_lock
from runner.local import LocalExecutor
from runner.matrix import load_matrix
from runner.plan import Repeat, check_same_plan, find_unfinished_run, list_missing_repeats, plan_local_run, read_run
from runner.progress import InstallProgress, Progress

# Ended like Ctrl-C: what is finished stays, the process that measures is killed.
ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, kw_only=True)
class LocalRun:
    """What to run here, and how. `interpreters`: used instead of the images' environments, which are then not made."""

    matrix: str
    store: Store
    run_id: str | None
    start_new: bool
    retry_failed: bool
    interpreters: Mapping[Framework, Path]

    def choose_run(self, console: Console) -> Run:
        """Return the run to go on with (the one named, or this plan's newest unfinished one), or a new one, stored."""
        matrix = load_matrix(self.matrix)
        plan = plan_local_run(matrix, num_gpus=count_gpus(), run_id=self.run_id)
        self.store.check_writable()
        found = read_run(self.store, self.run_id) if self.run_id else None
        if found:
            check_same_plan(found, plan, matrix.source)
        elif not self.run_id and not self.start_new:
            found = find_unfinished_run(self.store, plan)
        if found:
            console.print(f"run {found.run_id} is taken up again (--new starts another)", highlight=False)
            return found
        self.store.put(run_key(plan.run_id), plan.to_json())
        console.print(f"run {plan.run_id}", highlight=False)
        return plan

    def measure(self, run: Run, console: Console) -> None:
        """Measure every repeat of the run that is missing. UserError where another run measures here."""
        repeats = list_missing_repeats(self.store, run, retry_failed=self.retry_failed)
        describe_plan(run, repeats, console)
        if not repeats:
            return
        with end_like_interrupt(), hold_host_lock(run.run_id) as lock:
            interpreters = self._find_interpreters(repeats, console)
            progress = Progress(console, repeats, num_done=run.num_repeats - len(repeats))
            with progress:
                executor = LocalExecutor(
                    run=run, store=self.store, interpreters=interpreters, lock=lock, observer=progress
                )
                executor.measure_repeats(repeats)

    def _find_interpreters(self, repeats: list[Repeat], console: Console) -> Mapping[Framework, Path]:
        frameworks = {repeat.planned.cell.framework for repeat in repeats}
        missing = sorted(frameworks - self.interpreters.keys())
        with InstallProgress(console) as progress:
            made = prepare_environments(missing, "cuda" if count_gpus() else "cpu", progress.report)
        return {**made, **self.interpreters}


def describe_plan(run: Run, missing: list[Repeat], console: Console) -> None:
    """Print how much is planned, how much of it is there, and what is left out for which reason."""
    planned = f"{len(run.cells)} cells, {run.num_repeats} repeats in all"
    done = run.num_repeats - len(missing)
    console.print(f"plan: {planned}; {done} there, {len(missing)} to measure", highlight=False)
    for reason in sorted({cell.reason for cell in run.left_out}):
        number = sum(cell.reason == reason for cell in run.left_out)
        console.print(f"left out: {number} cells: {reason}", highlight=False)


def parse_interpreters(values: list[str], frameworks: tuple[Framework, ...]) -> dict[Framework, Path]:
    """Read the values of --python: `PATH` for every framework or `FRAMEWORK=PATH` for one."""
    interpreters: dict[Framework, Path] = {}
    for value in values:
        name, separator, path = value.partition("=")
        chosen = [framework for framework in frameworks if framework == name] if separator else list(frameworks)
        if not chosen:
            raise UserError(
                f"--python {value}: '{name}' is no framework; it takes PATH or one of {', '.join(frameworks)}=PATH"
            )
        interpreter = Path(path if separator else value)
        if not interpreter.is_file():
            raise UserError(f"--python {value}: {interpreter} is no file; it takes the path of a Python interpreter")
        interpreters |= dict.fromkeys(chosen, interpreter.absolute())
    return interpreters


@contextmanager
def end_like_interrupt() -> Iterator[None]:
    """Have SIGTERM and SIGHUP end the block as Ctrl-C does: with KeyboardInterrupt."""

    def interrupt(signal_number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    previous = {number: signal.signal(number, interrupt) for number in ENDING_SIGNALS}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
