"""runner.kubernetes.executor on a real API server, scheduler and Job controller: each repeat ends with one record."""

from collections.abc import Callable

import pytest
from runs import Setup, make_cells

from bench.store import Store
from fake_kubelet import FakeKubelet, Pod
from runner.kubernetes.connection import Connection

StartKubelet = Callable[..., FakeKubelet]


def test_every_repeat_is_measured_once_and_has_its_record(
    connection: Connection, namespace: str, store: Store, start_kubelet: StartKubelet
) -> None:
    kubelet = start_kubelet(num_nodes=3)
    setup = Setup.make(connection, namespace, store, make_cells(4), repeats=3)

    observed = setup.measure()

    assert 12 == len(observed.results)
    assert {"ok"} == {result.status for result in observed.results}
    assert 12 == len(kubelet.measured)
    assert {1} == set(kubelet.measured.values())
    assert {1} == set(setup.count_records().values())
    assert [] == observed.warnings


@pytest.mark.parametrize(
    ("ending", "status", "kind", "message"),
    [
        ("failed-record", "failed", "exception", ""),
        ("oom", "oom", "out-of-memory", "killed by the kernel's OOM killer"),
        ("user-error", "failed", "bad-configuration", "BENCH_STORE: not set"),
        ("crash", "failed", "killed", "ended by SIGSEGV"),
        ("no-record", "failed", "exit", "the container ended well but left no result in file://"),
        (
            "image",
            "failed",
            "bad-image",
            'the image cannot be had: ImagePullBackOff: Back-off pulling image "x": not found',
        ),
    ],
)
def test_each_end_leaves_its_record_and_is_not_retried(
    connection: Connection,
    namespace: str,
    store: Store,
    start_kubelet: StartKubelet,
    ending: str,
    status: str,
    kind: str,
    message: str,
) -> None:
    def decide(pod: Pod) -> str:
        return ending if '"seed":1' in str(pod["spec"]) else "ok"

    kubelet = start_kubelet(decide, num_nodes=2)
    setup = Setup.make(connection, namespace, store, make_cells(2))

    observed = setup.measure()

    bad = [result for result in observed.results if result.status != "ok"]
    assert [(status, kind)] == [(result.status, result.error.kind) for result in bad if result.error]
    assert bad[0].error is not None
    assert message in bad[0].error.message
    assert {1} == set(setup.count_records().values())
    assert max(kubelet.measured.values()) == 1
