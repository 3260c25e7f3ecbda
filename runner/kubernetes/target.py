"""Where the Jobs of a run go: the cluster, its namespace and queue, and what it can run."""

from dataclasses import dataclass

from bench.schema import Cell, Cluster
from runner.capabilities import explain_unsupported
from runner.kubernetes.login import find_context
from runner.kubernetes.syntax import check_option, check_queue
from runner.profiles.loading import find_profile
from runner.profiles.model import Profile


@dataclass(frozen=True, kw_only=True)
class ClusterTarget:
    """The cluster, namespace and queue that the Jobs go to."""

    context: str
    profile: Profile
    queue: str | None
    authorities: tuple[str, ...] = ()
    """Of `Connection.authorities`; empty as long as nobody has logged in."""

    @classmethod
    def find(cls, on: str, profile: str | None, namespace: str | None, queue: str | None) -> "ClusterTarget":
        """Return the target that the options name; `on` is a context, `current` or `in-cluster`. UserError if none."""
        context = find_context(on)
        found = find_profile(profile, context)
        if namespace is not None:
            found = found.in_namespace(namespace)
        if queue is not None:
            check_option("--queue", queue, check_queue)
        return cls(context=context, profile=found, queue=queue)

    @property
    def cluster(self) -> Cluster:
        """The target as the record of a run names it."""
        return Cluster(
            context=self.context,
            namespace=self.profile.namespace,
            profile=self.profile.name,
            queue=self.queue,
            authorities=self.authorities,
        )

    def explain_unsupported(self, cell: Cell) -> str | None:
        """Return why this cluster cannot run the cell, in one line, or None if it can."""
        return self.profile.explain_unsupported(cell) or explain_unsupported(cell, self.profile.gpu_kind)
