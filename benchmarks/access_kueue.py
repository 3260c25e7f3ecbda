"""Holds the simulation's fair share against a real Kueue: the same users, jobs and times, in real seconds.

A control plane, Kueue and a fake node with GPUs are started; pods run for as long as their job takes. Prints which
jobs Kueue started when, and by how much the simulation differs. From the checkout, ten minutes:
.venv/bin/python benchmarks/access_kueue.py --jobs 60 --mean-seconds 30
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from scipy import stats

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "cluster")]

from cluster_setup import start_plane  # noqa: E402
from laboratory import Laboratory, has_ended, number_of  # noqa: E402
from queues import Queues  # noqa: E402
from runs import make_namespace  # noqa: E402

from access_replay import Replay, Submission  # noqa: E402
from access_scenarios import make_group  # noqa: E402
from bench.store import Store  # noqa: E402
from control_plane import ControlPlane, find_assets  # noqa: E402
from fake_kubelet import FakeKubelet  # noqa: E402
from kueue_controller import MANAGED_LABEL, KueueController, find_kueue  # noqa: E402
from runner.kubernetes.connection import Connection  # noqa: E402

NAMESPACE = "laboratory"
NUM_GPUS = 3
QUOTAS, WEIGHTS = (1, 0, 0, 0), (1.0, 1.0, 2.0, 1.0)
LOOK_SECONDS = 0.5
"""Between two looks at the Jobs: the resolution of the times."""
SHORTEST_SECONDS = 2.0


def main() -> None:
    """Play the jobs on the cluster and in the simulation, and print how both compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=60)
    parser.add_argument("--mean-seconds", type=float, default=30.0, help="Mean length of a job.")
    parser.add_argument("--load", type=float, default=1.2, help="Work that comes over what the GPUs can do meanwhile.")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    assets, kueue = find_assets(), find_kueue()
    if assets is None or kueue is None:
        sys.exit("no control plane or no Kueue: see tests/control_plane.py and tests/kueue_controller.py")
    submissions = draw_submissions(arguments.jobs, arguments.mean_seconds, arguments.load, arguments.seed)
    with (
        tempfile.TemporaryDirectory() as folder,
        start_plane(Path(folder), assets) as plane,
        start_laboratory(plane, Path(folder), kueue, submissions) as laboratory,
    ):
        observed = play(laboratory, submissions)
    report("lengths as drawn", simulate(submissions), observed)
    report("lengths as on the cluster", simulate(take_lengths(submissions, observed)), observed)


def simulate(submissions: Sequence[Submission]) -> Replay:
    """Return what the simulation does with the jobs."""
    groups = [make_group(quota=quota, weight=weight) for quota, weight in zip(QUOTAS, WEIGHTS, strict=True)]
    return Replay(submissions=submissions, groups=groups, num_gpus=NUM_GPUS).run()


def draw_submissions(num_jobs: int, mean_seconds: float, load: float, seed: int) -> list[Submission]:
    """Return jobs of random users and lengths at random whole seconds, no two at the same.

    Kubernetes' times have no fractions: of two jobs of one second either may be the first.
    """
    generator = np.random.default_rng(seed)
    gaps = np.ceil(generator.exponential(mean_seconds / NUM_GPUS / load, num_jobs))
    lengths = np.maximum(SHORTEST_SECONDS, generator.exponential(mean_seconds, num_jobs))
    users = generator.integers(len(QUOTAS), size=num_jobs)
    return [
        Submission(at=float(at), user=int(user), hours=float(length))
        for at, user, length in zip(np.cumsum(gaps), users, lengths, strict=True)
    ]


