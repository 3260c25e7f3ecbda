"""A run that is killed, interrupted, or whose Jobs or store go away under it: the same command brings it to its end."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from disruptions import FirstHangs
from runs import DEADLINE_SECONDS, IMAGES, Setup, Site, check_all_once, make_cells, make_profile, wait_for

from bench.schema import Run
from bench.store import Store, run_key
from child_process import start_child
from control_plane import ControlPlane
from fake_kubelet import Pod
from runner.kubernetes.connection import Connection
from runner.runs import NO_RETRIES, Retries
from s3_server import S3Server

MATRIX = """
name: tiny
axes:
  seed: [1, 2, 3, 4, 5, 6, 7, 8]
defaults: {model: conv6, framework: pytorch, device: cpu, phase: train, batch_size: 4, num_steps: 1, repeats: 3}
"""
RUN_ID = "killed-often"


@dataclass(kw_only=True)
class CommandLine:
    """`benchmatrix run` as a process of its own, always with the same words."""

    matrix: str = MATRIX
    folder: Path
    store: Store
    kubeconfig: Path
    context: str
    namespace: str
    processes: "list[subprocess.Popen[bytes]]" = field(default_factory=list)

    def start(self) -> "subprocess.Popen[bytes]":
        self.write_files()
        command = [sys.executable, "-m", "runner.cli", "run", str(self.folder / "tiny.yaml"), "--on", self.context]
        options = {"profile": self.folder / "mine.yaml", "store": self.store.url, "run-id": RUN_ID}
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        environment = os.environ | {"KUBECONFIG": str(self.kubeconfig)}
        with self.output_path.open("wb") as output:
            process = start_child(
                [*command, *words, "--no-report"], env=environment, stdout=output, stderr=subprocess.STDOUT
            )
        self.processes.append(process)
        return process

    @property
    def output_path(self) -> Path:
        """Where the newest process writes what it says."""
        return self.folder / "output.txt"

    def check_end(self, process: "subprocess.Popen[bytes]", exit_code: int) -> str:
        code = process.wait(DEADLINE_SECONDS)
        output = self.output_path.read_text()
        assert code == exit_code, output
        assert "Traceback" not in output
        return output

    def write_files(self) -> None:
        (self.folder / "tiny.yaml").write_text(self.matrix)
        profile = {"extends": "kind", "namespace": self.namespace, "images": IMAGES}
        (self.folder / "mine.yaml").write_text(json.dumps(profile))

    def read_run(self) -> Run:
        return Run.model_validate_json(self.store.get(run_key(RUN_ID)))


@pytest.fixture
def bucket(s3_server: S3Server) -> Store:
    return Store.open(f"s3://{s3_server.bucket}/mine")


@pytest.fixture
def command_line(tmp_path: Path, bucket: Store, control_plane: ControlPlane, namespace: str) -> Iterator[CommandLine]:
    line = CommandLine(
        folder=tmp_path,
        store=bucket,
        kubeconfig=control_plane.kubeconfig,
        context=control_plane.context,
        namespace=namespace,
    )
    yield line
    for process in line.processes:
        process.kill()
        process.wait()


def view(command_line: CommandLine, connection: Connection) -> Setup:
    """Return what identifies the command line's run."""
    profile = make_profile(command_line.namespace)
    return Setup(connection=connection, profile=profile, store=command_line.store, run=command_line.read_run())


def test_a_runner_that_is_killed_ten_times_measures_everything_once(
    command_line: CommandLine, site: Site, bucket: Store
) -> None:
    """In two stages: of half of the cells the first two repeats differ, and ask for as many as there may be."""
    command_line.matrix = MATRIX.replace("repeats: 3", "repeats: {min: 2, max: 4, until: 5%}")
    kubelet = site.start_kubelet(store=bucket, num_nodes=2, run_seconds=0.5)
    is_over = threading.Event()

    def hold_the_last(pod: Pod) -> str:
        if len(kubelet.measured) >= 20:  # so that the run does not end before the tenth kill
            is_over.wait()
        return "ok"

    kubelet.decide = hold_the_last
    kubelet.slow_down = lambda cell, repeat: 1 + repeat % 2 / 10 if cell.seed > 4 else 1.0
    moments = random.Random(4)
    try:
        for _ in range(10):
            process = command_line.start()
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(moments.uniform(0.2, 2.5))
            process.kill()
            process.wait()
    finally:
        is_over.set()
    command_line.check_end(command_line.start(), 0)

    run = command_line.read_run()
    assert (run.num_repeats, run.cluster and run.cluster.authorities) == (24, site.connection.login.authorities)
    setup = view(command_line, site.connection)
    assert len(setup.count_records()) == 24
    assert set(setup.count_records().values()) == {1}
    assert list(kubelet.measured.values()) == [1] * 24


