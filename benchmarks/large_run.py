"""Measures a run of very many cells on a real control plane: memory of the runner, etcd, requests, kills.

Nodes are objects; a process of its own plays their kubelets, whose pods end at once (cluster_setup.py). The runner is a
process of its own, so that its memory and CPU time are its own. It does what `benchmatrix run --no-report` does, except
that its store is a folder: an S3 server on the same cores would be measured too. Times are those of the machine with
everything else that runs on it.

    python benchmarks/large_run.py --cells 100000 --recorded 50000 --kill-at 60000
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "cluster")]

from cluster_setup import play_kubelets, start_plane  # noqa: E402
from process_figures import read_cpu_seconds, read_memory  # noqa: E402
from runs import IMAGES, make_namespace  # noqa: E402

from bench.schema import Cell  # noqa: E402
from bench.store import Store, placement_key, result_key  # noqa: E402
from child_process import start_child  # noqa: E402
from control_plane import ControlPlane, find_assets  # noqa: E402
from factories import make_result  # noqa: E402
from runner.kubernetes.connection import Connection  # noqa: E402
from runner.matrix import load_matrix  # noqa: E402

RUN_ID = NAMESPACE = "large"
SAMPLE_SECONDS = 30.0
POLL_SECONDS = 0.5
NUM_NODES = 10
"""Of 64 cores each. Each sends heartbeats, which cost the cores that all share."""
NUM_SEEDS = 1000
"""Cells that differ in nothing but their seed: among more of them, two have the same id by chance, which is refused."""
MIB = 2**20
COUNTED = ("jobs.batch", "pods", "events")
PARTS = ("etcd", "kube-apiserver", "kube-controller-manager")
ETCD_QUOTA_BYTES = 8 * 2**30
"""As EKS provisions (https://aws.amazon.com/blogs/containers/managing-etcd-database-size-on-amazon-eks-clusters/), so
that etcd's size is measured and not cut off at its default of 2 GiB."""


def main() -> None:
    """Print samples of the run and, at its end, what it took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=2000)
    parser.add_argument("--max-in-flight", type=int, default=200)
    parser.add_argument("--kill-at", type=int, help="Kill the runner once, when so many cells are recorded.")
    parser.add_argument("--recorded", type=int, default=0, help="Cells that have a record before the run begins.")
    parser.add_argument("--stock-limits", action="store_true", help="Leave the limits of the controllers as they come.")
    parser.add_argument(
        "--compaction-seconds",
        type=int,
        help="How often etcd's history is compacted, and how old what stays of it is; the API server's default: 300.",
    )
    parser.add_argument("--job-syncs", type=int, default=20, help="Jobs that the Job controller handles at once.")
    parser.add_argument("--folder", type=Path, help="An empty folder, which stays; default: one that goes.")
    arguments = parser.parse_args()
    assets = find_assets()
    if assets is None:
        sys.exit("no control plane: see tests/control_plane.py for where its binaries are expected")
    options = {
        "has_stock_limits": arguments.stock_limits,
        "compaction_seconds": arguments.compaction_seconds,
        "etcd_quota_bytes": ETCD_QUOTA_BYTES,
        "concurrent_job_syncs": arguments.job_syncs,
    }
    with nullcontext(arguments.folder) if arguments.folder else tempfile.TemporaryDirectory() as text:
        folder = Path(text).absolute()
        store = Store.open(f"file://{folder}/store")
        with (
            start_plane(folder, assets, **options) as plane,
            play_kubelets(plane, store, NUM_NODES),
        ):
            make_namespace(Connection(context=plane.context), NAMESPACE)
            LargeRun(arguments=arguments, plane=plane, folder=folder).measure()


@dataclass(kw_only=True)
class LargeRun:
    """One run, from its plan to its last record."""

    arguments: argparse.Namespace
    plane: ControlPlane
    folder: Path
    _peaks: dict[str, float] = field(default_factory=dict)

    def measure(self) -> None:
        """Measure all cells, with a runner that is killed once if that is wanted."""
        self._write_matrix()
        self._put_records()
        number, kill_at = 1, self.arguments.kill_at
        while self._follow(f"runner {number}", kill_at) == -signal.SIGKILL:  # by whomever
            number, kill_at = number + 1, None
        print("peaks: " + ", ".join(f"{name} {value:.0f} MiB" for name, value in self._peaks.items()), flush=True)
        checker = Path(__file__).parent / "large_run_check.py"
        subprocess.run((sys.executable, checker, self.folder / "store", RUN_ID), check=True)

    def _write_matrix(self) -> None:
        number = self.arguments.cells
        seeds = min(NUM_SEEDS, number)
        defaults = {"model": "conv6", "framework": "pytorch", "device": "cpu", "phase": "train", "repeats": 1}
        axes = {"batch_size": list(range(1, -(-number // seeds) + 1)), "seed": list(range(seeds))}
        (self.folder / "large.yaml").write_text(json.dumps({"name": "large", "axes": axes, "defaults": defaults}))
        pools = {"cpu": {"cpus": 1, "memory": "1Gi", "is_alone_on_node": False}}
        profile = {"extends": "kind", "namespace": NAMESPACE, "images": IMAGES, "pools": pools}
        (self.folder / "mine.yaml").write_text(json.dumps(profile))

    def _put_records(self) -> None:
        """Put the records of the first cells into the store, with their placements, as an earlier runner left them."""
        matrix = load_matrix(str(self.folder / "large.yaml"), is_data_here=False)
        now = datetime.now(UTC)
        root = self.folder / "store"
        for number, planned in enumerate(matrix.cells[: self.arguments.recorded]):
            cell, attempt = planned.cell, str(UUID(int=number + 1))
            key = result_key(RUN_ID, cell.cell_id, 1, attempt)
            times = {"started_at": now - timedelta(seconds=60), "finished_at": now}
            result = make_result(cell, run_id=RUN_ID, repeat=1, attempt=attempt, **times, **make_steps(cell))
            placement = placement_key(RUN_ID, cell.cell_id, 1, attempt)
            for path, data in ((root / key, result.to_json()), (root / placement, b"{}")):
                path.parent.mkdir(parents=True)
                path.write_bytes(data)

    def _follow(self, name: str, kill_at: int | None) -> int:
        """Start a runner; print samples until it ends, or is killed with so many records. Return its exit code."""
        program = Path(__file__).parent / "large_run_runner.py"
        command = (sys.executable, program, self.folder, self.plane.context, str(self.arguments.max_in_flight))
        with (self.folder / f"{name}.txt").open("ab") as output:
            started = time.monotonic()
            runner = start_child(command, stdout=output, stderr=subprocess.STDOUT)
            with self._print_last_lines(self.folder / f"{name}.txt"):
                next_sample = time.monotonic()
                while runner.poll() is None:
                    if time.monotonic() >= next_sample:
                        next_sample += SAMPLE_SECONDS
                        done = self._sample(name, runner.pid, started)
                        if kill_at is not None and done >= kill_at:
                            runner.kill()
                    time.sleep(POLL_SECONDS)
        print(f"{name}: ended with exit code {runner.returncode} after {time.monotonic() - started:.0f} s", flush=True)
        return runner.returncode

    @contextmanager
    def _print_last_lines(self, path: Path) -> Iterator[None]:
        yield
        lines = path.read_text(errors="replace").splitlines()
        print("\n".join([*(line for line in lines if line.startswith("{")), *lines[-3:]]), flush=True)

    def _sample(self, name: str, pid: int, started: float) -> int:
        """Print what runner and control plane take now; return how many records the store has."""
        done = self._count_results()
        sizes = {"etcd file": self._read_etcd("size_in_bytes"), "in use": self._read_etcd("size_in_use_in_bytes")}
        memory = {part: read_memory(self.plane.processes[part].pid)["VmRSS"] for part in PARTS}
        own = read_memory(pid)
        for key, value in (sizes | memory | {name: own["VmHWM"]}).items():
            self._peaks[key] = max(self._peaks.get(key, 0.0), value)
        figures = ", ".join(f"{key} {value:.0f}" for key, value in (sizes | memory).items())
        print(
            f"{name}: {time.monotonic() - started:.0f} s, {done} records, {read_cpu_seconds(pid):.0f} CPU s, "
            f"{own['VmRSS']:.0f} MiB now, {own['VmHWM']:.0f} at most; {figures} MiB; {self._count_objects()}",
            flush=True,
        )
        return done

    def _count_results(self) -> int:
        folder = self.folder / "store" / "runs" / RUN_ID / "results"
        return len(os.listdir(folder)) if folder.exists() else 0

    def _read_etcd(self, name: str) -> float:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.plane.etcd_port}/metrics") as answer:
            (size,) = re.findall(rf"^etcd_mvcc_db_total_{name} (\S+)$", answer.read().decode(), re.MULTILINE)
        return float(size) / MIB

    def _count_objects(self) -> dict[str, int]:
        """Return how many objects of some kinds the API server has; it counts them once a minute."""
        text = Connection(context=self.plane.context).request("get", "/metrics").decode()
        found = re.findall(r"^apiserver_(?:storage|resource)_objects\{([^}]*)\} (\S+)$", text, re.MULTILINE)
        counts: dict[str, int] = {}
        for labels, number in found:
            resource = re.search(r'resource="([^"]*)"', labels)
            group = re.search(r'group="([^"]*)"', labels)
            full = ".".join(filter(None, (resource[1] if resource else "", group[1] if group else "")))
            if full in COUNTED:
                counts[full] = int(float(number))
        return counts


def make_steps(cell: Cell) -> dict[str, tuple[float, ...]]:
    return {"step_seconds": (0.1,) * cell.num_steps, "warmup_step_seconds": (0.1,) * cell.num_warmup_steps}


if __name__ == "__main__":
    main()
