"""Choose which run of a matrix to measure on this machine, and measure what it lacks."""

import hashlib
import json
import os
import secrets
import shutil
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path
from statistics import fmean
from tempfile import mkdtemp

from rich.console import Console

from bench.errors import UserError
from bench.registry import FRAMEWORKS, Device
from bench.registry.plugins import list_plugins
from bench.schema import (
    Failure,
    Framework,
    InvalidDocumentError,
    Result,
    Run,
    Status,
    TenantRecord,
    bound_time,
    read_result,
    read_time_of_day,
)
from bench.store import KeyMissing, Store, result_key, run_key
from bench.tenants.meeting import Meeting
from bench.worker.delivery import find_spare
from bench.worker.request import Order, read_timing_variables
from runner.images import Flavour
from runner.local.hardware import find_gpu, plan_local_run, share_device
from runner.local.installer import hide_python_path
from runner.local.process import ProcessEnd, ProcessNotStarted, hold_host_lock, run_processes
from runner.local.virtual_environments import describe_missing, locate_environments, prepare_virtual_environments
from runner.matrix import Repeat, RepeatKey, load_matrix
from runner.processes import BAD_ALLOC, name_signal
from runner.progress import LocalProgress, RunEvents
from runner.runs import Records, RunRequest, begin_run, check_still_stored, measure_attempt, select_missing
from runner.sources import find_cache_folder, locate_sources, read_git_revision

SECONDS_PER_HOUR = 3600.0


@dataclass(kw_only=True)
class LocalCaps:
    """Says before each repeat of a run whether it may begin, by a deadline and by a cap on the cost."""

    deadline_seconds: float | None = None
    """Counted from the beginning of the run."""
    max_cost: float | None = None
    prices: Mapping[Device, float] = field(default_factory=dict)
    """Of this machine per hour, by the device of the cells that it measures."""
    currency: str = "USD"
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def check_prices(self, devices: Iterable[Device]) -> None:
        missing = [] if self.max_cost is None else sorted(set(devices) - self.prices.keys())
        if missing:
            raise UserError(
                f"--max-cost: what an hour of this machine costs for {missing[0]} cells is not known; name its machine "
                f"type with --machine {missing[0]}=MACHINE, and with --prices FILE where the tool has no price of it"
            )

    def begin(self, run: Run, seconds: Mapping[RepeatKey, float]) -> None:
        """Count from what the repeats of the run that are there have taken."""
        limit = self.deadline_seconds
        self.deadline = None if limit is None else min(run.created_at, self.now()) + timedelta(seconds=limit)
        devices = {planned.cell.cell_id: planned.cell.device for planned in run.cells}
        self._seconds: defaultdict[Device, list[float]] = defaultdict(list)
        for (cell_id, _), duration in seconds.items():
            if cell_id in devices:
                self._seconds[devices[cell_id]].append(duration)

    def add(self, result: Result) -> None:
        self._seconds[result.cell.device].append(measure_attempt(result.started_at, result.finished_at))

    @property
    def cost(self) -> float:
        return sum(price * sum(self._seconds[device]) / SECONDS_PER_HOUR for device, price in self.prices.items())

    def explain_end(self, device: Device) -> str | None:
        """Return why the run must not begin a repeat on this device; None if it may.

        A repeat is expected to cost what those of its device that have ended cost on average; as long as none has, it
        may begin while the cost is below the cap. A repeat that runs is not ended: its time limit does that.
        """
        taken = self._seconds[device]
        if self.deadline is not None and self.now() >= self.deadline:
            return f"the deadline of {self.deadline_seconds:g} s has passed"
        if self.max_cost is None:
            return None
        spent = f"the run has cost about {self.cost:.2f} {self.currency}"
        if not taken:
            return None if self.cost < self.max_cost else f"{spent}, which reaches --max-cost {self.max_cost:g}"
        if self.cost + self.prices[device] * fmean(taken) / SECONDS_PER_HOUR <= self.max_cost:
            return None
        return f"{spent}; one more repeat would pass --max-cost {self.max_cost:g}"


