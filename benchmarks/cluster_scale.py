"""A control plane's binaries in, the runner's figures on it out: rendering, submission, whole runs, resume.

Every figure of speed is a ratio, or stands beside that of a bare loop of the official client on the same Jobs in the
same run. Nodes are objects with capacity; a process of its own plays their kubelets (tests/fake_kubelet.py).

    python benchmarks/cluster_scale.py render submit run resume --cells 1000
"""

import argparse
import json
import multiprocessing
import os
import resource
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "cluster")]

import kubernetes.client  # noqa: E402
import kubernetes.config  # noqa: E402
import kubernetes.watch  # noqa: E402
from runs import Setup, make_cells, make_profile  # noqa: E402

from bench.schema import Result  # noqa: E402
from bench.store import Store  # noqa: E402
from control_plane import ControlPlane, find_assets  # noqa: E402
from fake_kubelet import FakeKubelet  # noqa: E402
from runner.kubernetes.connection import Connection  # noqa: E402
from runner.kubernetes.executor import ClusterExecutor  # noqa: E402
from runner.kubernetes.object_status import JobStatus  # noqa: E402
from runner.kubernetes.recording import ResultRecorder  # noqa: E402
from runner.kubernetes.rendering.job_template import JobRenderer  # noqa: E402
from runner.kubernetes.tasks import Task, Tasks  # noqa: E402

NUM_BARE_THREADS = 16
NUM_NODES = 50
RENDER_TARGET, SUBMIT_TARGET, RUN_TARGET, RESUME_TARGET, GAP_TARGET = 1000.0, 0.9, 1.25, 5.0, 1.0
REQUESTS_TARGET, MEMORY_TARGET = 3.0, 250.0


class Everything(Exception):  # noqa: N818  (an answer rather than an error)
    """What was waited for is there."""


class MeteredConnection(Connection):
    """Writes down when each Job was asked for."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.created: list[float] = []

    def request(self, verb: str, path: str, **options: Any) -> bytes:
        """Send a request, as Connection does."""
        if verb == "create":
            self.created.append(time.monotonic())
        return super().request(verb, path, **options)


class MeteredExecutor(ClusterExecutor):
    """Writes down when it first hears of each Job's end."""

    def measure(self, list_tasks: Callable[[], Tasks]) -> None:
        """Have every task measured, as ClusterExecutor does."""
        self.heard_ends: list[float] = []
        self._ended: set[str] = set()
        super().measure(list_tasks)

    def _update_job(self, job: JobStatus, is_gone: bool) -> None:
        if job.end and job.name not in self._ended:
            self._ended.add(job.name)
            self.heard_ends.append(time.monotonic())
        super()._update_job(job, is_gone)


class Observer:
    """Counts, and ends the run when `is_enough` says so."""

    def __init__(self, is_enough: Callable[[Tasks], bool] = lambda tasks: False) -> None:
        self.is_enough = is_enough
        self.num_bad = 0

    def tick(self, tasks: Tasks) -> None:
        """End the run where enough has happened."""
        if self.is_enough(tasks):
            raise Everything

    def finish_task(self, task: Task, result: Result) -> None:
        """Count what did not end well."""
        self.num_bad += result.status != "ok"

    def warn(self, message: str) -> None:
        """Print a warning: there should be none."""
        print(f"warning: {message}", flush=True)


