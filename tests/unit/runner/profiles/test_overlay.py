"""An overlay: fields of Kubernetes that a profile adds to the pods, and those that are refused, with the reasons."""

from pathlib import Path

import pytest

from profile_files import catch_error, write
from runner.profiles.loading import load_profile

# The overlay, the place in it, how the message begins.
REFUSED = [
    ("spec: {shareProcessNamespace: true}", "spec.shareProcessNamespace", "is refused: the cell must be process 1"),
    ("spec: {nodeName: a}", "spec.nodeName", "is refused: it goes around the scheduler"),
    ("spec: {resources: {limits: {cpu: 3}}}", "spec.resources", "is refused: the requests of the container"),
    (
        "spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}}",
        "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution",
        "is refused: its terms are alternatives",
    ),
    ("spec: {initContainers: [{name: a}]}", "spec.initContainers", "is refused: what runs in the pod beside or before"),
    ("spec: {ephemeralContainers: [{name: a}]}", "spec.ephemeralContainers", "is refused: another container"),
    ("spec: {containers: [{name: bench}, {name: proxy}]}", "spec.containers[1].name", "is refused: another container"),
    ("spec: {containers: [{name: bench, image: a}]}", "spec.containers[0].image", "is refused: the image's entry"),
    ("spec: {containers: [{name: bench, lifecycle: {}}]}", "spec.containers[0].lifecycle", "is refused: the image's"),
    (
        "spec: {containers: [{name: bench, resources: {requests: {memory: 1Gi}}}]}",
        "spec.containers[0].resources.requests.memory",
        "is refused: it would change what is measured",
    ),
    (
        "spec: {containers: [{name: bench, resources: {limits: {nvidia.com/gpu: 2}}}]}",
        "spec.containers[0].resources.limits.nvidia.com/gpu",
        "is refused: it would change what is measured",
    ),
    (
        "spec: {containers: [{name: bench, resources: {claims: [{name: a}]}}]}",
        "spec.containers[0].resources.claims",
        "is refused: is a key of the profile",
    ),
    (
        "spec: {containers: [{name: bench, env: [{name: HF_TOKEN, value: hunter2}]}]}",
        "spec.containers[0].env[0].value",
        "is a credential, which would stand in every Job",
    ),
    ("metadata: {name: a}", "metadata.name", "is refused: an overlay adds `labels` and `annotations`"),
    ("template: {}", "template", "is refused: an overlay has `metadata` and `spec`, as the template of a pod"),
]


@pytest.mark.parametrize(("overlay", "place", "message"), REFUSED, ids=[place for _, place, _ in REFUSED])
def test_what_would_falsify_the_measurement_is_refused(tmp_path: Path, overlay: str, place: str, message: str) -> None:
    error = catch_error(tmp_path, f"extends: gke\n\noverlay:\n  {overlay}\n")
    assert error.key.replace("'", "") == f"overlay.{place}"
    assert error.message.startswith(message)
    assert error.line == 4


ALLOWED = [
    "spec: {runtimeClassName: nvidia, hostNetwork: true, priority: 3}",
    "spec: {hostNetwork: false, dnsPolicy: None, dnsConfig: {nameservers: [10.0.0.2]}}",
    "spec: {imagePullSecrets: [{name: a}], schedulerName: volcano}",
    "spec: {securityContext: {runAsUser: 1000, fsGroup: 1000, supplementalGroups: [7]}}",
    "spec: {tolerations: [{key: team, operator: Exists}], nodeSelector: {pool: a}}",
    "spec: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]}",
    "spec: {containers: [{name: bench, resources: {requests: {ephemeral-storage: 20Gi}}, envFrom: [{secretRef: {}}]}]}",
    "metadata: {labels: {team: a}, annotations: {a.b/c: 'd e'}}",
]


@pytest.mark.parametrize("overlay", ALLOWED)
def test_other_fields_are_allowed(tmp_path: Path, overlay: str) -> None:
    assert load_profile(write(tmp_path, f"extends: gke\noverlay:\n  {overlay}\n")).overlay


def test_overlays_of_profiles_that_extend_one_another_are_merged(tmp_path: Path) -> None:
    write(tmp_path, "extends: gke\noverlay: {spec: {runtimeClassName: a, hostname: b}}\n", "base.yaml")
    profile = load_profile(write(tmp_path, "extends: base.yaml\noverlay: {spec: {runtimeClassName: c}}\n"))
    assert profile.overlay == {"spec": {"runtimeClassName": "c", "hostname": "b"}}