@contextmanager
def start_laboratory(
    plane: ControlPlane, folder: Path, assets: Path, submissions: Sequence[Submission]
) -> Iterator[Laboratory]:
    """Start Kueue with the users' queues, and a node whose pods run as long as their jobs take."""
    connection = Connection(context=plane.context)
    make_namespace(connection, NAMESPACE)
    body = b'{"metadata": {"labels": {"%s": ""}}}' % MANAGED_LABEL.encode()
    path, content_type = f"/api/v1/namespaces/{NAMESPACE}", "application/merge-patch+json"
    connection.request("patch", path, body=body, content_type=content_type)
    controller = KueueController(control_plane=plane, connection=connection, folder=folder / "kueue", assets=assets)
    kubelet = FakeKubelet(
        connection=connection,
        store=Store.open(f"file://{folder}/store"),
        decide=lambda pod: "no-record",
        run_seconds=lambda pod: submissions[number_of(pod)].hours,
    )
    kubelet.add_node("node", capacity={"nvidia.com/gpu": str(NUM_GPUS)})
    try:
        controller.start()
        kubelet.start()
        with controller.share_fairly():
            queues = Queues(connection=connection, namespace=NAMESPACE)
            laboratory = Laboratory(connection=connection, namespace=NAMESPACE, queues=queues)
            laboratory.add_users(QUOTAS, WEIGHTS, NUM_GPUS)
            yield laboratory
    finally:
        kubelet.stop()
        controller.stop()


@dataclass(kw_only=True)
class Observed:
    """What Kueue did. Times in seconds since the first look."""

    first_starts: dict[int, float] = field(default_factory=dict)
    last_starts: dict[int, float] = field(default_factory=dict)
    ends: dict[int, float] = field(default_factory=dict)
    num_preempted: int = 0


def play(laboratory: Laboratory, submissions: Sequence[Submission]) -> Observed:
    """Submit every job at its time, and look at the Jobs until all have ended."""
    observed = Observed()
    running: frozenset[int] = frozenset()
    num_submitted = 0
    begun = time.monotonic()
    while len(observed.ends) < len(submissions):
        while num_submitted < len(submissions) and submissions[num_submitted].at <= time.monotonic() - begun:
            laboratory.submit(num_submitted, submissions[num_submitted].user)
            num_submitted += 1
        jobs = laboratory.list_jobs()
        now = time.monotonic() - begun
        ended = frozenset(number_of(job) for job in jobs if has_ended(job))
        admitted = frozenset(number_of(job) for job in jobs if not job["spec"]["suspend"]) - ended
        for number in admitted - running:
            observed.first_starts.setdefault(number, now)
            observed.last_starts[number] = now
        for number in ended - observed.ends.keys():
            observed.ends[number] = now
        observed.num_preempted += len(running - admitted - ended)
        running = admitted
        time.sleep(LOOK_SECONDS)
    return observed


def take_lengths(submissions: Sequence[Submission], observed: Observed) -> list[Submission]:
    """Return the jobs with the lengths that they had on the cluster, from the admission to the end of the Job.

    These hold what Kubernetes takes to start and to end a pod, which is seconds of a job of seconds.
    """
    lengths = (observed.ends[number] - observed.last_starts[number] for number in range(len(submissions)))
    return [replace(job, hours=length) for job, length in zip(submissions, lengths, strict=True)]


def report(name: str, simulated: Replay, observed: Observed) -> None:
    """Print the waits of both, how far they are apart, and how alike their orders are."""
    numbers = range(len(simulated.submissions))
    at = np.array([job.at for job in simulated.submissions])
    real = np.array([observed.first_starts[number] for number in numbers]) - at
    expected = np.array([simulated.first_starts[number] for number in numbers]) - at
    differences = np.abs(real - expected)
    order = stats.kendalltau(real + at, expected + at).statistic
    mean = np.mean([job.hours for job in simulated.submissions])
    print(f"{name}: {len(at)} jobs of {mean:.1f} s on {NUM_GPUS} GPUs")
    print(f"  mean wait: Kueue {real.mean():.1f} s, simulation {expected.mean():.1f} s")
    print(f"  p95 wait: Kueue {np.quantile(real, 0.95):.1f} s, simulation {np.quantile(expected, 0.95):.1f} s")
    middle, most = np.median(differences), differences.max()
    print(f"  difference of a job's wait: mean {differences.mean():.1f} s, median {middle:.1f} s, largest {most:.1f} s")
    print(f"  pairs of jobs that start in the same order: {(1 + order) / 2:.1%} (Kendall's tau {order:.3f})")
    print(f"  preemptions: Kueue {observed.num_preempted}, simulation {simulated.num_preempted}")


if __name__ == "__main__":
    main()
