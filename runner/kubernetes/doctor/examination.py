"""The order of doctor's checks, which is that in which to fix what they find."""

from collections.abc import Callable, Iterable, Iterator

from runner.kubernetes.api_errors import ApiError
from runner.kubernetes.doctor.api_server_checks import (
    check_clock,
    check_permissions,
    check_version,
    explain_unreachable,
)
from runner.kubernetes.doctor.cluster_inventory import ClusterInventory
from runner.kubernetes.doctor.context import DoctorContext
from runner.kubernetes.doctor.findings import Finding, explain_unchecked
from runner.kubernetes.doctor.gpu_checks import check_claims, check_gpus
from runner.kubernetes.doctor.growth_checks import check_growth
from runner.kubernetes.doctor.namespace_checks import (
    check_jobs,
    check_namespace,
    check_objects,
    check_orphaned_pods,
    check_pods,
)
from runner.kubernetes.doctor.node_checks import check_images, check_nodes
from runner.kubernetes.doctor.queue_checks import check_queue
from runner.kubernetes.doctor.store_check import check_cells_endpoint, check_store


def examine(context: DoctorContext, store_url: str | None) -> Iterator[Finding]:
    """Check each precondition of a run, and yield the findings; nothing more is checked if no API server answers."""
    yield from context.findings
    try:
        yield check_version(context)
    except ApiError as error:
        yield explain_unreachable(error)
    else:
        yield from _examine_cluster(context)
        yield from _guard("store of the cells", lambda: filter(None, [check_cells_endpoint(context, store_url)]))
    yield check_store(store_url, context.profile.environment)


def _examine_cluster(context: DoctorContext) -> Iterator[Finding]:
    yield from _guard("clock", lambda: [check_clock(context)])
    yield from _guard("permissions", lambda: check_permissions(context))
    yield from _guard("namespace", lambda: [check_namespace(context)])
    yield from _guard("objects", lambda: check_objects(context))
    yield from _guard("Jobs", lambda: check_jobs(context))
    yield from _guard("pods", lambda: check_pods(context))
    yield from _guard("pods without a Job", lambda: check_orphaned_pods(context))
    yield from _guard("nodes", lambda: _examine_nodes(context))
    yield from _guard("claims", lambda: check_claims(context))
    if context.target.queue is not None:
        yield from _guard("queue", lambda: check_queue(context))


def _examine_nodes(context: DoctorContext) -> Iterator[Finding]:
    inventory = ClusterInventory.take(context.connection)
    yield from check_nodes(context, inventory)
    yield from check_images(context, inventory)
    yield from check_gpus(context, inventory)
    yield from check_growth(context, inventory)


def _guard(check: str, examine_part: Callable[[], Iterable[Finding]]) -> Iterator[Finding]:
    """Yield the findings of a part; what the API server refuses to show is a finding as well."""
    try:
        yield from examine_part()
    except ApiError as error:
        yield explain_unchecked(check, error)
