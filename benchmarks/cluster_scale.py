"""Measures the runner on a real control plane: rendering, submission, whole runs, resuming.

Every figure of speed is a ratio, or stands beside that of a bare loop of the official client on the same Jobs in the
same run. Nodes are objects with capacity; a process of its own plays their kubelets (tests/fake_kubelet.py).

    python benchmarks/cluster_scale.py render submit run resume --cells 1000
"""

import argparse
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "cluster")]

from bare_loop import time_bare_run, time_bare_submission  # noqa: E402
from cluster_setup import (  # noqa: E402
    EnoughReached,
    MeteredConnection,
    Observer,
    make_session,
    play_kubelets,
    prepare,
    start_plane,
)
from runs import Setup  # noqa: E402

from bench.store import Store  # noqa: E402
from control_plane import ControlPlane, find_assets  # noqa: E402
from runner.kubernetes.rendering import JobRenderer  # noqa: E402
from runner.kubernetes.tracked_jobs import TrackedJob  # noqa: E402

RENDER_TARGET, SUBMIT_TARGET, RUN_TARGET, RESUME_TARGET, GAP_TARGET = 1000.0, 0.9, 1.25, 5.0, 1.0
REQUESTS_TARGET, MEMORY_TARGET = 3.0, 250.0


def main() -> None:
    """Run the benchmarks that the command line names, and print their figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="+", choices=PARTS)
    parser.add_argument("--cells", type=int, default=1000)
    parser.add_argument("--turns", type=int, default=3, help="Of bare loop and runner, for `submit`.")
    parser.add_argument("--max-in-flight", type=int, default=500)
    parser.add_argument("--stock-limits", action="store_true", help="Leave the limits of the controllers as they come.")
    arguments = parser.parse_args()
    assets = find_assets()
    if assets is None:
        sys.exit("no control plane: see tests/control_plane.py for where its binaries are expected")
    for part in arguments.parts:
        with (
            tempfile.TemporaryDirectory() as folder,
            start_plane(Path(folder), assets, has_stock_limits=arguments.stock_limits) as plane,
        ):
            PARTS[part](arguments, plane, Store.open(f"file://{folder}/store"))


def measure_render(arguments: argparse.Namespace, plane: ControlPlane, store: Store) -> None:
    """Print Jobs rendered and checked per second."""
    _, renderer, jobs = prepare(plane, store, arguments.cells)
    start = time.perf_counter()
    size = sum(len(renderer.render(tracked.repeat.planned, tracked.key)) for tracked in jobs)
    rate = arguments.cells / (time.perf_counter() - start)
    report("render", f"{rate:,.0f} Jobs/s of {size / arguments.cells:,.0f} bytes", RENDER_TARGET, rate >= RENDER_TARGET)


def measure_submit(arguments: argparse.Namespace, plane: ControlPlane, store: Store) -> None:
    """Print the rate of submission over that of a bare loop, in turns."""
    ratio = median(compare_submission(arguments.cells, arguments.turns, plane, store))
    report("submit", f"{ratio:.3f} times as fast as the bare loop", SUBMIT_TARGET, ratio >= SUBMIT_TARGET)


def compare_submission(num_cells: int, num_turns: int, plane: ControlPlane, store: Store) -> list[float]:
    """Return the bare loop's seconds over the runner's, turn by turn; the Jobs are suspended, so no pods follow."""
    ratios = []
    for turn in range(num_turns):
        bare = time_bare_submission(*prepare(plane, store, num_cells, queue="none"))
        own = time_submission(*prepare(plane, store, num_cells, queue="none"))
        ratios.append(bare / own)
        rates = [f"{num_cells / seconds:.0f} Jobs/s" for seconds in (bare, own)]
        print(f"submit, turn {turn + 1}: bare loop {rates[0]}, runner {rates[1]}", flush=True)
    return ratios


def measure_run(arguments: argparse.Namespace, plane: ControlPlane, store: Store) -> None:
    """Print the wall time of a whole run over that of a bare loop that makes the same Jobs and waits for them.

    Each has a control plane of its own: ten thousand Jobs that lie there slow down what comes after them.
    """
    with (
        tempfile.TemporaryDirectory() as folder,
        start_plane(Path(folder), plane.assets, has_stock_limits=plane.has_stock_limits) as other,
        play_kubelets(other, store),
    ):
        bare = time_bare_run(*prepare(other, store, arguments.cells))
    print(f"run: bare loop {bare:.0f} s, {arguments.cells / bare:.1f} cells/s", flush=True)
    os.environ["KUBECONFIG"] = str(plane.kubeconfig)
    with play_kubelets(plane, store):
        setup, renderer, _ = prepare(plane, store, arguments.cells)
        connection, observer = MeteredConnection(context=plane.context), Observer()
        session = make_session(setup, renderer, connection, observer, arguments.max_in_flight)
        start = time.monotonic()
        session.measure()
        own = time.monotonic() - start
    report("run", f"{own:.0f} s, {own / bare:.3f} times the bare loop", RUN_TARGET, own / bare <= RUN_TARGET)
    print(f"run: {len(setup.count_records())} records, {observer.num_bad} not ok, {dict(connection.num_requests)}")
    num_requests = sum(connection.num_requests.values()) / arguments.cells
    report("run", f"{num_requests:.3f} requests per cell", REQUESTS_TARGET, num_requests <= REQUESTS_TARGET)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    report("run", f"{memory:.0f} MiB at most, this program's own included", MEMORY_TARGET, memory <= MEMORY_TARGET)
    # With all places taken, the k-th end makes room for the Job that is so many places behind it.
    following = connection.created[arguments.max_in_flight :]
    gaps = sorted(max(0.0, made - ended) for ended, made in zip(session.handled_ends, following, strict=False))
    if gaps:
        gap = gaps[int(0.99 * (len(gaps) - 1))]
        report("run", f"{gap:.3f} s from an end to the next Job at p99 of {len(gaps)}", GAP_TARGET, gap <= GAP_TARGET)


def measure_resume(arguments: argparse.Namespace, plane: ControlPlane, store: Store) -> None:
    """Print how long a runner takes from its start until it knows of every Job and record of a run."""
    setup, renderer, jobs = prepare(plane, store, arguments.cells, queue="none")
    time_bare_submission(setup, renderer, jobs)
    observer = Observer(lambda jobs: jobs.count("in-flight") == len(jobs))
    start = time.monotonic()
    session = make_session(setup, renderer, MeteredConnection(context=plane.context), observer, arguments.max_in_flight)
    with suppress(EnoughReached):
        session.measure()
    seconds = time.monotonic() - start
    report("resume", f"{seconds:.2f} s for {arguments.cells} Jobs", RESUME_TARGET, seconds <= RESUME_TARGET)


def report(part: str, text: str, target: float, is_met: bool) -> None:
    """Print a figure with its target."""
    print(f"{part}: {text}, target {target:g}: {'met' if is_met else 'MISSED'}", flush=True)


PARTS: dict[str, Callable[[argparse.Namespace, ControlPlane, Store], None]] = {
    "render": measure_render,
    "submit": measure_submit,
    "run": measure_run,
    "resume": measure_resume,
}


def time_submission(setup: Setup, renderer: JobRenderer, jobs: Sequence[TrackedJob]) -> float:
    """Return the seconds from the session's first request for a Job to its last."""
    connection = MeteredConnection(context=setup.connection.context)
    observer = Observer(lambda jobs: jobs.count("to-submit", "submitting") == 0)
    with suppress(EnoughReached):
        make_session(setup, renderer, connection, observer, len(jobs)).measure()
    return connection.created[-1] - connection.created[0]


if __name__ == "__main__":
    main()
