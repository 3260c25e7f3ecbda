"""Tell the Jobs that carry a run's id and are not its own from those that are, and name them to the user.

A Job belongs to the run of the store that it writes to, whichever version of this tool made it. If it has the run's
fingerprint too, a runner follows it; if not, it was made with other images, variables or cores, for another plan, or by
a version that knew no fingerprints, and its result would not be what this runner is asked to measure.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from bench.errors import UserError
from runner.kubernetes.api_errors import ApiError, to_user_error
from runner.kubernetes.connection import Connection
from runner.kubernetes.fingerprint import strip_store_url
from runner.kubernetes.object_status import JobStatus, read_remaining_job
from runner.kubernetes.rendering.job_name import FINGERPRINT_LABEL, select_run


class WritesToStore(Protocol):
    """A Job, or a pod whose Job is gone."""

    @property
    def store_url(self) -> str:
        """Of the store that its cell writes to; empty: it names none."""


T = TypeVar("T", bound=WritesToStore)


@dataclass(frozen=True, kw_only=True)
class ForeignJobs:
    """The Jobs in a namespace that carry the id of a run of this store, and another fingerprint than it has now."""

    connection: Connection
    namespace: str
    run_id: str
    store_url: str

    def check(self, fingerprint: str, report: Callable[[str], None]) -> None:
        """Report Jobs of another run of the same name; UserError if some of this one's would measure something else.

        One LIST, from which the server leaves out the Jobs that have the fingerprint.
        """
        foreign = self._list(fingerprint)
        for line in describe_other_runs(foreign, self.store_url, self.namespace, self.run_id):
            report(line)
        own = select_own(foreign, self.store_url, self.namespace, self.run_id)
        unfinished = [job for job in own if job.end is None]
        if unfinished:
            raise UserError(self._explain_refusal(unfinished))

    def _list(self, fingerprint: str) -> list[JobStatus]:
        path = f"/apis/batch/v1/namespaces/{self.namespace}/jobs"
        # `!=` takes Jobs without the label too:
        # https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#equality-based-requirement
        selector = f"{select_run(self.run_id)},{FINGERPRINT_LABEL}!={fingerprint}"
        try:
            found = self.connection.read_items(path, read_remaining_job, {"labelSelector": selector})
        except ApiError as error:
            raise to_user_error(error, self.connection.context) from error
        return [job for job in found if job is not None]

    def _explain_refusal(self, unfinished: Sequence[JobStatus]) -> str:
        images = sorted({job.image for job in unfinished})
        is_older = any(not job.fingerprint for job in unfinished)
        by_whom = ", by an earlier version of this tool" if is_older else ""
        return (
            f"run {self.run_id}: {len(unfinished)} of its Jobs in namespace {self.namespace} are unfinished and were "
            f"created{by_whom} with other images, variables, cores or cells than this command has, such as "
            f"{unfinished[0].name} (images: {', '.join(images)}); wait until they have ended, or give "
            f"the command and the profile that they were created with, or end them with `benchmatrix cancel "
            f"{self.run_id} --on {self.connection.context} --store {self.store_url}`, or begin a run of another name"
        )


def describe_other_runs(jobs: Sequence[JobStatus], store_url: str, namespace: str, run_id: str) -> list[str]:
    """Return a line for every other store that Jobs with this run id write to."""
    own = strip_store_url(store_url)
    counts = Counter(url for job in jobs if (url := strip_store_url(job.store_url)) != own)
    return [
        f"namespace {namespace}: another run is also called {run_id}, with results in "
        f"{url or 'a store that its Jobs do not name'}; its Jobs ({count}) are not counted and not touched"
        for url, count in sorted(counts.items())
    ]


def select_own(jobs: Sequence[T], store_url: str | None, namespace: str, run_id: str) -> list[T]:
    """Return the Jobs, or pods whose Jobs are gone, that write to the store.

    Without a store all of them, or UserError if they write to several.
    """
    if store_url is not None:
        return [job for job in jobs if strip_store_url(job.store_url) == strip_store_url(store_url)]
    urls = sorted({strip_store_url(job.store_url) for job in jobs})
    if len(urls) > 1:
        raise UserError(
            f"run {run_id}: namespace {namespace} has Jobs of {len(urls)} runs of this name, with results in "
            f"{' and '.join(urls)}; say which is meant with --store"
        )
    return list(jobs)
