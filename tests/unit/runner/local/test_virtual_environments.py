"""runner.local.virtual_environments: a tiny package is installed, again, in vain, or killed; what people see of it."""

import re
import shutil
import subprocess
import sys
import time
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest

from bench.errors import UserError
from fake_interpreters import await_end, is_running, make_interpreter
from runner import sources
from runner.local.virtual_environments import (
    locate_environments,
    prepare_virtual_environments,
)
from tiny_checkout import PROJECT, make_checkout, make_wheel, write_requirements
from workspace import HANG_GUARD_SECONDS

IMPORT = "import importlib.metadata as m; print(m.version('tiny-framework'), m.version('benchmatrix-bench'))"
# An installation in a process of its own, in the checkout that is named.
INSTALL = """
import sys
from pathlib import Path
from runner import sources
from runner.local import virtual_environments as environments
sources.ROOT, sys.executable = Path(sys.argv[1]), sys.argv[2]
environments.prepare_virtual_environments(["pytorch"], "cpu", lambda line: print(line, flush=True))
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The root of a checkout whose one image needs a tiny package; pip finds nothing else."""
    for name, value in make_checkout(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sources, "ROOT", tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def quick_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a Python whose `-m venv` copies an environment, since to create one takes seconds.

    With a file's name in WAIT_FOR, not before there is this file.
    """
    folder = tmp_path_factory.mktemp("quick")
    subprocess.run([sys.executable, "-m", "venv", folder / "template"], check=True)
    wait = 'until test -z "$WAIT_FOR" || test -e "$WAIT_FOR"; do sleep 0.02; done'
    copy = f'mkdir -p "$3" && cp -r {folder}/template/. "$3"'
    return make_interpreter(folder / "python", f'test "$2" = venv || exit\n{wait}\n{copy}')


def prepare() -> tuple[Path, list[str]]:
    """Return the interpreter for PyTorch and what was reported meanwhile."""
    lines: list[str] = []
    return prepare_virtual_environments(["pytorch"], "cpu", lines.append)["pytorch"], lines


def start_installation(root: Path, python: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, "-c", INSTALL, root, python], stdout=subprocess.PIPE, text=True)


def test_an_environment_is_made_once_and_anew_when_its_requirements_change(
    root: Path, quick_python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = locate_environments(["pytorch"], "cpu")["pytorch"]
    assert (environment.directory.name, environment.is_up_to_date()) == ("pytorch-cpu", False)
    python, lines = prepare()
    assert environment.is_up_to_date()
    assert python == root / ".environments" / "pytorch-cpu" / "bin" / "python"
    assert lines[0] == "pytorch-cpu: new environment"
    assert subprocess.run([python, "-c", IMPORT], capture_output=True, text=True).stdout == "1.0 0.1.0\n"

    assert prepare() == (python, [])

    monkeypatch.setattr(sys, "executable", str(quick_python))
    (root / "images" / "bench" / "pyproject.toml").write_text(PROJECT + "# changed\n")
    (python.parent / "left-over").touch()
    assert prepare()[1][0] == "pytorch-cpu: new environment"
    assert not (python.parent / "left-over").exists()
    assert prepare()[1] == []


def test_the_users_settings_of_pip_and_python_for_other_projects_do_not_reach_an_environment(
    root: Path, quick_python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(quick_python))
    (tmp_path / "constraints.txt").write_text("tiny-framework==0.5\n")
    (tmp_path / "pip.conf").write_text(
        f"[install]\nconstraint = {tmp_path}/constraints.txt\ntarget = {tmp_path}/else\n"
    )
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    monkeypatch.setenv("PIP_USER", "1")
    make_wheel(tmp_path, "tiny_framework", "1.0")
    with zipfile.ZipFile(tmp_path / "tiny_framework-1.0-py3-none-any.whl") as wheel:
        wheel.extractall(tmp_path / "site")  # pip takes what lies there for installed
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))

    python, _ = prepare()

    monkeypatch.delenv("PYTHONPATH")
    assert subprocess.run([python, "-c", IMPORT], capture_output=True, text=True).stdout == "1.0 0.1.0\n"
    assert not (tmp_path / "else").exists()


def test_make_installs_free_of_them_as_well(
    root: Path, quick_python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_USER", "1")
    monkeypatch.setenv("PIP_TARGET", str(tmp_path / "else"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    repository = Path(__file__).parents[4]
    subprocess.run([quick_python, "-m", "venv", tmp_path / ".venv"], check=True)
    wanted = re.search(r"^PIP = \$\(BIN\)/(.*)$", (repository / "Makefile").read_text(), re.MULTILINE)
    assert wanted is not None

    command = f"{tmp_path}/.venv/bin/{wanted[1]} tiny-framework"
    subprocess.run(command, shell=True, check=True, cwd=repository)

    assert list(tmp_path.glob(".venv/lib/python*/site-packages/tiny_framework.py")) != []
    assert not (tmp_path / "else").exists()


def test_an_environment_that_lost_a_package_is_said_so_and_made_anew(
    root: Path, quick_python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(quick_python))
    python, _ = prepare()
    folder = next((python.parents[1] / "lib").glob("python*/site-packages/tiny_framework-1.0.dist-info"))
    shutil.rmtree(folder)

    assert not locate_environments(["pytorch"], "cpu")["pytorch"].is_up_to_date()
    assert prepare()[1][0] == "pytorch-cpu: tiny-framework no longer there, installed anew"
    assert folder.exists()
    assert prepare()[1] == []


def test_a_failed_installation_is_one_message_with_the_end_of_pips(
    root: Path, quick_python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(quick_python))
    requirements = (root / "images" / "pytorch" / "requirements-cpu.txt").read_text()
    write_requirements(root, "tiny-framework==1.0 --hash=sha256:" + "0" * 64)

    with pytest.raises(UserError) as failure:
        prepare()
    write_requirements(root, "no-such-package==9.9 --hash=sha256:" + "0" * 64)
    with pytest.raises(UserError, match="No matching distribution found for no-such-package==9.9"):
        prepare()
    (root / "images" / "bench" / "backend.py").write_text("raise SystemExit('a fault of the build')")
    write_requirements(root, requirements)
    with pytest.raises(UserError, match="the last lines say why(?s:.)*a fault of the build"):
        prepare()

    message = str(failure.value)
    assert message.startswith(
        "environment pytorch-cpu: the installation failed; check that pip reaches a package index"
    )
    assert "THESE PACKAGES DO NOT MATCH THE HASHES" in message
    assert not (root / ".environments" / "pytorch-cpu" / "installed").exists()


def test_a_killed_installation_is_waited_out_and_done_again(
    root: Path, quick_python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the killed one had started goes on: no new environment may be made before it has ended."""
    monkeypatch.setenv("WAIT_FOR", str(root / "go"))
    python = root / ".environments" / "pytorch-cpu" / "bin" / "python"
    killed = start_installation(root, quick_python)
    assert killed.stdout is not None
    assert killed.stdout.readline() == "pytorch-cpu: new environment\n"
    orphan = await_child(killed.pid)
    killed.kill()
    killed.communicate()
    assert is_running(orphan)

    second = start_installation(root, quick_python)
    assert second.stdout is not None
    assert second.stdout.readline() == "pytorch-cpu: waiting for another installation\n"
    assert is_running(orphan)
    (root / "go").touch()
    rest = second.communicate()[0]

    await_end(orphan)
    assert rest.startswith("pytorch-cpu: new environment\n")
    assert second.returncode == 0
    assert prepare() == (python, [])


def test_without_a_checkout_environments_are_in_the_cache_and_have_what_the_package_has(
    root: Path, quick_python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(quick_python))
    monkeypatch.setattr(sources, "ROOT", root / "installed")
    monkeypatch.setenv("BENCHMATRIX_CACHE_DIR", str(tmp_path / "cache"))
    copies = root / "installed" / "repository" / "images"
    shutil.copytree(root / "images" / "pytorch", copies / "pytorch")

    python, lines = prepare()

    assert python == tmp_path / "cache" / "environments" / "pytorch-cpu" / "bin" / "python"
    assert lines[0] == "pytorch-cpu: new environment"
    subprocess.run([python, "-c", "import tiny_framework"], check=True)
    assert prepare() == (python, [])


def await_child(pid: int) -> int:
    """Return the process that makes the environment's folder as soon as it runs its own program."""
    deadline = time.monotonic() + HANG_GUARD_SECONDS
    while True:
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            with suppress(OSError):  # it has ended meanwhile
                if b"\0venv\0" in Path(f"/proc/{child}/cmdline").read_bytes():
                    return int(child)
        assert time.monotonic() < deadline
        time.sleep(0.002)