def main() -> None:
    """Print the figures of the parts that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="+", choices=PARTS)
    parser.add_argument("--cells", type=int, default=1000)
    parser.add_argument("--turns", type=int, default=3, help="Of bare loop and runner, for `submit`.")
    parser.add_argument("--max-in-flight", type=int, default=500)
    arguments = parser.parse_args()
    assets = find_assets()
    if assets is None:
        sys.exit("no control plane: see tests/control_plane.py for where its binaries are looked for")
    for part in arguments.parts:
        with tempfile.TemporaryDirectory() as folder, start_plane(Path(folder), assets) as plane:
            PARTS[part](arguments, plane, Store.open(f"file://{folder}/store"))


@contextmanager
def start_plane(folder: Path, assets: Path) -> Iterator[ControlPlane]:
    """Have a control plane in `folder`, which KUBECONFIG leads to."""
    plane = ControlPlane(folder=folder / "plane", assets=assets)
    plane.start()
    os.environ["KUBECONFIG"] = str(plane.kubeconfig)
    try:
        yield plane
    finally:
        plane.stop()


def measure_render(arguments: argparse.Namespace, plane: ControlPlane, store: Store) -> None:
    """Print Jobs rendered and checked per second."""
    _, renderer, tasks = prepare(plane, store, arguments.cells)
    start = time.perf_counter()
    size = sum(len(renderer.render(task.repeat.planned, task.key)) for task in tasks)
    rate = arguments.cells / (time.perf_counter() - start)
    tell("render", f"{rate:,.0f} Jobs/s of {size / arguments.cells:,.0f} bytes", RENDER_TARGET, rate >= RENDER_TARGET)


def measure_submit(arguments: argparse.Namespace, plane: ControlPlane, store: Store) -> None:
    """Print the rate of submission over that of a bare loop, in turns; the Jobs are suspended, so no pods follow."""
    ratios = []
    for turn in range(arguments.turns):
        bare = time_bare_submission(*prepare(plane, store, arguments.cells, queue="none"))
        own = time_submission(*prepare(plane, store, arguments.cells, queue="none"))
        ratios.append(bare / own)
        rates = [f"{arguments.cells / seconds:.0f} Jobs/s" for seconds in (bare, own)]
        print(f"submit, turn {turn + 1}: bare loop {rates[0]}, runner {rates[1]}", flush=True)
    ratio = median(ratios)
    tell("submit", f"{ratio:.3f} times as fast as the bare loop", SUBMIT_TARGET, ratio >= SUBMIT_TARGET)


def measure_run(arguments: argparse.Namespace, plane: ControlPlane, store: Store) -> None:
    """Print the wall time of a whole run over that of a bare loop that makes the same Jobs and waits for them.

    Each has a control plane of its own: ten thousand Jobs that lie there slow down what comes after them.
    """
    with (
        tempfile.TemporaryDirectory() as folder,
        start_plane(Path(folder), plane.assets) as other,
        play_kubelets(other, store),
    ):
        bare = time_bare_run(*prepare(other, store, arguments.cells))
    print(f"run: bare loop {bare:.0f} s, {arguments.cells / bare:.1f} cells/s", flush=True)
    os.environ["KUBECONFIG"] = str(plane.kubeconfig)
    with play_kubelets(plane, store):
        setup, renderer, _ = prepare(plane, store, arguments.cells)
        connection, observer = MeteredConnection(context=plane.context), Observer()
        executor = make_executor(setup, renderer, connection, observer, arguments.max_in_flight)
        start = time.monotonic()
        executor.measure(lambda: list_tasks(setup))
        own = time.monotonic() - start
    tell("run", f"{own:.0f} s, {own / bare:.3f} times the bare loop", RUN_TARGET, own / bare <= RUN_TARGET)
    print(f"run: {len(setup.count_records())} records, {observer.num_bad} not ok, {dict(connection.num_requests)}")
    num_requests = sum(connection.num_requests.values()) / arguments.cells
    tell("run", f"{num_requests:.3f} requests per cell", REQUESTS_TARGET, num_requests <= REQUESTS_TARGET)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    tell("run", f"{memory:.0f} MiB at most, this program's own included", MEMORY_TARGET, memory <= MEMORY_TARGET)
    # With all places taken, the k-th end makes room for the Job that is so many places behind it.
    following = connection.created[arguments.max_in_flight :]
    gaps = sorted(max(0.0, made - ended) for ended, made in zip(executor.heard_ends, following, strict=False))
    if gaps:
        gap = gaps[int(0.99 * (len(gaps) - 1))]
        tell("run", f"{gap:.3f} s from an end to the next Job at p99 of {len(gaps)}", GAP_TARGET, gap <= GAP_TARGET)


def measure_resume(arguments: argparse.Namespace, plane: ControlPlane, store: Store) -> None:
    """Print how long a runner takes from its start until it knows of every Job and record of a run."""
    setup, renderer, tasks = prepare(plane, store, arguments.cells, queue="none")
    time_bare_submission(setup, renderer, tasks)
    observer = Observer(lambda tasks: tasks.count("in-flight") == len(tasks))
    start = time.monotonic()
    executor = make_executor(
        setup, renderer, MeteredConnection(context=plane.context), observer, arguments.max_in_flight
    )
    with suppress(Everything):
        executor.measure(lambda: list_tasks(setup))
    seconds = time.monotonic() - start
    tell("resume", f"{seconds:.2f} s for {arguments.cells} Jobs", RESUME_TARGET, seconds <= RESUME_TARGET)


def tell(part: str, text: str, target: float, is_met: bool) -> None:
    """Print a figure with its target."""
    print(f"{part}: {text}, target {target:g}: {'met' if is_met else 'MISSED'}", flush=True)


PARTS: dict[str, Callable[[argparse.Namespace, ControlPlane, Store], None]] = {
    "render": measure_render,
    "submit": measure_submit,
    "run": measure_run,
    "resume": measure_resume,
}


def prepare(
    plane: ControlPlane, store: Store, num_cells: int, queue: str | None = None
) -> tuple[Setup, JobRenderer, Sequence[Task]]:
    """Return a new run in a namespace of its own, what renders its Jobs, and its tasks."""
    connection = Connection(context=plane.context)
    name = f"scale-{uuid.uuid4().hex[:8]}"
    for path, kind, named in (
        ("/api/v1/namespaces", "Namespace", name),
        (f"/api/v1/namespaces/{name}/serviceaccounts", "ServiceAccount", "benchmatrix-cell"),
    ):
        body = {"apiVersion": "v1", "kind": kind, "metadata": {"name": named}}
        connection.request("create", path, body=json.dumps(body).encode())
    pool = make_profile(name).pools["cpu"].model_copy(update={"is_alone_on_node": False})
    profile = make_profile(name, pools={"cpu": pool})
    setup = Setup.make(connection, name, store, make_cells(num_cells), profile=profile)
    renderer = JobRenderer(profile=profile, store_url=store.url, git_revision=None, queue=queue)
    tasks = list(list_tasks(setup))
    renderer.render(tasks[0].repeat.planned, tasks[0].key)  # the one shape is checked before the clock starts
    return setup, renderer, tasks


def list_tasks(setup: Setup) -> Tasks:
    """Return the tasks that are missing."""
    return setup.make_cluster_run().list_tasks(setup.run)


def make_executor(
    setup: Setup, renderer: JobRenderer, connection: Connection, observer: Observer, max_in_flight: int
) -> "MeteredExecutor":
    """Return the real executor, which writes down when it hears of an end."""
    namespace = setup.profile.namespace
    return MeteredExecutor(
        connection=connection,
        namespace=namespace,
        run_id=setup.run.run_id,
        renderer=renderer,
        recorder=ResultRecorder(connection=connection, namespace=namespace, store=setup.store),
        observer=observer,
        max_in_flight=max_in_flight,
        unschedulable_seconds=900.0,
    )


def time_submission(setup: Setup, renderer: JobRenderer, tasks: Sequence[Task]) -> float:
    """Return the seconds from the executor's first request for a Job to its last."""
    connection = MeteredConnection(context=setup.connection.context)
    observer = Observer(lambda tasks: tasks.count("to-submit", "submitting") == 0)
    with suppress(Everything):
        make_executor(setup, renderer, connection, observer, len(tasks)).measure(lambda: list_tasks(setup))
    return connection.created[-1] - connection.created[0]


