"""A site and a store in, findings about every precondition of a run out, in the order to mend them."""

from collections.abc import Callable, Iterable, Iterator

from runner.kubernetes.connection import ApiError
from runner.kubernetes.doctor.checks import (
    check_clock,
    check_jobs,
    check_namespace,
    check_objects,
    check_permissions,
    check_queue,
    check_store,
    check_version,
    explain_unreachable,
)
from runner.kubernetes.doctor.context import DoctorContext
from runner.kubernetes.doctor.findings import Finding, explain_unchecked
from runner.kubernetes.doctor.node_checks import ClusterInventory, check_claims, check_gpus, check_images, check_nodes


def examine(site: DoctorContext, store_url: str | None) -> Iterator[Finding]:
    """Yield what is found of each precondition; an API server that does not answer ends it early."""
    yield from site.findings
    try:
        yield check_version(site)
    except ApiError as error:
        yield explain_unreachable(error)
    else:
        yield from _examine_cluster(site)
    yield check_store(store_url)


def _examine_cluster(site: DoctorContext) -> Iterator[Finding]:
    yield from _guard("clock", lambda: [check_clock(site)])
    yield from _guard("permissions", lambda: check_permissions(site))
    yield from _guard("namespace", lambda: [check_namespace(site)])
    yield from _guard("objects", lambda: check_objects(site))
    yield from _guard("Jobs", lambda: check_jobs(site))
    yield from _guard("nodes", lambda: _examine_nodes(site))
    yield from _guard("claims", lambda: check_claims(site))
    if site.target.queue is not None:
        yield from _guard("queue", lambda: [check_queue(site)])


def _examine_nodes(site: DoctorContext) -> Iterator[Finding]:
    inventory = ClusterInventory.take(site.connection)
    yield from check_nodes(site, inventory)
    yield from check_images(site, inventory)
    yield from check_gpus(site, inventory)


def _guard(check: str, examine_part: Callable[[], Iterable[Finding]]) -> Iterator[Finding]:
    """Yield the findings of a part; what the API server refuses to show is a finding as well."""
    try:
        yield from examine_part()
    except ApiError as error:
        yield explain_unchecked(check, error)
