"""The fixtures that several packages use; markers by folder and fixture; what parallel workers share."""

import gc
import os
import signal
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate.utils
import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

from bench.schema import Framework
from bench.store import Store
from framework_environments import install_environments
from s3_server import S3Server

# While modules are imported and tests collected, nearly nothing becomes garbage: looking for it took a quarter of that
# time. `pytest_collection_finish` switches the collector on again.
gc.disable()
COLLECTOR_THRESHOLDS = (20_000, 20, 20)
"""Objects before the youngest are looked at, and so on: pandas makes thousands of short-lived ones per call."""

# A busy machine is no error of the code: no example of any test has a deadline, nor has the drawing of examples.
settings.register_profile("benchmatrix", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("benchmatrix")

# It parses the same megabyte of schemas for every manifest that it checks: 18 ms of CPU each, 2 ms from memory.
kubernetes_validate.utils.schema_contents = cache(kubernetes_validate.utils.schema_contents)

# execnet, which starts pytest-xdist's workers, has them ignore SIGINT, and what they start would
# inherit that: there would be no Ctrl-C in any test.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

TESTS = Path(__file__).parent
MARKERS_BY_FOLDER = {TESTS / "cluster": "cluster", TESTS / "e2e": "e2e"}
MARKERS_BY_FIXTURE = {"interpreters": "framework", "browser": "browser"}
# Modules, and folders of them, with seconds of CPU that nobody need wait for before each push, and why they are spent.
SLOW_MODULES = {
    "unit/collector/tables/": "analyses a run in most of its tests",
    "unit/collector/versus/": "compares runs in most of its tests",
    "unit/runner/commands/": "runs whole commands, some in processes of their own",
    "unit/collector/test_comparisons.py": "compares runs in most of its tests",
    "unit/collector/test_doubts.py": "analyses a run in most of its tests",
    "unit/collector/test_grid.py": "analyses a run in most of its tests",
    "unit/collector/results/test_dataset.py": "collects a run again and again",
    "unit/collector/test_last_run.py": "compares runs in most of its tests",
    "unit/collector/test_shared_cells.py": "compares runs in most of its tests",
    "unit/collector/test_tokens.py": "analyses a run in most of its tests",
    "unit/runner/images/test_names.py": "hashes the sources of every image",
    "unit/runner/test_retention.py": "makes runs and removes their results",
    "golden/access/test_scenarios.py": "simulates every scenario that is shipped",
    "golden/test_golden.py": "makes every figure of every published run",
    "unit/collector/forecast/test_fit.py": "fits thousands of series",
    "unit/collector/nights/test_simulation.py": "simulates hundreds of nights",
    "unit/collector/test_libraries.py": "holds statistics beside other libraries on many draws",
    "unit/docs/test_make_results.py": "collects published runs and makes their pages",
    "unit/docs/test_sharing_tables.py": "simulates every row of a page",
    "unit/bench/tenants/test_tenants.py": "runs several tenants at once, which wait for one another",
    "unit/bench/worker/test_main.py": "starts the worker for most of its tests",
    "unit/runner/test_alarms.py": "makes and collects weeks of nights",
    "unit/runner/test_cli.py": "starts the tool in most of its tests",
    "unit/runner/test_nights.py": "makes and collects weeks of nights",
    "unit/runner/test_plugins.py": "installs a package and measures with PyTorch",
    "unit/bench/store/test_buckets.py": "starts an S3 server for most of its tests",
    "unit/bench/store/test_contract.py": "starts an S3 server for most of its tests",
    "unit/bench/test_delivery.py": "waits for a store that is away, as the code under test does",
    "unit/charts/test_rendering.py": "renders the chart for every pair of its switches",
    "unit/collector/access/test_queueing_theory.py": "simulates thousands of jobs per test",
    "unit/collector/audit/": "holds tables and claims against runs",
    "unit/collector/report/": "makes pages and plots of runs",
    "unit/collector/test_files.py": "starts the tool for every command that writes files",
    "unit/docs/test_commands.py": "runs the commands of the documentation, reports and simulations among them",
    "unit/docs/test_site.py": "builds the whole site",
    "unit/benchmatrix/test_api.py": "loads and compares a stored run in most of its tests",
    "unit/repository/test_release.py": "builds both distributions, and starts the tool from them",
    "unit/runner/kubernetes/test_hostile_texts.py": "renders a Job for each of hundreds of texts",
    "unit/runner/local/test_executor.py": "runs processes that hang until their time is up",
    "unit/runner/local/test_full_disk.py": "starts the tool again and again",
    "unit/runner/local/test_interruptions.py": "interrupts whole runs and resumes them",
    "unit/runner/local/test_process.py": "runs processes that hang until their time is up",
    "unit/runner/local/test_run.py": "runs a matrix of processes per test",
    "unit/runner/local/test_virtual_environments.py": "installs packages into virtual environments",
}
BUCKETS = [f"test-{number}" for number in range(500)]
# What the shell that starts the tests, or CI, says about its terminal: tests set what they are about.
TERMINAL_VARIABLES = ("CI", "COLUMNS", "FORCE_COLOR", "GITHUB_ACTIONS", "LINES", "NO_COLOR", "TERMINAL_WIDTH")
for variable in TERMINAL_VARIABLES:
    os.environ.pop(variable, None)

# What takes minutes begins first, so that no worker is left alone with it at the end. In a fresh checkout `make test`
# is still installing the frameworks then: what is slow for other reasons comes before them.
LONGEST_FIRST = ("cluster", "e2e", "browser", "slow", "framework")


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marker
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test with what it needs, and put the modules that take longest first."""
    ranks: dict[Path, int] = {}
    for item in items:
        markers = find_markers(item)
        for marker in markers:
            item.add_marker(marker)
        rank = min(map(LONGEST_FIRST.index, markers), default=len(LONGEST_FIRST))
        ranks[item.path] = min(rank, ranks.get(item.path, rank))
    items.sort(key=lambda item: ranks[item.path])


def pytest_collection_finish() -> None:
    """Let the garbage collector look at what tests make, and never again at modules and collected tests."""
    gc.freeze()
    gc.set_threshold(*COLLECTOR_THRESHOLDS)
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return two workers more than there are cores: that of the cluster waits most of its time, others often."""
    return len(os.sched_getaffinity(0)) + 2


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """Keep tests that share expensive fixtures on one worker."""
    return ModuleScheduling(config, log)


# Modules that share what takes long to start stay on one worker: a control plane, and the nodes that run pods. Those of
# the cluster, which wait nine minutes in all, have two control planes.
SHARING = ("tests/cluster/test_[a-p]*", "tests/cluster/*", "tests/e2e/*")


class ModuleScheduling(LoadScopeScheduling):  # type: ignore[misc]  # pytest-xdist ships no types
    """A module stays on one worker; so do modules that share what takes long to start.

    The marker `xdist_group` cannot say this: pytest-xdist 3.8 writes it into names that pytest 9 no
    longer reads.
    """

    def _split_scope(self, nodeid: str) -> str:
        path, _, _ = nodeid.partition("::")
        return next((pattern for pattern in SHARING if fnmatch(path, pattern)), path)


def find_markers(item: pytest.Item) -> list[str]:
    """Return the markers that a test's module, folder and fixtures, direct and indirect, give it."""
    fixtures = getattr(item, "fixturenames", ())
    path = item.path.relative_to(TESTS).as_posix()
    by_module = ["slow"] if path.startswith(tuple(SLOW_MODULES)) else []
    by_folder = [marker for folder, marker in MARKERS_BY_FOLDER.items() if item.path.is_relative_to(folder)]
    return by_module + by_folder + [marker for fixture, marker in MARKERS_BY_FIXTURE.items() if fixture in fixtures]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store of this test alone."""
    return Store.open(f"file://{tmp_path}/store")


@pytest.fixture(scope="session")
def interpreters() -> dict[Framework, Path]:
    """Return a Python interpreter for each framework, with the packages of its CPU image; install what is missing."""
    return install_environments(print)


@pytest.fixture(scope="session")
def shared_s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[S3Server, Iterator[str]]]:
    """The one server of all tests of a worker, which starts with the first, and its empty buckets.

    They are there from the start: it remembers what lies in a folder.
    """
    server = S3Server(root=tmp_path_factory.mktemp("s3") / "root")
    for bucket in BUCKETS:
        (server.root / bucket).mkdir(parents=True)
    yield server, iter(BUCKETS)
    server.stop()


@pytest.fixture
def s3_server(shared_s3: tuple[S3Server, Iterator[str]], monkeypatch: pytest.MonkeyPatch) -> S3Server:
    """A running S3 server with an empty bucket; the environment, also of child processes, leads to it."""
    server, buckets = shared_s3
    server.bucket = next(buckets)
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    server.start()
    return server
