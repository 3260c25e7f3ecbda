"""A real Kueue for tests: its CRDs, webhooks and controller beside a control plane, as one process of this machine.

$KUEUE_ASSETS (default: where the binaries of the control plane are) names a folder with the program `kueue` and, beside
it in kueue-config/, the manifests of the same version: crd/*.yaml (config/components/crd/bases of Kueue's source) and
webhook.yaml (config/components/webhook/manifests.yaml).
"""

import base64
import json
import os
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from child_process import start_child
from control_plane import DEFAULT_ASSETS, START_DEADLINE_SECONDS, ControlPlane
from runner.kubernetes.capacity import find_api_version
from runner.kubernetes.connection import ApiError, Connection
from s3_server import find_free_port
from waiting import wait_for

METRICS_CERTIFICATES = Path("/etc/kueue/metrics/certs")
"""Fixed in Kueue's code (cmd/kueue/main.go)."""
MANAGED_LABEL = "kueue-of-the-tests"
"""Its webhooks see only namespaces with this label, so that other tests' Jobs do not depend on it."""
WEBHOOK_PATHS = ("batch-v1-job", "-v1-pod", "kueue-x-k8s-io")
"""Those of Jobs, pods and Kueue's own kinds; it starts no webhooks for kinds that the cluster lacks."""
CONVERTED = ("localqueues", "clusterqueues", "cohorts", "workloads", "multikueueclusters")
"""As config/components/crd/kustomization.yaml of Kueue's source has it."""
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The schemas of its kinds have more than 20,000 lines."""


def find_kueue() -> Path | None:
    """Return the folder with the program and its manifests, or None."""
    folder = Path(os.environ.get("KUEUE_ASSETS") or os.environ.get("KUBEBUILDER_ASSETS") or DEFAULT_ASSETS)
    is_there = (folder / "kueue").is_file() and (folder / "kueue-config" / "webhook.yaml").is_file()
    return folder if is_there else None


@dataclass(kw_only=True)
class KueueController:
    """One Kueue that serves one control plane."""

    control_plane: ControlPlane
    connection: Connection
    folder: Path
    assets: Path
    webhook_port: int = field(default_factory=find_free_port)
    health_port: int = field(default_factory=find_free_port)
    process: "subprocess.Popen[bytes] | None" = None
    _version: str = "v1beta1"
    """Of the API and of the configuration."""
    _made: list[str] = field(default_factory=list)
    """Paths of the objects in the cluster, in the order in which they were made."""

    def start(self) -> None:
        """Install and start it; return when its controller is ready and its webhooks answer."""
        self.folder.mkdir(parents=True)
        self._make_certificate()
        with suppress(ApiError):  # it is there
            self._create("/api/v1/namespaces", {"metadata": {"name": "kueue-system"}})
        paths = sorted((self.assets / "kueue-config" / "crd").iterdir())
        crds: list[dict[str, Any]] = [yaml.load(path.read_text(), LOADER) for path in paths]
        for crd in crds:
            self._create(CRDS, self._convert_here(crd))
        for crd in crds:
            self._await_established(crd["metadata"]["name"])
        versions = {version["name"] for crd in crds for version in crd["spec"]["versions"]}
        self._version = "v1beta2" if "v1beta2" in versions else "v1beta1"
        self._start_process()
        for configuration in yaml.safe_load_all((self.assets / "kueue-config" / "webhook.yaml").read_text()):
            self._create(f"{ADMISSION}/{configuration['kind'].lower()}s", self._call_here(configuration))

    def stop(self) -> None:
        """Remove its webhooks, its objects and their kinds, and stop it."""
        for path in self._made:
            if path.startswith(ADMISSION):
                self._delete(path)
        for kind in ("workloads", "localqueues", "clusterqueues", "cohorts", "resourceflavors"):
            self._delete_objects(kind)
        self._stop_process()
        kinds = [path for path in self._made if path.startswith(CRDS)]
        for path in kinds:
            self._delete(path)
        for path in kinds:
            self._await_gone(path)

    @contextmanager
    def share_fairly(self) -> Iterator[None]:
        """Have it share fairly, by its default strategies, while the context lasts: it is started anew for that."""
        self._stop_process()
        # From v1beta2 on, fair sharing is on where there is anything of it.
        strategies = {"preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]}
        switch = {"enable": True} if self._version == "v1beta1" else {}
        self._start_process({"fairSharing": strategies | switch})
        try:
            yield
        finally:
            self._stop_process()
            self._start_process()

    def _stop_process(self) -> None:
        if self.process is not None:
            self.process.kill()  # it keeps nothing, and takes ten seconds over an orderly end
            self.process.wait(START_DEADLINE_SECONDS)
            self.process = None

    def _make_certificate(self) -> None:
        command = (
            "openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=127.0.0.1 -keyout tls.key -out tls.crt "
            "-addext subjectAltName=IP:127.0.0.1"
        )
        subprocess.run(command.split(), cwd=self.folder, check=True, capture_output=True)
        METRICS_CERTIFICATES.mkdir(parents=True, exist_ok=True)
        for name in ("tls.crt", "tls.key"):
            (METRICS_CERTIFICATES / name).write_bytes((self.folder / name).read_bytes())

    def _start_process(self, more: dict[str, Any] | None = None) -> None:
        config: dict[str, Any] = {
            "apiVersion": f"config.kueue.x-k8s.io/{self._version}",
            "kind": "Configuration",
            "namespace": "kueue-system",
            "health": {"healthProbeBindAddress": f"127.0.0.1:{self.health_port}"},
            "metrics": {"bindAddress": f"127.0.0.1:{find_free_port()}"},
            "webhook": {"port": self.webhook_port, "host": "127.0.0.1", "certDir": str(self.folder)},
            "leaderElection": {"leaderElect": False},
            "internalCertManagement": {"enable": False},
            "clientConnection": {"qps": 300, "burst": 600},
            "managedJobsNamespaceSelector": {"matchLabels": {MANAGED_LABEL: ""}},
            "integrations": {"frameworks": ["batch/job", "pod"]},
            **(more or {}),
        }
        (self.folder / "config.yaml").write_text(json.dumps(config))
        flags = ("--config", "config.yaml", "--kubeconfig", self.control_plane.kubeconfig)
        with (self.folder / "kueue.log").open("ab") as log:
            # The visibility server would listen on a fixed port.
            self.process = start_child(
                [self.assets / "kueue", *flags, "--feature-gates", "VisibilityOnDemand=false"],
                cwd=self.folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._await_ready(self.process)

    def _await_ready(self, process: "subprocess.Popen[bytes]") -> None:
        deadline = time.monotonic() + START_DEADLINE_SECONDS
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.health_port}/readyz", timeout=5):
                    return
            except OSError as error:
                if process.poll() is not None or time.monotonic() > deadline:
                    log = (self.folder / "kueue.log").read_text()[-2000:]
                    raise RuntimeError(f"Kueue did not become ready: {error}\n{log}") from error
                time.sleep(0.2)

    def _name_webhook(self, path: str) -> dict[str, str]:
        certificate = base64.b64encode((self.folder / "tls.crt").read_bytes()).decode()
        return {"url": f"https://127.0.0.1:{self.webhook_port}{path}", "caBundle": certificate}

    def _convert_here(self, crd: dict[str, Any]) -> dict[str, Any]:
        """Have this process convert the objects of a kind whose versions differ."""
        if len(crd["spec"]["versions"]) > 1 and crd["spec"]["names"]["plural"] in CONVERTED:
            webhook = {"clientConfig": self._name_webhook("/convert"), "conversionReviewVersions": ["v1"]}
            crd["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
        return crd

    def _call_here(self, configuration: dict[str, Any]) -> dict[str, Any]:
        """Return a configuration whose webhooks call this process, without those of kinds that the cluster lacks."""
        webhooks = []
        for webhook in configuration["webhooks"]:
            path = webhook["clientConfig"]["service"]["path"]
            if any(part in path for part in WEBHOOK_PATHS):
                selector = {"matchLabels": {MANAGED_LABEL: ""}}
                webhooks.append(webhook | {"clientConfig": self._name_webhook(path), "namespaceSelector": selector})
        return configuration | {"metadata": {"name": "kueue-of-the-tests"}, "webhooks": webhooks}

    def _create(self, path: str, body: dict[str, Any]) -> None:
        self.connection.request("create", path, body=json.dumps(body).encode())
        self._made.append(f"{path}/{body['metadata']['name']}")

    def _await_established(self, name: str) -> None:
        def is_established() -> bool:
            conditions = self.connection.get_object(f"{CRDS}/{name}").get("status", {}).get("conditions") or ()
            return any(item["type"] == "Established" and item["status"] == "True" for item in conditions)

        wait_for(is_established, name, 0.1)

    def _delete_objects(self, kind: str) -> None:
        """Delete all objects of a kind, and what would keep them until another object is gone."""
        version = find_api_version(self.connection)
        for item in self.connection.list_items(f"/apis/{version}/{kind}"):
            namespace = item["metadata"].get("namespace")
            place = f"namespaces/{namespace}/{kind}" if namespace else kind
            path = f"/apis/{version}/{place}/{item['metadata']['name']}"
            self._delete(path)
            with suppress(ApiError):  # it is gone
                body = json.dumps({"metadata": {"finalizers": None}}).encode()
                self.connection.request("patch", path, body=body, content_type="application/merge-patch+json")

    def _delete(self, path: str) -> None:
        with suppress(ApiError):  # it is gone
            self.connection.request("delete", path)

    def _await_gone(self, path: str) -> None:
        wait_for(lambda: self.connection.find_object(path) is None, f"the end of {path}", 0.1)
