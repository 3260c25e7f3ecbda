"""Kills the runner of a run on a real control plane again and again, and counts what was lost or measured twice.

Nodes are objects; tests/fake_kubelet.py plays their kubelets, and counts how often each repeat was measured.

    python benchmarks/runner_kills.py --cells 1000 --kills 100
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "cluster")]

from cluster_setup import start_plane  # noqa: E402
from runs import IMAGES, count_records, make_namespace  # noqa: E402

from bench.schema import Run  # noqa: E402
from bench.store import Store, run_key  # noqa: E402
from control_plane import ControlPlane, find_assets  # noqa: E402
from fake_kubelet import FakeKubelet  # noqa: E402
from runner.kubernetes.connection import Connection  # noqa: E402
from s3_server import S3Server  # noqa: E402

RUN_ID, NAMESPACE, NUM_NODES = "killed-often", "kills", 10
MOMENTS = (0.5, 6.0)
"""Seconds after its start at which a runner is killed, at random: while it starts, lists, submits and records."""


def main() -> None:
    """Print what the kills did. Exit with 1 if a repeat was lost or measured twice."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    assets = find_assets()
    if assets is None:
        sys.exit("no control plane: see tests/control_plane.py for where its binaries are expected")
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        with start_plane(folder, assets) as plane, start_store(folder) as store:
            sys.exit(measure(arguments, plane, folder, store))


@contextmanager
def start_store(folder: Path) -> Iterator[Store]:
    """Start a store on an S3 server in `folder`, whose keys are in the environment."""
    server = S3Server(root=folder / "s3" / "root")
    os.environ |= server.environment
    server.start()
    try:
        yield Store.open(f"s3://{server.bucket}/kills")
    finally:
        server.stop()


def measure(arguments: argparse.Namespace, plane: ControlPlane, folder: Path, store: Store) -> int:
    """Run the cells, with a runner that is killed so often; return the exit code of this program."""
    connection = Connection(context=plane.context)
    make_namespace(connection, NAMESPACE)
    command = write_command(folder, plane.context, store, arguments.cells)
    mean_seconds = arguments.kills * sum(MOMENTS) / 2
    # Eight pods run at once; the cells take about as long as all the kills.
    kubelet = FakeKubelet(connection=connection, store=store, run_seconds=8 * mean_seconds / arguments.cells)
    for number in range(NUM_NODES):
        kubelet.add_node(f"node-{number}", capacity={"cpu": "64", "memory": "256Gi", "pods": "500"})
    kubelet.start()
    begun = time.monotonic()
    num_kills, last = kill_often(command, arguments, folder / "output.txt")
    print(f"{num_kills} kills in {time.monotonic() - begun:.0f} s, then the run ended with exit code {last}")
    kubelet.stop()
    if last != 0:
        print((folder / "output.txt").read_text()[-2000:])
    return report(store, kubelet.measured, last)


def write_command(folder: Path, context: str, store: Store, num_cells: int) -> list[str]:
    """Write matrix and profile, and return the command that is given each time."""
    defaults = {"model": "conv6", "framework": "pytorch", "device": "cpu", "phase": "train", "batch_size": 4}
    matrix = {"name": "kills", "axes": {"seed": list(range(num_cells))}, "defaults": defaults | {"repeats": 1}}
    pools = {"cpu": {"cpus": 1, "memory": "1Gi", "is_alone_on_node": False, "max_parallel": 60}}
    profile = {"extends": "kind", "namespace": NAMESPACE, "images": IMAGES, "pools": pools}
    (folder / "kills.yaml").write_text(json.dumps(matrix))
    (folder / "mine.yaml").write_text(json.dumps(profile))
    options = {"on": context, "profile": folder / "mine.yaml", "store": store.url, "run-id": RUN_ID}
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    return [sys.executable, "-m", "runner.cli", "run", str(folder / "kills.yaml"), *words, "--no-report"]


def kill_often(command: list[str], arguments: argparse.Namespace, output_path: Path) -> tuple[int, int]:
    """Start the command and kill it, so often or until it ends; then let it end. Return the kills and its exit code."""
    moments = random.Random(arguments.seed)
    num_kills = 0
    with output_path.open("ab") as output:
        while num_kills < arguments.kills:
            process = subprocess.Popen(command, cwd=ROOT, env=os.environ, stdout=output, stderr=output)
            try:
                process.wait(moments.uniform(*MOMENTS))
            except subprocess.TimeoutExpired:
                process.kill()
                num_kills += 1
            if process.wait() >= 0:  # it ended by itself
                break
        return num_kills, subprocess.run(command, cwd=ROOT, stdout=output, stderr=output, check=False).returncode


def report(store: Store, measured: "Counter[tuple[str, str]]", exit_code: int) -> int:
    """Print how often the repeats were measured, and what their records say; return the exit code of this program."""
    run = Run.model_validate_json(store.get(run_key(RUN_ID)))
    records = count_records(store, run.run_id)
    times = Counter(measured[RUN_ID, f"{cell.cell.cell_id}/1"] for cell in run.cells)
    by_records = Counter(records[cell.cell.cell_id, 1] for cell in run.cells)
    print(f"repeats by how often a container measured them: {dict(times)}; by their records: {dict(by_records)}")
    is_sound = set(times) == {1} and set(by_records) == {1} and exit_code == 0
    print("nothing was lost, nothing measured twice" if is_sound else "MISSED: see above")
    return 0 if is_sound else 1


if __name__ == "__main__":
    main()
