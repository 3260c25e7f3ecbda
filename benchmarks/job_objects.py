"""Compares one Job per repeat with one Indexed Job per shape, on a real control plane: time, requests, etcd, memory.

Nodes are objects with capacity; a process of its own plays their kubelets, whose pods end at once. All Jobs, or all
indexes, are there from the beginning. Each layout has a control plane of its own. Figures of speed are those of the
machine with everything else that runs on it: compare the two layouts of one call, not two calls.

    python benchmarks/job_objects.py --cells 1000 [--stock-limits]

On cores that others use, start one call with `--layout jobs` and one with `--layout indexed` at the same moment: both
then have the same neighbours, each other included.
"""

import argparse
import json
import math
import re
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "cluster")]

from bare_loop import open_bare_client, send_bare  # noqa: E402
from cluster_setup import play_kubelets, prepare, start_plane  # noqa: E402
from process_figures import read_cpu_seconds, read_memory  # noqa: E402
from runs import Setup  # noqa: E402

from bench.store import Store  # noqa: E402
from control_plane import ControlPlane, find_assets  # noqa: E402
from runner.kubernetes.connection import Connection  # noqa: E402

POLL_SECONDS, LINE_SECONDS = 5.0, 60.0
SETTLE_SECONDS = 15.0
"""After a compaction, until etcd's metrics no longer count the pages that it freed."""
NUM_NODES = 4
"""They take 1,024 pods at once. Each sends heartbeats, which cost the cores that all share."""
COUNTED = ("jobs", "pods", "events")
"""Resources whose requests are counted: the others are heartbeats of the nodes and of the controllers."""
REQUESTS = re.compile(r"^apiserver_request_total\{([^}]*)\} (\S+)$", re.MULTILINE)
LABEL = re.compile(r'(\w+)="([^"]*)"')
PARTS = ("etcd", "kube-apiserver", "kube-controller-manager")


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What a control plane says of itself at a moment."""

    requests: Counter[str]
    """By verb and resource, watches left out."""
    etcd_bytes: float
    """In use: the newest versions, and the history since the last compaction."""
    cpu_seconds: dict[str, float]
    """Of the processes of PARTS, since each started."""

    @classmethod
    def take(cls, plane: ControlPlane, connection: Connection) -> "Reading":
        """Read the metrics of API server and etcd."""
        requests: Counter[str] = Counter()
        for labels, number in REQUESTS.findall(connection.request("get", "/metrics").decode()):
            found = dict(LABEL.findall(labels))
            if found["resource"] in COUNTED and found["verb"] != "WATCH":
                requests[f"{found['verb']} {found['resource']}/{found['subresource']}".rstrip("/")] += int(
                    float(number)
                )
        with urllib.request.urlopen(f"http://127.0.0.1:{plane.etcd_port}/metrics") as answer:
            (size,) = re.findall(
                r"^etcd_mvcc_db_total_size_in_use_in_bytes (\S+)$", answer.read().decode(), re.MULTILINE
            )
        cpu_seconds = {part: read_cpu_seconds(plane.processes[part].pid) for part in PARTS}
        return cls(requests=requests, etcd_bytes=float(size), cpu_seconds=cpu_seconds)


def main() -> None:
    """Print the figures of both layouts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=1000)
    parser.add_argument("--stock-limits", action="store_true", help="Leave the limits of the controllers as they come.")
    parser.add_argument("--layout", choices=LAYOUTS, action="append", help="One of them only.")
    parser.add_argument(
        "--seconds",
        type=float,
        default=math.inf,
        help="Stop a layout after so long: its figures are then per cell that has ended, with all of them created.",
    )
    arguments = parser.parse_args()
    assets = find_assets()
    if assets is None:
        sys.exit("no control plane: see tests/control_plane.py for where its binaries are expected")
    for layout in arguments.layout or LAYOUTS:
        with (
            tempfile.TemporaryDirectory() as folder,
            start_plane(Path(folder), assets, has_stock_limits=arguments.stock_limits) as plane,
        ):
            store = Store.open(f"file://{folder}/store")
            measure(layout, plane, store, arguments.cells, limit_seconds=arguments.seconds)


