"""A cluster whose nodes run pods, from the environment, for these tests; they skip with a reason where there is none.

E2E_KUBECONFIG  kubeconfig of the cluster; its current context is used
E2E_LOAD        command that brings a local image to the nodes; the image's name is appended
E2E_HOST        this machine's address as pods see it; left out: its first one
E2E_BUILD       options of `benchmatrix images build`, such as `--base NAME --network host`

The tests of GPU nodes put a device plugin beside the kubelet's socket, and that of nights lowers the CPU quota of pods:
the node must be this machine, which it is not in kind. They need root, and the former gcc.
"""

import os
import shlex
import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import helm_python
import pytest
from chart_release import make_restricted_namespace
from device_plugin import KUBELET_SOCKET
from gpu_nodes import GpuNode, Mounting, offer_card
from real_cluster import PROGRAM, ROOT, RealCluster, delete_namespace

from runner.images import DEFAULT_BASE
from runner.kubernetes.connection import Connection
from runner.kubernetes.login import CURRENT, find_context
from s3_server import S3Server
from stand_in_driver import compile_driver


@pytest.fixture(scope="session")
def docker() -> str:
    """The Docker client, with an engine behind it."""
    found = shutil.which("docker")
    if found is None or subprocess.run([found, "version"], capture_output=True).returncode:
        pytest.skip("no Docker engine: install docker.io and start dockerd")
    return found


@pytest.fixture(scope="session")
def build_options(docker: str) -> list[str]:
    """Options of `benchmatrix images build`."""
    options = shlex.split(os.environ.get("E2E_BUILD", ""))
    if not options and subprocess.run([docker, "image", "inspect", DEFAULT_BASE], capture_output=True).returncode:
        pytest.skip(f"no base image: `docker pull {DEFAULT_BASE}`, or name one in E2E_BUILD")
    return options


@pytest.fixture(scope="session")
def build_image(build_options: list[str]) -> Callable[[str], str]:
    """Build an image of this checkout, and return its name."""

    def build(name: str) -> str:
        done = subprocess.run(
            [*PROGRAM, "images", "build", name, *build_options], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert 0 == done.returncode, done.stdout + done.stderr
        return next(word for word in done.stdout.split() if word.startswith("benchmatrix/")).rstrip(":")

    return build


@pytest.fixture(scope="session")
def kubeconfig() -> str:
    path = os.environ.get("E2E_KUBECONFIG")
    if not path:
        pytest.skip(
            "no node that runs pods: set E2E_KUBECONFIG and E2E_LOAD (see tests/e2e/conftest.py), or `make e2e`"
        )
    return path


@pytest.fixture(scope="session")
def load_image(kubeconfig: str) -> Callable[[str], None]:
    """Bring an image to the nodes."""
    command = shlex.split(os.environ.get("E2E_LOAD", ""))
    if not command:
        pytest.skip("no way to bring images to the nodes: set E2E_LOAD, for example to `kind load docker-image`")

    loaded: set[str] = set()

    def load(name: str) -> None:
        if name not in loaded:
            subprocess.run([*command, name], check=True, capture_output=True)
            loaded.add(name)

    return load


@pytest.fixture(scope="session")
def provide_image(build_image: Callable[[str], str], load_image: Callable[[str], None]) -> Callable[[str], str]:
    """Build an image of this checkout, bring it to the nodes, and return its name."""

    def provide(name: str) -> str:
        image = build_image(name)
        load_image(image)
        return image

    return provide


@pytest.fixture(scope="session")
def host() -> str:
    """This machine's address as pods see it."""
    known = os.environ.get("E2E_HOST")
    if known:
        return known
    done = subprocess.run(["hostname", "-I"], check=True, capture_output=True, text=True)
    return done.stdout.split()[0]


@pytest.fixture
def connection(kubeconfig: str, monkeypatch: pytest.MonkeyPatch) -> Connection:
    monkeypatch.setenv("KUBECONFIG", kubeconfig)
    return Connection(context=find_context(CURRENT))


@pytest.fixture
def s3(tmp_path: Path, host: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    """A real S3 server that pods reach."""
    server = S3Server(root=tmp_path / "s3" / "root", host=host)
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("NO_PROXY", host)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def real_cluster(connection: Connection, s3: S3Server, tmp_path: Path) -> Iterator[RealCluster]:
    """A namespace of its own for a test; gone afterwards."""
    found = RealCluster(
        connection=connection, namespace=f"benchmatrix-e2e-{uuid.uuid4().hex[:6]}", s3=s3, folder=tmp_path
    )
    yield found
    delete_namespace(connection, found.namespace)


@pytest.fixture
def helm(real_cluster: RealCluster, kubeconfig: str) -> Iterator[helm_python.Config]:
    """Helm's engine for a namespace that takes only restricted pods, with the store's keys in it."""
    make_restricted_namespace(real_cluster)
    with helm_python.Config(kubeconfig_path=kubeconfig, namespace=real_cluster.namespace) as config:
        yield config


@pytest.fixture(scope="session")
def own_node(kubeconfig: str) -> None:
    """Skip where the node is not this machine, so that nothing beside its kubelet can be changed."""
    if not KUBELET_SOCKET.is_socket():
        pytest.skip(f"the node is not this machine: there is no {KUBELET_SOCKET}")


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with stand-ins for the libraries of NVIDIA's driver."""
    return compile_driver(tmp_path_factory.mktemp("driver") / "lib64")


@pytest.fixture(scope="module")
def gpu_node(request: pytest.FixtureRequest, kubeconfig: str, own_node: None, driver: Path) -> Iterator[GpuNode]:
    """The node of this machine with a T4 that answers NVML and can compute nothing; as GKE's, if no test says other.

    A test says how the driver is mounted, or that and how many containers may share the card.
    """
    given: Mounting | tuple[Mounting, int] = getattr(request, "param", "gke")
    mounting, num_clients = given if isinstance(given, tuple) else (given, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", kubeconfig)
        with offer_card(Connection(context=find_context(CURRENT)), driver, mounting, num_clients) as node:
            yield node