@dataclass(frozen=True, kw_only=True)
class LocalExecutor:
    """Measures the repeats of one run on this machine, with one interpreter per framework."""

    run_id: str
    store: Store
    interpreters: Mapping[Framework, Path]
    lock: int
    """File descriptor of the lock on this machine, which every measuring process inherits."""
    on_tick: Callable[[], None] = lambda: None
    """Is called about once a second while a repeat is measured."""
    own_python_path: Set[Framework] = frozenset()
    """Frameworks whose interpreter the user gave: PYTHONPATH and the user's packages are a part of it."""
    memory_limit_bytes: int | None = None
    """Memory that the processes of a repeat may take before they are killed; None for no limit."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of every measuring process, beside this process's and those of its order."""

    def measure_repeat(self, repeat: Repeat) -> Result:
        """Measure one repeat, in a process of its own for each tenant."""
        cell, timeout_seconds = repeat.planned.cell, repeat.planned.timeout_seconds
        attempts = [secrets.token_hex(5) for _ in range(cell.tenants)]
        orders = [
            Order(
                cell=cell,
                run_id=self.run_id,
                repeat=repeat.number,
                attempt=attempt,
                store_url=self.store.url,
                git_revision=read_git_revision(),  # not the run's: it may be resumed after a change
                parent_pid=os.getpid(),
                tenant=tenant,
                tenant_group=attempts[0] if cell.tenants > 1 else None,
            )
            for tenant, attempt in enumerate(attempts)
        ]

        def record_end(tenant: int, end: ProcessEnd) -> None:
            if tenant > 0:
                self._record_tenant(orders[tenant], end, timeout_seconds)

        started_at, start = read_time_of_day(), time.monotonic()
        end: ProcessEnd | ProcessNotStarted
        # Without what would change what is measured, and without another order.
        held_back, environ = read_timing_variables(os.environ).keys(), os.environ
        inherited = {name: environ[name] for name in environ.keys() - held_back if not name.startswith("BENCH_")}
        if cell.framework not in self.own_python_path:
            inherited = hide_python_path(inherited)
        try:
            with share_device(cell, keep_open=[self.lock]) as shared:
                pairs = zip(orders, shared, strict=True)
                end = run_processes(
                    [str(self.interpreters[cell.framework]), "-m", "bench"],
                    variables=[_make_variables(order, {**inherited, **self.variables, **own}) for order, own in pairs],
                    timeout_seconds=timeout_seconds,
                    on_tick=self.on_tick,
                    on_end=record_end,
                    keep_open=[self.lock],
                    memory_limit_bytes=self.memory_limit_bytes,
                )[0]
        except ProcessNotStarted as reason:
            end = reason
        finally:
            if cell.tenants > 1:
                Meeting(store=self.store, order=orders[0]).clear()  # tenant 0 has unless it died
        # Not the time of day again: it may have been set since.
        span = started_at, bound_time(started_at + timedelta(seconds=time.monotonic() - start))
        return self._read_or_write_record(orders[0], end, span, timeout_seconds)

    def _record_tenant(self, order: Order, end: ProcessEnd, timeout_seconds: float) -> None:
        """Leave the record of a tenant that died before it could: the others need not wait for it."""
        key = Meeting(store=self.store, order=order).find_key("end", order.tenant)
        try:
            self.store.get(key)
        except KeyMissing:
            status, error = explain_end(end, timeout_seconds)
            self.store.put(key, TenantRecord(tenant=order.tenant, status=status, error=error).to_json())

    def _read_or_write_record(
        self, order: Order, end: ProcessEnd | ProcessNotStarted, span: tuple[datetime, datetime], timeout_seconds: float
    ) -> Result:
        """Return the record that the process wrote, or write one if it died before; `span`: when it began and ended."""
        key = result_key(order.run_id, order.cell.cell_id, order.repeat, order.attempt)
        try:
            return read_result(self.store.get(key))
        except KeyMissing:
            status, error = explain_end(end, timeout_seconds)
            if (spare := find_spare(key)).exists():
                raise UserError(  # noqa: B904  (that there is no record is no cause)
                    f"{self.store.url}: the record of a measured repeat could not be written; it lies in {spare}, from "
                    f"where it can be copied to {key}. What the cell wrote last:\n{error.stderr_tail.strip()}"
                )
        except InvalidDocumentError as reason:  # of another version of `bench`, such as a checkout updated meanwhile
            raise UserError(
                f"{self.store.url}/{key}: the record that the cell wrote cannot be read ({reason}); give the same "
                "command again: the repeat is measured again"
            ) from reason
        result = Result(
            run_id=order.run_id,
            cell=order.cell,
            cell_id=order.cell.cell_id,
            repeat=order.repeat,
            attempt=order.attempt,
            status=status,
            written_by="runner",
            started_at=span[0],
            finished_at=span[1],
            error=error,
        )
        self.store.put(key, result.to_json())
        return result