def test_ctrl_c_leaves_the_jobs_and_the_same_command_ends_the_run(
    command_line: CommandLine, site: Site, bucket: Store
) -> None:
    kubelet = site.start_kubelet(store=bucket, num_nodes=4, run_seconds=0.5)
    process = command_line.start()
    wait_for(lambda: kubelet.measured or process.poll() is not None, "a repeat that was measured")
    process.send_signal(signal.SIGINT)

    output = command_line.check_end(process, 130)
    assert "interrupted; Jobs that were submitted go on." in output
    setup = view(command_line, site.connection)
    assert setup.list_jobs()

    command_line.check_end(command_line.start(), 0)

    assert set(setup.count_records().values()) == {1}
    assert list(kubelet.measured.values()) == [1] * 24


def test_ctrl_c_ends_a_runner_at_once_whose_api_server_is_away(
    command_line: CommandLine, control_plane: ControlPlane, tmp_path: Path
) -> None:
    command_line.kubeconfig = tmp_path / "kubeconfig"
    control_plane.write_kubeconfig(command_line.kubeconfig, server="http://127.0.0.1:1")
    process = command_line.start()
    wait_for(
        lambda: "24 to measure" in command_line.output_path.read_text(), "the plan, before the API server is asked"
    )
    process.send_signal(signal.SIGINT)
    command_line.check_end(process, 130)


def test_a_job_that_somebody_deletes_is_made_again(site: Site) -> None:
    kubelet = site.start_kubelet(FirstHangs(), num_nodes=1)
    setup = site.make_setup(make_cells(1))
    running = setup.start()
    job = wait_for(lambda: [job for job in setup.list_jobs() if job["status"].get("ready")], "a Job that runs")[0]
    path = f"/apis/batch/v1/namespaces/{site.namespace}/jobs/{job['metadata']['name']}"
    site.connection.request("delete", path, query={"propagationPolicy": "Background"})

    running.result(DEADLINE_SECONDS)

    check_all_once(setup, kubelet, 1)
    assert setup.observed.warnings == [
        f"Job {job['metadata']['name']} was deleted before it had finished; it is created again"
    ]


def test_jobs_that_went_by_their_time_to_live_while_nobody_looked_have_their_records(site: Site) -> None:
    kubelet = site.start_kubelet(num_nodes=4)
    setup = site.make_setup(make_cells(3))
    setup.profile = setup.profile.model_copy(update={"ttl_seconds_after_finished": 1})
    setup.measure()
    wait_for(lambda: not setup.list_jobs(), "Jobs that are gone")

    again = setup.measure()

    assert again.results == []
    assert list(kubelet.measured.values()) == [1] * 3


def test_what_failed_or_was_contaminated_is_measured_again_in_new_jobs_when_asked_for(site: Site) -> None:
    endings = iter(["failed-record", "ok", "contaminated", "crash", "contaminated", "ok", "ok"])
    kubelet = site.start_kubelet(lambda pod: next(endings), num_nodes=1)
    setup = site.make_setup(make_cells(3), max_in_flight=1)

    def measure(retries: Retries = NO_RETRIES) -> list[str]:
        setup.retries = retries
        return [result.status for result in setup.measure().results]

    assert measure() == ["failed", "ok", "ok"]
    assert measure() == []
    assert measure(Retries(failed=True)) == ["failed"]
    assert measure(Retries(contaminated=True)) == ["ok"]  # and contaminated again
    assert measure(Retries(failed=True, contaminated=True)) == ["ok"] * 2
    assert measure(Retries(failed=True, contaminated=True)) == []
    assert sorted(setup.count_records().values()) == sorted(kubelet.measured.values()) == [1, 3, 3]
    assert len({job["metadata"]["name"] for job in setup.list_jobs()}) == 7


def test_a_store_that_is_away_is_waited_for_and_told_about(
    site: Site, bucket: Store, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runner.kubernetes.tracked_jobs.STORE_PAUSE_SECONDS", 1.0)
    kubelet = site.start_kubelet(lambda pod: "crash", num_nodes=1)
    setup = Setup.make(site.connection, site.namespace, bucket, make_cells(3), max_in_flight=1)
    running = setup.start()
    wait_for(lambda: setup.observed.results, "a record")
    s3_server.stop()
    wait_for(lambda: setup.observed.warnings, "a warning about the store")
    s3_server.start()

    running.result(DEADLINE_SECONDS)

    assert len(setup.observed.warnings) == 1
    assert setup.observed.warnings[0].endswith("it is tried again")
    assert [result.status for result in setup.observed.results] == ["failed"] * 3
    assert set(setup.count_records().values()) == {1}
    assert list(kubelet.measured.values()) == [1] * 3