def measure(layout: str, plane: ControlPlane, store: Store, num_planned: int, *, limit_seconds: float) -> None:
    """Print what one layout takes until all its pods have succeeded, or time is up, and what is left then."""
    with play_kubelets(plane, store, NUM_NODES):
        setup, renderer, jobs = prepare(plane, store, num_planned)
        bodies = [renderer.render(tracked.repeat.planned, tracked.key) for tracked in jobs]
        path = f"/apis/batch/v1/namespaces/{setup.profile.namespace}/jobs"
        before, start = Reading.take(plane, setup.connection), time.monotonic()
        LAYOUTS[layout](plane, bodies, path)
        number = await_success(layout, setup, path, num_planned, end=start + limit_seconds)
        seconds = time.monotonic() - start
        after = Reading.take(plane, setup.connection)
        plane.forget_history()
        time.sleep(SETTLE_SECONDS)
        newest = Reading.take(plane, setup.connection)
    requests = after.requests - before.requests
    stopped = "" if number == num_planned else f" of {num_planned}, stopped"
    print(f"{layout}: {number} cells{stopped} in {seconds:.0f} s, {number / seconds:.1f}/s")
    print(f"{layout}: {requests.total() / number:.2f} requests per cell: {dict(requests.most_common(9))}")
    for what, reading in (("with its history", after), ("newest versions", newest)):
        kilobytes = (reading.etcd_bytes - before.etcd_bytes) / number / 1e3
        print(f"{layout}: etcd {kilobytes:.1f} kB per cell in use at the end, {what}")
    cpu = {part: f"{1e3 * (after.cpu_seconds[part] - before.cpu_seconds[part]) / number:.1f}" for part in PARTS}
    print(f"{layout}: CPU ms per cell {cpu}")
    peaks = {part: f"{read_memory(plane.processes[part].pid)['VmHWM']:.0f}" for part in PARTS}
    print(f"{layout}: memory at most, MiB {peaks}", flush=True)


def await_success(layout: str, setup: Setup, path: str, num_planned: int, *, end: float) -> int:
    """Return how many pods have succeeded when all have, or at `end` (time.monotonic) those that left their record.

    Print now and then how many have left their record.
    """
    next_line = 0.0
    while not have_all_succeeded(setup.connection, path, num_planned):
        if time.monotonic() >= end:
            return max(1, setup.count_records().total())
        if time.monotonic() >= next_line:
            next_line = time.monotonic() + LINE_SECONDS
            print(f"{layout}: {time.strftime('%H:%M:%S')} {setup.count_records().total()} of {num_planned}", flush=True)
        time.sleep(POLL_SECONDS)
    return num_planned


def create_jobs(plane: ControlPlane, bodies: list[bytes], path: str) -> None:
    """Create a Job for each body, as the runner makes them."""
    namespace = path.split("/")[-2]
    send_bare(open_bare_client(), namespace, bodies)


def create_indexed_job(plane: ControlPlane, bodies: list[bytes], path: str) -> None:
    """Create one Job with an index for each body: the first body's, since the pods of a Job differ by index only."""
    job: dict[str, Any] = json.loads(bodies[0])
    spec = job["spec"]
    del spec["backoffLimit"]
    spec |= {
        "completionMode": "Indexed",
        "completions": len(bodies),
        "parallelism": len(bodies),
        "backoffLimitPerIndex": 2,
    }
    for rule in spec["podFailurePolicy"]["rules"]:
        rule["action"] = "FailIndex" if rule["action"] == "FailJob" else rule["action"]
    Connection(context=plane.context).request("create", path, body=json.dumps(job).encode())


def have_all_succeeded(connection: Connection, path: str, number: int) -> bool:
    """Return whether so many pods have succeeded, be it of as many Jobs or of one."""
    unfinished = connection.request("list", path, query={"limit": "1", "fieldSelector": "status.successful=0"})
    if json.loads(unfinished)["items"]:
        return False
    (first, *_) = json.loads(connection.request("list", path, query={"limit": "1"}))["items"]
    return bool(first["spec"]["completionMode"] != "Indexed" or first["status"]["succeeded"] == number)


LAYOUTS: dict[str, Callable[[ControlPlane, list[bytes], str], None]] = {
    "jobs": create_jobs,
    "indexed": create_indexed_job,
}


if __name__ == "__main__":
    main()