def explain_end(end: ProcessEnd | ProcessNotStarted, timeout_seconds: float) -> tuple[Status, Failure]:
    if isinstance(end, ProcessNotStarted):
        return "failed", Failure(kind="exit", message=f"the process could not be started: {end}")
    tail = end.tail
    if end.how == "timed-out":
        message = f"still running after timeout_seconds = {timeout_seconds:g}; killed with all it had started"
        return "timeout", Failure(kind="timeout", message=message, signal="SIGKILL", stderr_tail=tail)
    if end.how != "ended":
        message = "took more memory than it was allowed to; killed with all it had started"
        if end.how == "oom-killed":
            message = "killed by the kernel's OOM killer: the cell needs more memory than the machine or its cgroup has"
        return "oom", Failure(kind="out-of-memory", message=message, signal="SIGKILL", stderr_tail=tail)
    if BAD_ALLOC in tail:
        message = f"C++ got no memory ({BAD_ALLOC}), and the framework ended the process"
        return "oom", Failure(kind="out-of-memory", message=message, stderr_tail=tail)
    if end.returncode < 0:
        name = name_signal(-end.returncode)
        return "failed", Failure(kind="killed", message=f"ended by {name}", signal=name, stderr_tail=tail)
    message = f"ended with exit code {end.returncode} and left no result"
    return "failed", Failure(kind="exit", message=message, exit_code=end.returncode, stderr_tail=tail)


