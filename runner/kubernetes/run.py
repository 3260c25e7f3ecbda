"""A run on a cluster, from the choice of the run to its last record or its deadline, and how it stands there."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from rich.console import Console

from bench.errors import UserError
from bench.schema import Cluster, Run
from runner.kubernetes.capacity import check_prices, explain_queued_jobs
from runner.kubernetes.cleanup import JobCleaner
from runner.kubernetes.connection import ApiError, Connection
from runner.kubernetes.failures import is_starting, read_reasons
from runner.kubernetes.login import find_context
from runner.kubernetes.names import FINGERPRINT_LABEL, JobKey, make_path, select_run
from runner.kubernetes.nodes import NodesAtFaultError, Placements
from runner.kubernetes.objects import JobStatus, read_job_status, read_pod_status, read_remaining_job
from runner.kubernetes.rendering import JobRenderer, compute_fingerprint
from runner.kubernetes.session import POD_FIELDS, BudgetSpent, ClusterSession, DeadlinePassed
from runner.kubernetes.setup import RUN_PERMISSIONS, check_permissions
from runner.kubernetes.tracked_jobs import ClusterObserver, OngoingRun, RunBounds, TrackedJob, warn_once
from runner.matrix import load_matrix, plan_run
from runner.profiles import BUCKET_URLS
from runner.profiles.loading import find_profile
from runner.profiles.model import Profile
from runner.runs import Records, RecordSnapshot, RunRequest, begin_run, select_missing
from runner.terminal import format_wait, join_printable


@dataclass(frozen=True, kw_only=True)
class ClusterTarget:
    """The cluster that the Jobs of a run go to, with its namespace and queue."""

    context: str
    profile: Profile
    queue: str | None
    authorities: tuple[str, ...] = ()
    """Of `Login.authorities`; empty as long as nobody has logged in."""

    @classmethod
    def find(cls, on: str, profile: str | None, namespace: str | None, queue: str | None) -> "ClusterTarget":
        """Return the target that the options name; `on` is a context, `current` or `in-cluster`. UserError if none."""
        context = find_context(on)
        found = find_profile(profile, context)
        if namespace is not None:
            found = found.in_namespace(namespace)
        return cls(context=context, profile=found, queue=queue)

    @property
    def cluster(self) -> Cluster:
        return Cluster(
            context=self.context,
            namespace=self.profile.namespace,
            profile=self.profile.name,
            queue=self.queue,
            authorities=self.authorities,
        )


@dataclass(frozen=True, kw_only=True)
class ClusterRun(RunRequest, RunBounds):
    """What to run on a cluster, and how."""

    target: ClusterTarget
    owner: str | None = None
    """The Job that the runner itself runs in, if it does."""

    def make_plan(self) -> Run:
        if self.store.url.startswith("file:"):
            raise UserError(
                f"--store {self.store.url}: the cells on a cluster do not see this machine's directories; "
                f"name a bucket, {BUCKET_URLS}"
            )
        matrix = load_matrix(self.matrix, is_data_here=False)
        explain, cluster = self.target.profile.explain_unsupported, self.target.cluster
        plan = plan_run(matrix, explain, run_id=self.run_id, cluster=cluster)
        check_prices(self.target.profile, (planned.cell.device for planned in plan.cells), self.max_cost)
        return plan

    def make_renderer(self, run: Run) -> JobRenderer:
        """Return the renderer of the run's Jobs. Raise UserError if the profile's overlay does not fit one of them."""
        renderer = JobRenderer(
            profile=self.target.profile.add_variables(run.environment),
            store_url=self.store.url,
            git_revision=run.git_revision,
            queue=self.target.queue,
            owner=self.owner,
        )
        for planned in run.cells:
            renderer.render(planned, JobKey(run_id=run.run_id, cell_id=planned.cell.cell_id, number=1, retry_round=0))
        return renderer

    def measure(self, run: Run, connection: Connection, observer: ClusterObserver, console: Console) -> None:
        """Measure every repeat that is missing, until the deadline; UserError if the cluster or the store refuses."""
        renderer = self.make_renderer(run)
        self.store.check_writable()
        ongoing, records = self.make_ongoing(run, renderer, connection, observer), Records(self.store, run.run_id)
        snapshot = records.read_snapshot()
        missing = select_missing(run, snapshot, self.retries)
        begin_run(self.store, run, snapshot, missing, console)
        if missing:
            self._measure_missing(ongoing, records, console)
        try:
            Placements(run=ongoing).complete()
        except ApiError as error:
            console.print(f"where some of the attempts ran stays unknown: {error.message}")

    def _measure_missing(self, ongoing: OngoingRun, records: Records, console: Console) -> None:
        run, connection = ongoing.plan, ongoing.connection
        connection.warn = warn_once(ongoing.observer.warn)  # an API server that is away is told before a session begins
        check_permissions(connection, ongoing.namespace, RUN_PERMISSIONS, "a run")

        def list_missing() -> list[TrackedJob]:  # called when the API server has answered
            self._refuse_other_measurements(ongoing)
            snapshot = records.read_snapshot()
            session.spending.add_records(snapshot.seconds)
            return self.list_missing(run, snapshot)

        session = ClusterSession(ongoing, list_missing)
        try:
            session.measure()
        except BudgetSpent:
            console.print(
                f"the run has cost about {session.spending.cost}; one more cell would pass --max-cost "
                f"{self.max_cost:g}. What is missing is not measured; the same command with a higher --max-cost "
                "resumes the run"
            )
        except DeadlinePassed:
            num_deleted = self._make_cleaner(connection, run).end_unfinished()
            console.print(f"the deadline has passed: {num_deleted} unfinished Jobs were deleted")
        except NodesAtFaultError as error:  # Jobs of other pools go on: the next runner finds their records
            self._make_cleaner(connection, run, error.pool).end_unfinished()
            raise
        finally:
            if session.spending.prices:
                console.print(f"estimated cost of the run so far: {session.spending.cost}")

    def _refuse_other_measurements(self, ongoing: OngoingRun) -> None:
        """Raise UserError if unfinished Jobs of the run would measure something else than this command.

        They were made with other images, variables or cores, or for another plan. One LIST, from which the server
        leaves out the Jobs that have the run's fingerprint.
        """
        run, connection = ongoing.plan, ongoing.connection
        # `!=` takes Jobs without the label too:
        # https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#equality-based-requirement
        selector = f"{select_run(run.run_id, store_url=self.store.url)},{FINGERPRINT_LABEL}!={ongoing.fingerprint}"
        with connection.explain_refusals():
            found = connection.read_items(ongoing.path("jobs"), read_remaining_job, {"labelSelector": selector})
        unfinished = [job.name for job in found if job is not None and job.end is None]
        if unfinished:
            raise UserError(
                f"run {run.run_id}: {len(unfinished)} of its Jobs in namespace {ongoing.namespace} are unfinished and "
                "were created with other images, variables, cores or cells than this command has, such as "
                f"{unfinished[0]}; wait until they have ended, or give the command and the profile that they were "
                f"created with, or end them with `benchmatrix cancel {run.run_id} --on {connection.context} --store "
                f"{self.store.url}`, or begin a run of another name"
            )

    def _make_cleaner(self, connection: Connection, run: Run, pool: str | None = None) -> JobCleaner:
        namespace = self.target.profile.namespace
        return JobCleaner(connection=connection, namespace=namespace, run_id=run.run_id, store=self.store, pool=pool)

    def make_ongoing(
        self, run: Run, renderer: JobRenderer, connection: Connection, observer: ClusterObserver
    ) -> OngoingRun:
        return OngoingRun(
            plan=run,
            store=self.store,
            connection=connection,
            renderer=renderer,
            observer=observer,
            bounds=self,
        )

    def list_missing(self, run: Run, snapshot: RecordSnapshot) -> list[TrackedJob]:
        fingerprint = compute_fingerprint(run, self.target.profile, self.store.url)
        return [
            TrackedJob(
                repeat=repeat,
                key=JobKey(
                    run_id=run.run_id,
                    cell_id=repeat.key[0],
                    number=repeat.number,
                    retry_round=len(earlier),
                    fingerprint=fingerprint,
                ),
                earlier=earlier,
            )
            for repeat in select_missing(run, snapshot, self.retries)
            for earlier in (snapshot.earlier.get(repeat.key, ()),)
        ]


RATE_WINDOW = timedelta(minutes=10)
"""The rate is that of the Jobs that finished last."""

JobPhase = Literal["finished", "failed", "running", "waiting", "queued"]
PHASES: Mapping[JobPhase, str] = {name: name for name in ("finished", "failed", "running", "waiting")} | {
    "queued": "queued by Kueue"
}


def inspect_run(
    connection: Connection, namespace: str, run_id: str, store_url: str, num_missing: int
) -> tuple[bool, list[str]]:
    """Return whether a run goes on now, and the lines to print of its Jobs: how many, why some wait, how fast they end.

    `num_missing`: repeats without a record, in flight or not submitted.
    """
    query = {"labelSelector": select_run(run_id, store_url=store_url)}
    with connection.explain_refusals():
        jobs = connection.read_items(make_path(namespace, "jobs"), read_job_status, query)
        phases = {job.uid: find_phase(job) for job in jobs}
        counts = Counter(phases.values())
        query["fieldSelector"] = POD_FIELDS
        pods = connection.read_items(make_path(namespace, "pods"), read_pod_status, query)
        said = read_reasons(connection, namespace) if counts["waiting"] else {}
        queued = [uid for uid, phase in phases.items() if phase == "queued"]
        waits = explain_queued_jobs(connection, namespace, queued) if queued else {}
    reasons = {job.name: said.get(job.name, "") for job in jobs if not job.num_active}
    for pod in sorted(pods, key=lambda pod: pod.created_at):
        waiting = f"{pod.waiting_reason}: {pod.waiting_message}".rstrip(": ")
        found = (is_starting(pod) and said.get(pod.uid)) or pod.unschedulable or waiting
        reasons[pod.job_name] = found or reasons.get(pod.job_name, "")
    given = [reasons.get(job.name) or "no reason given yet" for job in jobs if phases[job.uid] == "waiting"]
    by_reason = Counter(join_printable(f"waiting: {reason}") for reason in given).most_common()
    # Those that Kueue has just admitted are not among these.
    by_reason += Counter(join_printable(f"queued: {wait}") for wait in waits.values()).most_common()
    states = [f"{counts[phase]} {words}" for phase, words in PHASES.items() if counts[phase]]
    lines = [f"Jobs: {', '.join(states) or 'none'}", *(f"  {number} {reason}" for reason, number in by_reason)]
    is_going_on = any(counts[phase] for phase in ("running", "waiting", "queued"))
    if is_going_on and num_missing and (rate := measure_rate(jobs, datetime.now(UTC))):
        lines.append(f"{rate * 60:.3g} finish per minute, about {format_wait(num_missing / rate)} left")
    return is_going_on, lines


def find_phase(job: JobStatus) -> JobPhase:
    if job.end:
        return "finished" if job.end == "complete" else "failed"
    if job.is_suspended:
        return "queued"
    return "running" if job.num_ready else "waiting"


def measure_rate(jobs: Sequence[JobStatus], now: datetime) -> float | None:
    """Return the Jobs per second that finished within the window, or since the first was created if that is later."""
    begin = max(now - RATE_WINDOW, min((job.created_at for job in jobs), default=now))
    num_ended = sum(job.ended_at is not None and job.ended_at >= begin for job in jobs)
    seconds = (now - begin).total_seconds()
    return num_ended / seconds if num_ended and seconds > 0 else None
