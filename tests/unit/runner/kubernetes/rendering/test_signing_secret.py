"""The Secret with the signing key: in the containers that write records, and nowhere else."""

import json
from pathlib import Path

import pytest

from bench.errors import UserError
from factories import make_cell, make_run
from job_manifests import STORE, load, make_full_profile, render
from runner.kubernetes.fingerprint import compute_fingerprint
from runner.kubernetes.rendering.job_template import SIGNING_FOLDER, SIGNING_KEY
from runner.kubernetes.rendering.manifest_files import write_manifests

DIGEST = "ab" * 32
VOLUME = {
    "name": "signing",
    "secret": {
        "secretName": "signing-keys",
        "defaultMode": 0o444,
        "items": [{"key": "signing-key.pem", "path": "signing-key.pem"}],
    },
}


def test_the_container_of_a_cell_has_one_key_of_the_secret_to_read_and_is_told_where() -> None:
    pod = render(make_full_profile(), run_digest=DIGEST, trusted_keys=("a", "b"))["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert [volume for volume in pod["volumes"] if volume["name"] == "signing"] == [VOLUME]
    mounts = [mount for mount in container["volumeMounts"] if mount["name"] == "signing"]
    assert mounts == [{"name": "signing", "mountPath": SIGNING_FOLDER, "readOnly": True}]
    variables = {item["name"]: item.get("value") for item in container["env"]}
    assert variables["BENCH_SIGNING_KEY_FILE"] == f"{SIGNING_FOLDER}/{SIGNING_KEY}"
    assert variables["BENCH_RUN_DIGEST"] == DIGEST
    assert variables["BENCH_TRUSTED_KEYS"] == "a,b"
    assert "signing-keys" not in json.dumps(container)


def test_each_tenant_has_it_for_all_of_them_write_where_they_meet() -> None:
    job = render(load("kind", signing_secret="keys"), make_cell(tenants=3), run_digest=DIGEST)
    pod = job["spec"]["template"]["spec"]
    mounted = [[mount["name"] for mount in container["volumeMounts"]] for container in pod["containers"]]
    assert [names.count("signing") for names in mounted] == [1, 1, 1]


def test_where_nothing_is_signed_there_is_no_trace_of_it() -> None:
    assert "signing" not in json.dumps(render(make_full_profile())).lower()


def test_jobs_that_sign_for_another_plan_or_with_another_secret_are_others() -> None:
    run = make_run([make_cell()])
    fingerprints = {
        compute_fingerprint(run, load("kind", signing_secret=secret), STORE, digest)
        for secret in ("keys", "others")
        for digest in (DIGEST, "cd" * 32)
    }
    assert len(fingerprints) == 4
    assert compute_fingerprint(run, load("kind"), STORE) not in fingerprints


def test_jobs_that_are_applied_by_hand_cannot_be_signed(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="signing_secret: nothing signs the plan of Jobs that are applied by hand"):
        write_manifests(tmp_path, make_run(), load("kind", signing_secret="keys"), STORE, None)