def _make_variables(order: Order, given: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a measuring process: those `given`, the order, `bench` first on the path."""
    plugins = link_plugins()
    path = [str(locate_sources() / "images" / "bench" / "src"), *plugins, *filter(None, [given.get("PYTHONPATH")])]
    python = {
        "PYTHONPATH": os.pathsep.join(path),
        "PYTHONSAFEPATH": "1",  # else a bench.py in the working directory would run instead
        "PYTHONUNBUFFERED": "1",
    }
    return {**given} | order.to_variables() | python


@cache
def link_plugins() -> tuple[str, ...]:
    """Return the folder of links to each plugin's package and metadata, for measuring processes; empty without any."""
    targets = set[Path]()
    for _, distribution, package in list_plugins():
        metadata = f"{distribution.name.replace('-', '_')}-{distribution.version}.dist-info"
        targets |= {package, Path(str(distribution.locate_file(metadata)))}
    if not targets:
        return ()
    listed = sorted(str(target) for target in targets)
    folder = find_cache_folder() / "plugins" / hashlib.sha256("\n".join(listed).encode()).hexdigest()[:16]
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = Path(mkdtemp(dir=folder.parent))
        for target in targets:
            (made / target.name).symlink_to(target)
        try:
            made.rename(folder)
        except OSError:
            if not folder.exists():
                raise
            shutil.rmtree(made)  # another run has made it meanwhile
    return (str(folder),)


# By module, the name that pip knows it by.
PACKAGES = {"pynvml": "nvidia-ml-py", "PIL": "pillow"}
BENCH_MODULES = ("numpy", "obstore", "pydantic", "pynvml")
BESIDE: dict[Framework, tuple[str, ...]] = {"pytorch": ("torchvision",), "tensorflow": ("keras",), "jax": ("keras",)}
DATA_MODULES: dict[Framework, tuple[str, ...]] = {"jax": ("grain", "PIL")}
"""For cells with real data."""
LOOK_SECONDS = 60.0
"""For an interpreter to say what it has; one that does not is taken to have everything."""
LOOK = (
    "import json, sys; from importlib.util import find_spec; "
    "print(json.dumps([name for name in sys.argv[1:] if find_spec(name) is None]))"
)


@dataclass(frozen=True, kw_only=True)
class LocalRun(RunRequest):
    """What to run on this machine, and how."""

    interpreters: Mapping[Framework, Path]
    """Used instead of virtual environments, which are not made for these frameworks."""
    caps: LocalCaps = field(default_factory=LocalCaps)
    """When the run ends before everything is measured."""
    assumes_gpu: bool = False
    """Whether cells for a GPU are planned where there is none: a dry run prices them on the machine that was named."""

    def make_plan(self) -> Run:
        matrix = load_matrix(self.matrix)
        plan = plan_local_run(matrix, gpu=find_gpu(), run_id=self.run_id, assumes_gpu=self.assumes_gpu)
        self.caps.check_prices(planned.cell.device for planned in plan.cells)
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
        """Measure every repeat that the run lacks, but cells whose interpreter of --python lacks a module.

        `retry_command`: measures contaminated repeats again; None: nobody is told while others disturb the run.
        `events`: where the repeats are shown as JSON lines, and not on the console. UserError if another run measures
        on this machine.
        """
        records = Records(self.store, run.run_id)
        if not select_missing(run, records.read_snapshot(), self.retries):
            console.print(f"run {run.run_id}: all {run.num_repeats} repeats are there, nothing is measured")
            return
        self.store.check_writable(run_key(run.run_id))
        with hold_host_lock(run.run_id) as lock:
            snapshot = records.read_snapshot()  # again: a dead runner's last process may have ended well since
            missing = select_missing(run, snapshot, self.retries)
            repeats, reasons = leave_out_unequipped(missing, self.interpreters)
            if missing and not repeats:
                raise UserError("; ".join(reasons))
            begin_run(self.store, run, snapshot, missing, console)
            for reason in reasons:
                console.print(f"left out: {reason}", style="yellow", highlight=False, soft_wrap=True)
            if held_back := sorted(read_timing_variables(os.environ).keys() - run.environment.keys()):
                text = f"not set for what is measured: {', '.join(held_back)}"
                console.print(f"{text}; a matrix sets variables under `environment`", highlight=False, soft_wrap=True)
            console.print(f"to resume after an interruption: {resume_command}", style="dim", soft_wrap=True)
            frameworks = {repeat.planned.cell.framework for repeat in repeats}
            progress = LocalProgress(console, repeats, events, retry_command)
            executor = LocalExecutor(
                run_id=run.run_id,
                store=self.store,
                interpreters=find_interpreters(frameworks, self.interpreters, console, lock),
                own_python_path=self.interpreters.keys(),
                variables=run.environment,
                lock=lock,
                on_tick=progress.show,
            )
            self.caps.begin(run, snapshot.seconds)
            with progress:
                ended = self._measure_each(repeats, executor, progress)
            if ended:
                resumption = f"a later cap and --run-id {run.run_id} resume it"
                console.print(f"{ended}: what is missing is not measured; {resumption}")

    def _measure_each(self, repeats: Sequence[Repeat], executor: LocalExecutor, progress: LocalProgress) -> str | None:
        """Measure each repeat in turn; return why the caps ended the run before all were measured, if they did."""
        for repeat in repeats:
            if reason := self.caps.explain_end(repeat.planned.cell.device):
                return reason
            check_still_stored(self.store, executor.run_id)
            progress.start_repeat(repeat)
            result = executor.measure_repeat(repeat)
            progress.finish_repeat(repeat, result)
            self.caps.add(result)
        return None

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
    report = partial(console.print, highlight=False, markup=False, soft_wrap=True)
    return {**prepare_virtual_environments(wanted, _find_flavour(), report, keep_open=[lock]), **given}


def _find_flavour() -> Flavour:
    return "cpu" if find_gpu() is None else "cuda"


def leave_out_unequipped(
    repeats: Sequence[Repeat], interpreters: Mapping[Framework, Path]
) -> tuple[list[Repeat], list[str]]:
    """Return the repeats whose interpreter, if the user gave it, has what they need, and why others are left out."""
    kept = []
    left_out: defaultdict[tuple[Path, Framework, tuple[str, ...]], set[str]] = defaultdict(set)
    for repeat in repeats:
        cell = repeat.planned.cell
        python = interpreters.get(cell.framework)
        data = DATA_MODULES.get(cell.framework, ()) if cell.data_dir is not None else ()
        beside = BESIDE.get(cell.framework, ())
        modules = (*BENCH_MODULES, FRAMEWORKS[cell.framework].package, *beside, *data)
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
