"""Where a named run may be resumed: not where its runner would not be seen, and everything be measured twice."""

from typing import Any

import pytest

from bench.errors import UserError
from bench.schema import Cluster
from bench.store import Store
from factories import put_documents
from runner.runs import Retries, choose_run
from stored_runs import make_own_run

ONE, NEW, OTHER = "1" * 64, "2" * 64, "3" * 64
"""Digests of certificates of authorities."""


def make_place(namespace: str = "lab", context: str = "gke-1", **others: Any) -> Cluster:
    return Cluster(context=context, namespace=namespace, profile="mine", **others)


@pytest.mark.parametrize(
    ("there", "here", "words"),
    [
        (make_place("a"), make_place("b"), "was begun in namespace a of gke-1, and this is in namespace b of gke-1: a"),
        (None, make_place("b"), "was begun on bench-1, and this is in namespace b of gke-1: a runner"),
        (make_place("a"), None, "was begun in namespace a of gke-1, and this is on bench-1: a runner"),
        (
            make_place(context="in-cluster", authorities=(ONE, NEW)),
            make_place(context="in-cluster", authorities=(OTHER,)),
            "was begun in namespace lab of in-cluster, and this is another cluster of this name, with another "
            "certificate authority: a runner",
        ),
    ],
)
def test_a_named_run_of_another_namespace_is_refused_as_its_runner_would_not_be_seen(
    store: Store, there: Cluster | None, here: Cluster | None, words: str
) -> None:
    put_documents(store, make_own_run(run_id="mine", cluster=there), [])
    plan = make_own_run(run_id="mine", cluster=here)
    with pytest.raises(UserError, match=f"--run-id mine: run mine {words}"):
        choose_run(store, lambda: plan, "m.yaml", is_named=True, start_new=False, retries=Retries())


@pytest.mark.parametrize(
    ("there", "here", "warnings"),
    [
        ({"cluster": make_place()}, {"cluster": make_place(queue="q"), "hostname": "b"}, 0),
        ({"cluster": make_place()}, {"cluster": make_place(context="gke-2")}, 1),
        ({"hostname": "a"}, {"hostname": "a"}, 0),
        ({"hostname": "a"}, {"hostname": "b"}, 1),
        ({"cluster": make_place(authorities=(ONE,))}, {"cluster": make_place(authorities=(OTHER,))}, 1),
        ({"cluster": make_place(authorities=(ONE,))}, {"cluster": make_place(authorities=(ONE, NEW))}, 0),
        ({"cluster": make_place(authorities=(ONE,))}, {"cluster": make_place()}, 0),
        (
            {"cluster": make_place(context="in-cluster")},
            {"cluster": make_place(context="in-cluster", authorities=(ONE,))},
            0,
        ),
    ],
)
def test_a_named_run_of_what_may_be_another_place_is_resumed_with_a_warning(
    store: Store, there: dict[str, Any], here: dict[str, Any], warnings: int
) -> None:
    run = make_own_run(run_id="mine", **there)
    put_documents(store, run, [])
    plan, said = make_own_run(run_id="mine", **here), list[str]()
    found = choose_run(
        store, lambda: plan, "m.yaml", is_named=True, start_new=False, retries=Retries(), warn=said.append
    )
    assert (found, len(said)) == (run, warnings)


@pytest.mark.parametrize(
    ("authorities", "is_resumed"),
    [((ONE,), True), ((ONE, NEW), True), ((), True), ((OTHER,), False)],
    ids=["the same", "while it is replaced", "not known", "another"],
)
def test_an_unfinished_run_is_resumed_by_itself_on_the_same_cluster_alone(
    store: Store, authorities: tuple[str, ...], is_resumed: bool
) -> None:
    """Two clusters may both be called `default`."""
    run = make_own_run(cluster=make_place(context="default", authorities=(ONE,)))
    put_documents(store, run, [])
    plan = make_own_run(cluster=make_place(context="default", authorities=authorities))
    plan = plan.model_copy(update={"run_id": plan.run_id[:-4] + "ffff"})
    found = choose_run(store, lambda: plan, "m.yaml", is_named=False, start_new=False, retries=Retries())
    assert found == (run if is_resumed else plan)
