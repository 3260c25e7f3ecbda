"""What `run --dry-run` and `render` say on a cluster: no API server is asked, and nothing is written."""

import pytest

from kubeconfigs import write_kubeconfig
from runner.kubernetes.run import ClusterRun
from s3_server import S3Server
from workspace import CallMain, Workspace

PRICED = "extends: eks\npools:\n  cpu: {price_per_hour: 0.3}\n"


@pytest.fixture
def cluster(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A context of a kubeconfig whose API server does not listen."""
    write_kubeconfig(workspace.folder / "kubeconfig", context="lab")
    monkeypatch.setenv("KUBECONFIG", str(workspace.folder / "kubeconfig"))
    (workspace.folder / "mine.yaml").write_text(PRICED)
    return workspace


def test_a_dry_run_on_a_cluster_takes_the_profiles_price_or_that_of_a_machine(
    call_main: CallMain, cluster: Workspace, s3_server: S3Server
) -> None:
    place = ("--on", "lab", "--store", f"s3://{s3_server.bucket}/dry", "--dry-run", "--max-cost", "0.001")
    code, out, err = call_main("run", "quick.yaml", *place, "--profile", "mine.yaml")
    assert (code, err) == (0, "")
    assert "at most 4 min (a guess, 27 s each: " in out
    assert "; about 0.01 USD, at most 0.02 (0.3 per hour, profile mine)" in out
    assert out.splitlines()[-1] == "--max-cost 0.001: the run would end before all of it is measured"
    code, out, _ = call_main("run", "quick.yaml", *place, "--profile", "mine.yaml", "--machine", "cpu=m6i.2xlarge")
    assert (code, "at most 0.03 (0.384 per hour, EKS us-east-1 m6i.2xlarge, 2026-07-20)" in out) == (0, True)
    assert call_main("status", "--store", f"s3://{s3_server.bucket}/dry")[0] == 2  # there is no run
    code, _, err = call_main("run", "quick.yaml", *place, "--profile", "eks")
    assert (code, "pools.cpu.price_per_hour: is missing" in err, "--machine cpu=MACHINE" in err) == (2, True, True)


def test_options_of_clusters_reach_the_run(
    call_main: CallMain, cluster: Workspace, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """tests/cluster has what a ClusterRun does with them."""
    planned = []
    monkeypatch.setattr(ClusterRun, "choose_run", lambda self: planned.append(self))
    words = "--namespace team --queue q --max-in-flight 7 --give-up-after 2m --owner job/1-2 --deadline 1h"
    place = ("--on", "lab", "--profile", "mine.yaml", "--store", f"s3://{s3_server.bucket}/none")
    call_main("run", "quick.yaml", *place, *words.split())
    (run,) = planned
    assert (run.target.profile.namespace, run.target.queue, run.max_in_flight) == ("team", "q", 7)
    assert (run.unschedulable_seconds, run.is_requeued, run.deadline_seconds) == (120, False, 3600)
    assert run.owner == "job/1-2"


def test_a_dry_run_prices_gpu_cells_on_a_machine_that_is_named(
    call_main: CallMain, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runner.local.run.find_gpu", lambda: None)
    words = ("run", "smoke", "--dry-run", "--machine", "cpu=n2-standard-8")
    assert "gpu: " not in call_main(*words)[1]
    assert "gpu: 24 repeats" in (out := call_main(*words, "--machine", "gpu=n1-standard-4")[1])
    assert "n1-standard-4 (T4)" in out


def test_render_estimates_by_earlier_results(call_main: CallMain, workspace: Workspace) -> None:
    assert call_main("run", "quick.yaml", "--python", "./python", "--no-report")[0] == 0
    code, _, err = call_main("render", "quick.yaml", "--earlier", "file://results", "--machine", "cpu=m6i.xlarge")
    assert (code, "(as they took here before); about 0.00 USD, at most 0.01" in err) == (0, True)
    code, _, err = call_main("render", "quick.yaml", "--earlier", "file://nowhere")
    assert (code, err.splitlines()[-1].startswith("error: store file://nowhere: there is no directory ")) == (2, True)
