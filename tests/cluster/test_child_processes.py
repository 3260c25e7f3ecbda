"""Servers that tests and benchmarks start end with the process that started them, even if that is killed."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from runs import wait_for

from control_plane import find_assets
from fake_interpreters import is_running

ROOT = Path(__file__).parents[2]
FOLDERS = ("tests", "tests/cluster", "benchmarks")
PARENT = """
import json, multiprocessing, sys, threading
from pathlib import Path

from cluster_setup import play_kubelets, start_plane
from s3_server import S3Server

folder = Path(sys.argv[1])
server = S3Server(root=folder / "s3" / "root")
server.start()
from bench.store import Store
with start_plane(folder, Path(sys.argv[2])) as plane, play_kubelets(plane, Store.open(f"file://{folder}/store")):
    pids = {name: process.pid for name, process in plane.processes.items()} | {"rclone": server.process.pid}
    (kubelets,) = multiprocessing.active_children()
    print(json.dumps(pids | {"kubelets": kubelets.pid}), flush=True)
    threading.Event().wait()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_no_server_outlives_the_process_that_started_it(tmp_path: Path, number: signal.Signals) -> None:
    assets = find_assets()
    if assets is None:
        pytest.skip("no kube-apiserver")
    paths = os.pathsep.join(str(ROOT / folder) for folder in FOLDERS)
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path), str(assets)],
        env=os.environ | {"PYTHONPATH": paths},
        stdout=subprocess.PIPE,
    )
    assert parent.stdout is not None
    with parent.stdout as output:
        pids: dict[str, int] = json.loads(output.readline())
    assert set(pids) == {
        "etcd",
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
        "rclone",
        "kubelets",
    }
    assert all(map(is_running, pids.values()))

    parent.send_signal(number)

    assert parent.wait() == -number
    wait_for(lambda: not any(map(is_running, pids.values())), "the servers to end")
