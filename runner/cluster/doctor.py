"""A site and a store in, findings about every precondition of a run out, in the order to mend them."""

from collections.abc import Callable, Iterable, Iterator

from runner.cluster.checks import (
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
from runner.cluster.checks_nodes import Census, check_claims, check_gpus, check_images, check_nodes
from runner.cluster.connection import ApiError
from runner.cluster.findings import Finding, explain_unchecked
from runner.cluster.site import Site


def examine(site: Site, store_url: str | None) -> Iterator[Finding]:
    """Yield what is found of each precondition; an API server that does not answer ends it early."""
    yield from site.findings
    try:
        yield check_version(site)
    except ApiError as error:
        yield explain_unreachable(error)
    else:
        yield from _examine_cluster(site)
    yield check_store(store_url)


def _examine_cluster(site: Site) -> Iterator[Finding]:
    yield from _guard("clock", lambda: [check_clock(site)])
    yield from _guard("permissions", lambda: check_permissions(site))
    yield from _guard("namespace", lambda: [check_namespace(site)])
    yield from _guard("objects", lambda: check_objects(site))
    yield from _guard("Jobs", lambda: check_jobs(site))
    yield from _guard("nodes", lambda: _examine_nodes(site))
    yield from _guard("claims", lambda: check_claims(site))
    if site.target.queue is not None:
        yield from _guard("queue", lambda: [check_queue(site)])


def _examine_nodes(site: Site) -> Iterator[Finding]:
    census = Census.take(site.connection)
    yield from check_nodes(site, census)
    yield from check_images(site, census)
    yield from check_gpus(site, census)


def _guard(check: str, examine_part: Callable[[], Iterable[Finding]]) -> Iterator[Finding]:
    """Yield the findings of a part; what the API server refuses to show is a finding as well."""
    try:
        yield from examine_part()
    except ApiError as error:
        yield explain_unchecked(check, error)
