"""Whose Jobs are whose, as it stands in the Jobs themselves."""

from typing import Any

import pytest

from bench.errors import UserError
from job_manifests import STORE, load, render
from runner.kubernetes.foreign_jobs import describe_other_runs, select_own
from runner.kubernetes.object_status import JobStatus, read_job_status

OURS, THEIRS = "s3://bucket/ours", "s3://bucket/theirs"


def make_job(store_url: str, **container: Any) -> JobStatus:
    """Return a Job as the API server would describe it, with these fields of its container instead of its own."""
    job = render(load("kind"), store_url=store_url)
    job["metadata"] |= {"uid": "1", "creationTimestamp": "2026-11-22T00:00:00Z"}
    job["spec"]["template"]["spec"]["containers"][0] |= container
    return read_job_status(job)


@pytest.mark.parametrize("url", [STORE, "s3://bucket/a$b", "s3://bucket/$(HOME)", "gs://bucket"])
def test_the_store_of_a_job_is_read_as_it_was_given(url: str) -> None:
    assert make_job(url).store_url == url


def test_a_slash_at_the_end_names_the_same_store() -> None:
    jobs = [make_job(OURS), make_job(f"{OURS}/")]
    assert select_own(jobs, f"{OURS}/", "space", "mine") == jobs
    assert select_own(jobs, None, "space", "mine") == jobs
    assert describe_other_runs(jobs, OURS, "space", "mine") == []


def test_a_job_that_names_no_store_is_nobodys() -> None:
    job = make_job(OURS, env=[])
    assert select_own([job], OURS, "space", "mine") == []
    assert describe_other_runs([job], OURS, "space", "mine") == [
        "namespace space: another run is also called mine, with results in a store that its Jobs do not name; its "
        "Jobs (1) are not counted and not touched"
    ]


def test_without_a_store_jobs_of_two_runs_are_told_apart_by_nobody() -> None:
    jobs = [make_job(OURS), make_job(THEIRS), make_job(THEIRS)]
    assert select_own(jobs, THEIRS, "space", "mine") == jobs[1:]
    with pytest.raises(UserError, match=f"2 runs of this name, with results in {OURS} and {THEIRS}; .* --store"):
        select_own(jobs, None, "space", "mine")