def time_bare_submission(setup: Setup, renderer: JobRenderer, tasks: Sequence[Task]) -> float:
    """Return the seconds that 16 threads of the official client take to send ready bodies."""
    bodies = [renderer.render(task.repeat.planned, task.key) for task in tasks]
    api = open_bare_client()
    start = time.monotonic()
    send_bare(api, setup.profile.namespace, bodies)
    return time.monotonic() - start


def time_bare_run(setup: Setup, renderer: JobRenderer, tasks: Sequence[Task]) -> float:
    """Return the seconds from the first create of a bare loop to the last Job's completion, by one watch."""
    bodies = [renderer.render(task.repeat.planned, task.key) for task in tasks]
    api, namespace = open_bare_client(), setup.profile.namespace
    start = time.monotonic()
    sender = threading.Thread(target=send_bare, args=(api, namespace, bodies))
    sender.start()
    done: set[str] = set()
    version = "0"
    while len(done) < len(bodies):
        watch = kubernetes.watch.Watch()
        stream = watch.stream(api.list_namespaced_job, namespace, resource_version=version, timeout_seconds=300)
        for event in stream:
            job = event["object"]
            version = job.metadata.resource_version
            if job.status.completion_time:
                done.add(job.metadata.name)
            if len(done) == len(bodies):
                break
    sender.join()
    return time.monotonic() - start


def open_bare_client() -> Any:
    """Return the official client's batch API over one pool of connections."""
    configuration = kubernetes.client.Configuration()
    kubernetes.config.load_kube_config(config_file=os.environ["KUBECONFIG"], client_configuration=configuration)
    configuration.connection_pool_maxsize = NUM_BARE_THREADS
    return kubernetes.client.BatchV1Api(kubernetes.client.ApiClient(configuration))


def send_bare(api: Any, namespace: str, bodies: Sequence[bytes]) -> None:
    """Send all bodies as they are from 16 threads, over the client's pool of connections."""
    client = api.api_client
    url = f"{client.configuration.host}/apis/batch/v1/namespaces/{namespace}/jobs"
    headers = {"Content-Type": "application/json", **client.default_headers}
    client.update_params_for_auth(headers, [], ["BearerToken"], "", "POST", None)

    def send(body: bytes) -> None:
        answer = client.rest_client.pool_manager.request("POST", url, body=body, headers=headers)
        assert answer.status == 201, answer.data

    with ThreadPoolExecutor(NUM_BARE_THREADS) as pool:
        list(pool.map(send, bodies))


@contextmanager
def play_kubelets(plane: ControlPlane, store: Store) -> Iterator[None]:
    """Have a process of its own play the kubelets of NUM_NODES nodes."""
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    process = context.Process(target=play, args=(plane.context, store.url, ready), daemon=True)
    process.start()
    ready.wait()
    try:
        yield
    finally:
        process.terminate()


def play(context: str, store_url: str, ready: Any) -> None:
    """Play the kubelets until killed."""
    kubelet = FakeKubelet(connection=Connection(context=context), store=Store.open(store_url))
    for number in range(NUM_NODES):
        kubelet.add_node(f"node-{number}", capacity={"cpu": "64", "memory": "256Gi", "pods": "500"})
    kubelet.start()
    ready.set()
    threading.Event().wait()


if __name__ == "__main__":
    main()
