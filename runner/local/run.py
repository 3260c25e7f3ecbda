"""Choose which run of a matrix to measure on this machine, and measure what it lacks."""

import shutil
import signal
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import FrameType

from rich.console import Console

from bench.errors import UserError
from bench.schema import Framework, Run
from bench.store import Store
from runner.images.names import Flavour
from runner.local.caps import CapOptions, LocalCaps, check_prices
from runner.local.executor import LocalExecutor
from runner.local.hardware import find_gpu
from runner.local.host_lock import hold_host_lock
from runner.local.install_progress import InstallProgress
from runner.local.planning import plan_local_run
from runner.local.progress import Progress
from runner.local.virtual_environments import describe_missing, list_missing, list_present, prepare_virtual_environments
from runner.matrix.expansion import load_matrix
from runner.matrix.plan import Repeat
from runner.records import Records, RecordSnapshot, Retries
from runner.run_events import RunEvents
from runner.runs import (
    check_run_id,
    check_still_stored,
    choose_run,
    count_failed,
    describe_damage,
    describe_plan,
    read_run,
    select_missing,
    store_plan,
)
from runner.signal_handlers import handle_signals

# Handled like Ctrl-C: what is finished stays, the measuring process is killed.
ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


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
        if self.caps.max_cost is not None:
            check_prices(self.caps, (planned.cell.device for planned in plan.cells))
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

        `retry_command`: measures contaminated repeats again; None: nobody is told while others disturb the run.
        `events`: where the repeats are shown as JSON lines, and not on the console.
        """
        records = Records.of(self.store, run)
        if not self._select_missing(run, records.read_snapshot()):
            console.print(f"run {run.run_id}: all {run.num_repeats} repeats are there, nothing is measured")
            return
        with hold_host_lock(run.run_id) as lock:
            self._store_plan(run, console)
            snapshot = records.read_snapshot()  # again: a dead runner's last process may have ended well since
            repeats = self._select_missing(run, snapshot)
            _describe(run, repeats, snapshot, resume_command, console)
            caps = LocalCaps.of(self.caps, run, snapshot.seconds)
            interpreters = self._find_interpreters(repeats, console, lock)
            with self._show_progress(run, snapshot, repeats, console, events, retry_command) as progress:
                executor = self._make_executor(run, interpreters, lock, progress)
                ended = executor.measure_repeats(repeats, caps)
            _describe_cap(ended, run, console)

    def _make_executor(
        self, run: Run, interpreters: Mapping[Framework, Path], lock: int, progress: Progress
    ) -> LocalExecutor:
        return LocalExecutor(
            run_id=run.run_id,
            store=self.store,
            interpreters=interpreters,
            lock=lock,
            observer=progress,
            check_store=partial(check_still_stored, self.store, run.run_id),
        )

    def _find_interpreters(self, repeats: Sequence[Repeat], console: Console, lock: int) -> Mapping[Framework, Path]:
        frameworks = {repeat.planned.cell.framework for repeat in repeats}
        return find_interpreters(frameworks, self.interpreters, console, lock)

    def _show_progress(
        self,
        run: Run,
        snapshot: RecordSnapshot,
        repeats: Sequence[Repeat],
        console: Console,
        events: RunEvents | None,
        retry_command: str | None,
    ) -> Progress:
        """Return what shows the progress of these repeats, beside those that the run has already."""
        num_failed = 0 if self.retries.failed else count_failed(run, snapshot)
        return Progress(
            console,
            repeats,
            num_ok=run.num_repeats - len(repeats) - num_failed,
            num_failed=num_failed,
            num_contaminated=len(snapshot.contaminated - {repeat.key for repeat in repeats}),
            events=events,
            retry_command=retry_command,
        )

    def describe_installation(self, run: Run) -> str | None:
        """Return what the run installs before it measures, how much that is, and what is there; None: neither."""
        frameworks = sorted({planned.cell.framework for planned in run.cells} - self.interpreters.keys())
        flavour = _find_flavour()
        missing, present = list_missing(frameworks, flavour), list_present(frameworks, flavour)
        parts = [f"to be installed first: {describe_missing(missing)}"] if missing else []
        parts += [f"installed already: {', '.join(one.directory.name for one in present)}"] if present else []
        return "; ".join(parts) or None

    def _store_plan(self, run: Run, console: Console) -> None:
        if read_run(self.store, run.run_id):
            console.print(f"run {run.run_id} is resumed (--new starts another)")
        else:
            store_plan(self.store, run)
            console.print(f"run {run.run_id}")

    def _select_missing(self, run: Run, snapshot: RecordSnapshot) -> list[Repeat]:
        return select_missing(run, snapshot, self.retries)


def _describe_cap(ended: str | None, run: Run, console: Console) -> None:
    """Print that a cap ended the run, for the reason `ended`; nothing where none did."""
    if ended is not None:
        console.print(f"{ended}: what is missing is not measured; a later cap and --run-id {run.run_id} resume it")


def _describe(
    run: Run, repeats: Sequence[Repeat], snapshot: RecordSnapshot, resume_command: str, console: Console
) -> None:
    """Print what will be measured, which records are damaged, and how to resume."""
    describe_plan(run, repeats, console.print)
    describe_damage(snapshot, console.print)
    console.print(f"to resume after an interruption: {resume_command}", style="dim", soft_wrap=True)


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


class EndRequested(KeyboardInterrupt):
    """A signal has asked the process to end. It ends what runs as Ctrl-C does; only the exit code tells them apart."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal_number)
        self.signal_number = signal_number


@contextmanager
def end_like_interrupt() -> Iterator[None]:
    """Make SIGTERM and SIGHUP end the block as Ctrl-C does, with EndRequested. An ignored signal stays ignored.

    So does each of them after the first: a terminal that is closed sends two, which would end the tidying up.
    """

    def interrupt(signal_number: int, frame: FrameType | None) -> None:
        for number in ENDING_SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        raise EndRequested(signal_number)

    with handle_signals(ENDING_SIGNALS, interrupt):
        yield
