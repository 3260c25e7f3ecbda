"""Signed runs on a real API server: who signs what, what doctor says of the Secret, and what a wrong key leads to."""

import base64
from collections.abc import Callable

import pytest
from commands import create
from doctor_calls import PROFILE, Examine
from runs import Setup, make_cells, make_profile

from bench.signatures.signed_store import SignedStore, UnverifiedObject
from bench.store import Store, placements_prefix, results_prefix
from fake_kubelet import FakeKubelet, Pod, read_variables
from runner.kubernetes.connection import Connection
from signing import make_key

StartKubelet = Callable[..., FakeKubelet]


def sign(store: Store, name: str, *trusted: str) -> SignedStore:
    return SignedStore.over(store, signer=make_key(name), trusted=[make_key(other).public for other in trusted])


def read_right(store: Store, prefix: str, *trusted: str) -> dict[str, bytes]:
    """Return the documents below a prefix whose signature is by one of the trusted keys."""
    verifying = SignedStore.over(store, trusted=[make_key(name).public for name in trusted])
    found = verifying.get_listed(list(verifying.list_keys(prefix)))
    return {key: data for key, data in found if isinstance(data, bytes)}


def test_cells_sign_what_they_measure_and_the_runner_all_else(
    connection: Connection, namespace: str, store: Store, start_kubelet: StartKubelet
) -> None:
    variables = []

    def decide(pod: Pod) -> str:
        variables.append(read_variables(pod))
        return "crash" if '"seed":1' in str(pod["spec"]) else "ok"

    start_kubelet(decide, num_nodes=2, store=sign(store, "cells", "own"))
    signing = sign(store, "own", "cells")
    profile = make_profile(namespace, signing_secret="keys")
    setup = Setup.make(connection, namespace, signing, make_cells(2), profile=profile)

    observed = setup.measure()

    assert sorted(result.status for result in observed.results) == ["failed", "ok"]
    results, placements = results_prefix(setup.run.run_id), placements_prefix(setup.run.run_id)
    digest = signing.find_run_digest(setup.run.run_id)
    assert {found["BENCH_RUN_DIGEST"] for found in variables} == {digest}
    by_all = read_right(store, results, "own", "cells")
    by_runner = read_right(store, results, "own")
    assert len(by_all) == 2
    assert [b'"status": "failed"' in data for data in by_runner.values()] == [True]
    assert len(read_right(store, placements, "own")) == len(list(store.list_keys(placements))) > 0
    volumes = [job["spec"]["template"]["spec"]["volumes"] for job in setup.list_jobs()]
    assert all("signing" in [volume["name"] for volume in found] for found in volumes)


def test_a_record_of_a_key_that_is_not_trusted_fails_its_repeat_alone_and_is_named(
    connection: Connection, namespace: str, store: Store, start_kubelet: StartKubelet
) -> None:
    start_kubelet(num_nodes=1, store=sign(store, "other", "own"))
    profile = make_profile(namespace, signing_secret="keys")
    setup = Setup.make(connection, namespace, sign(store, "own"), make_cells(2), profile=profile)

    observed = setup.measure()

    assert [result.status for result in observed.results] == ["failed", "failed"]
    reason = f"signed by the key {make_key('other').public.key_id}, which is none"
    assert all(result.error is not None and reason in result.error.message for result in observed.results)
    assert len(read_right(store, results_prefix(setup.run.run_id), "own")) == 2


def test_a_run_whose_plan_was_exchanged_is_not_resumed(connection: Connection, namespace: str, store: Store) -> None:
    setup = Setup.make(connection, namespace, sign(store, "own"), make_cells(1))
    changed = setup.run.model_copy(update={"user": "mallory"})
    store.put(f"runs/{setup.run.run_id}/run.json", changed.to_json())
    setup.store = sign(store, "own")  # as a runner that starts again
    with pytest.raises(UnverifiedObject, match="run.json: not signed"):
        setup.measure()


def test_the_secret_with_the_key_is_looked_for_and_its_key_is_named(
    examine: Examine, connection: Connection, namespace: str
) -> None:
    profile, path = PROFILE + "signing_secret: keys\n", f"/api/v1/namespaces/{namespace}/secrets"
    _, findings = examine(profile=profile)
    found = findings["signing secret"]
    assert (found["state"], found["message"]) == ("failed", "there is no keys")
    assert found["hint"].startswith(
        f"kubectl create secret generic keys --namespace {namespace} --from-file=signing-key"
    )

    create(connection, path, {"metadata": {"name": "keys"}, "stringData": {"other": "x"}})
    _, findings = examine(profile=profile)
    assert findings["signing secret"]["message"] == "keys has no signing-key.pem"

    secret = make_key("cells").to_pem()
    data = {"signing-key.pem": base64.b64encode(secret).decode()}
    create(connection, path, {"metadata": {"name": "right"}, "data": data})
    _, findings = examine(profile=PROFILE + "signing_secret: right\n")
    assert findings["signing secret"] == findings["signing secret"] | {
        "state": "ok",
        "message": f"right has the key {make_key('cells').public.key_id}",
    }
    assert secret.splitlines()[1].decode() not in str(findings)
    assert {found["state"] for name, found in findings.items() if name.startswith("Job: ")} == {"ok"}

    create(connection, path, {"metadata": {"name": "wrong"}, "stringData": {"signing-key.pem": "hunter2-hunter2"}})
    _, findings = examine(profile=PROFILE + "signing_secret: wrong\n")
    assert findings["signing secret"]["state"] == "failed"
    assert findings["signing secret"]["message"].startswith("wrong/signing-key.pem: holds no secret key in PEM")
    assert "hunter2" not in str(findings)
