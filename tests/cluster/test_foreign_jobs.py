"""Jobs that carry a run's id and are not its own: with results in another store, of another plan, of other images."""

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from runs import Setup, Site, make_cells, make_profile, wait_for

from bench.errors import UserError
from bench.store import Store
from fake_kubelet import Pod
from workspace import CallMain

NEW_IMAGES: Any = {"pytorch": {"cpu": "registry.example/benchmatrix/pytorch:2"}}


def hang(pod: Pod) -> str:
    return "hang"


def measure(setup: Setup) -> None:
    """Measure what is missing as `benchmatrix run` does."""
    setup.make_cluster_run().measure(setup.run, setup.connection, setup.observed, Console(file=StringIO()))


def start_jobs(setup: Setup, number: int) -> None:
    """Submit Jobs as a runner does that is killed when so many run."""
    setup.start()
    wait_for(lambda: setup.count_ready() >= number, "Jobs that run")


def list_uids(setup: Setup) -> set[str]:
    return {job["metadata"]["uid"] for job in setup.list_jobs()}


def test_a_run_that_goes_on_with_new_images_refuses_while_jobs_with_the_old_ones_run(
    site: Site, call_main: CallMain
) -> None:
    kubelet = site.start_kubelet(hang, num_nodes=2)
    setup = site.make_setup(make_cells(2))
    start_jobs(setup, 2)
    newer = site.make_setup(make_cells(2), profile=make_profile(site.namespace, images=NEW_IMAGES))

    with pytest.raises(UserError) as refused:
        measure(newer)

    words = str(refused.value)
    assert f"run {site.namespace}: 2 of its Jobs in namespace {site.namespace} are unfinished" in words
    assert f"benchmatrix cancel {site.namespace} --on {site.connection.context} --store {site.store.url}" in words
    assert not newer.count_records()

    # What the message advises: the old Jobs are the run's own to `cancel`, and nothing stands in the way then.
    assert call_main("cancel", *site.words)[0] == 0
    kubelet.decide = lambda pod: "ok"
    measure(newer)
    images = {pod["spec"]["containers"][0]["image"] for pod in newer.list_pods()}
    assert [result.status for result in newer.observed.results] == ["ok"] * 2
    assert "registry.example/benchmatrix/pytorch:2" in images


def test_a_run_of_the_same_name_with_another_store_is_another_run(
    site: Site, tmp_path: Path, call_main: CallMain
) -> None:
    other_store = Store.open(f"file://{tmp_path}/other")
    kubelet = site.start_kubelet(hang, num_nodes=3)
    mine = site.make_setup(make_cells(1))
    theirs = Setup.make(site.connection, site.namespace, other_store, make_cells(2))
    start_jobs(mine, 1)
    my_jobs = list_uids(mine)
    start_jobs(theirs, 3)
    words = (site.namespace, "--on", "current", "--store", other_store.url)

    assert "Jobs: 2 running" in call_main("status", *words)[1]
    assert call_main("cancel", *words)[0] == 0
    assert list_uids(mine) == my_jobs
    assert "0 Jobs deleted" in call_main("clean", *words)[1]
    kubelet.decide, kubelet.store = (lambda pod: "ok"), other_store
    measure(theirs)
    assert list(theirs.count_records().values()) == [1] * 2
    assert my_jobs <= list_uids(mine)
