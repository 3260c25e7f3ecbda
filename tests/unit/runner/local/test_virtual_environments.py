"""runner.local.virtual_environments: a tiny package is installed, again, in vain, or killed; what people see of it."""

import hashlib
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from bench.errors import UserError
from factories import present
from fake_interpreters import await_end, is_running
from runner import sources
from runner.local.installer import choose_variables, list_arguments
from runner.local.virtual_environments import locate_environments, prepare_virtual_environments
from waiting import wait_for

IMPORT = "import importlib.metadata as m; print(m.version('tiny-framework'), m.version('benchmatrix-bench'))"
# An installation in a process of its own, in the checkout that is named.
INSTALL = """
import sys
from pathlib import Path
from runner import sources
from runner.local import virtual_environments as environments
sources.ROOT = Path(sys.argv[1])
environments.prepare_virtual_environments(["pytorch"], "cpu", lambda line: print(line, flush=True))
"""


BACKEND = """
import zipfile

def build_editable(folder, config_settings=None, metadata_directory=None):
    name = "benchmatrix_bench-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(f"{folder}/{name}", "w") as wheel:
        info = "benchmatrix_bench-0.1.0.dist-info"
        wheel.writestr("bench.pth", "")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\\nName: benchmatrix-bench\\nVersion: 0.1.0\\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{info}/RECORD", "")
    return name
"""
PROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "benchmatrix-bench"
version = "0.1.0"
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The root of a checkout whose one image needs a tiny package, which installs in a second; uv has no network."""
    packages, project = tmp_path / "packages", tmp_path / "images" / "bench"
    for folder in (packages, project, tmp_path / "images" / "pytorch"):
        folder.mkdir(parents=True)
    (project / "pyproject.toml").write_text(PROJECT)
    (project / "backend.py").write_text(BACKEND)
    wheel = make_wheel(packages, "tiny_framework", "1.0")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    write_requirements(tmp_path, f"tiny-framework==1.0 --hash=sha256:{digest}\n")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(packages))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setattr(sources, "ROOT", tmp_path)
    return tmp_path


def write_requirements(root: Path, text: str) -> None:
    """Replace what the image for PyTorch installs on CPUs."""
    (root / "images" / "pytorch" / "requirements-cpu.txt").write_text(text)


def make_wheel(folder: Path, name: str, version: str) -> Path:
    """Return a wheel of one empty module in `folder`."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{name}.py", "")
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return path


def prepare() -> tuple[Path, list[str]]:
    """Return the interpreter for PyTorch and what was reported meanwhile."""
    lines: list[str] = []
    return prepare_virtual_environments(["pytorch"], "cpu", lines.append)["pytorch"], lines


def start_installation(root: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, "-c", INSTALL, root], stdout=subprocess.PIPE, text=True)


def test_an_environment_is_made_once_and_anew_when_its_requirements_change(root: Path) -> None:
    environment = locate_environments(["pytorch"], "cpu")["pytorch"]
    assert (environment.directory.name, environment.is_up_to_date()) == ("pytorch-cpu", False)
    python, lines = prepare()
    assert environment.is_up_to_date()
    assert python == root / ".environments" / "pytorch-cpu" / "bin" / "python"
    assert lines[0] == "pytorch-cpu: new environment"
    assert subprocess.run([python, "-c", IMPORT], capture_output=True, text=True).stdout == "1.0 0.1.0\n"

    assert prepare() == (python, [])

    (root / "images" / "bench" / "pyproject.toml").write_text(PROJECT + "# changed\n")
    (python.parent / "left-over").touch()
    assert prepare()[1][0] == "pytorch-cpu: new environment"
    assert not (python.parent / "left-over").exists()
    assert prepare()[1] == []


def test_the_users_settings_of_pip_and_python_for_other_projects_do_not_reach_an_environment(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "constraints.txt").write_text("tiny-framework==0.5\n")
    (tmp_path / "pip.conf").write_text(
        f"[install]\nconstraint = {tmp_path}/constraints.txt\ntarget = {tmp_path}/else\n"
    )
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    monkeypatch.setenv("PIP_USER", "1")
    monkeypatch.setenv("UV_CONSTRAINT", str(tmp_path / "constraints.txt"))
    monkeypatch.setenv("UV_TARGET", str(tmp_path / "else"))
    make_wheel(tmp_path, "tiny_framework", "1.0")
    with zipfile.ZipFile(tmp_path / "tiny_framework-1.0-py3-none-any.whl") as wheel:
        wheel.extractall(tmp_path / "site")  # what lies there would be taken for installed
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))

    python, _ = prepare()

    monkeypatch.delenv("PYTHONPATH")
    assert subprocess.run([python, "-c", IMPORT], capture_output=True, text=True).stdout == "1.0 0.1.0\n"
    assert not (tmp_path / "else").exists()


def test_make_installs_free_of_them_as_well(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_USER", "1")
    monkeypatch.setenv("PIP_TARGET", str(tmp_path / "else"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    repository = Path(__file__).parents[4]
    subprocess.run([sys.executable, "-m", "venv", tmp_path / ".venv"], check=True)
    wanted = present(re.search(r"^INSTALL = \$\(BIN\)/(.*)$", (repository / "Makefile").read_text(), re.MULTILINE))

    command = f"{tmp_path}/.venv/bin/{wanted[1]} tiny-framework"
    subprocess.run(command, shell=True, check=True, cwd=repository)

    assert list(tmp_path.glob(".venv/lib/python*/site-packages/tiny_framework.py")) != []
    assert not (tmp_path / "else").exists()


def test_uv_reaches_packages_as_the_users_pip_does(tmp_path: Path) -> None:
    (tmp_path / "pip.conf").write_text(
        "[global]\nindex-url = https://a/simple\ncert = /a.pem\n[install]\nfind-links =\n  /one\n  /two\nuser = yes\n"
    )
    chosen = choose_variables(
        {
            "PIP_CONFIG_FILE": str(tmp_path / "pip.conf"),
            "PIP_EXTRA_INDEX_URL": "https://b/simple https://c/simple",
            "PIP_NO_INDEX": "1",
            "PIP_TIMEOUT": "60.5",
            "PIP_KEYRING_PROVIDER": "import",
            "UV_DEFAULT_INDEX": "https://u/simple",
            "UV_INDEX_B_PASSWORD": "secret",
            "UV_RESOLUTION": "lowest",
        }
    )
    expected = {
        "UV_DEFAULT_INDEX": "https://u/simple",
        "UV_INDEX": "https://b/simple https://c/simple",
        "UV_FIND_LINKS": "/one,/two",
        "UV_INDEX_B_PASSWORD": "secret",
        "SSL_CERT_FILE": "/a.pem",
        "UV_HTTP_TIMEOUT": "61",
        "UV_KEYRING_PROVIDER": "subprocess",
        "PIP_INDEX_URL": "https://a/simple",
    }
    assert expected.items() <= chosen.items()
    assert not {"PIP_USER", "UV_RESOLUTION"} & chosen.keys()
    assert list_arguments("python", chosen)[-1] == "--no-index"


def test_a_file_of_pips_settings_that_is_none_is_named_without_its_lines(tmp_path: Path) -> None:
    for content in (b"index-url = https://user:secret@host/simple\n", b"[global]\nproxy = caf\xe9\n"):
        (tmp_path / "pip.conf").write_bytes(content)
        with pytest.raises(ValueError, match=re.escape(f"{tmp_path}/pip.conf: is no file of settings")) as failure:
            choose_variables({"PIP_CONFIG_FILE": str(tmp_path / "pip.conf")})
        assert "secret" not in str(failure.value)


def test_a_failed_installation_is_one_message_with_the_end_of_uvs(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_requirements(root, "tiny-framework==1.0 --hash=sha256:" + "0" * 64)

    with pytest.raises(UserError) as failure:
        prepare()
    write_requirements(root, "no-such-package==9.9 --hash=sha256:" + "0" * 64)
    with pytest.raises(UserError, match="(?s)package index can be reached.*no-such-package was not found"):
        prepare()

    message = str(failure.value)
    assert message.startswith(
        "environment pytorch-cpu: the installation failed; check that a package index can be reached"
    )
    assert "Hash mismatch for `tiny-framework==1.0`" in message
    assert not (root / ".environments" / "pytorch-cpu" / "installed").exists()


def test_a_killed_installation_is_waited_out_and_done_again(root: Path) -> None:
    """What the killed one had started goes on: no new environment may be made before it has ended."""
    backend = root / "images" / "bench" / "backend.py"
    wait = f"from pathlib import Path\nimport os, time\nPath({str(root)!r}, 'building').write_text(str(os.getpid()))\n"
    backend.write_text(f"{wait}while not Path({str(root)!r}, 'go').exists(): time.sleep(0.02)\n{BACKEND}")
    killed = start_installation(root)
    orphan = int(await_text(root / "building"))
    killed.kill()
    killed.communicate()
    assert is_running(orphan)

    second = start_installation(root)
    assert present(second.stdout).readline() == "pytorch-cpu: waiting for another installation\n"
    assert is_running(orphan)
    (root / "go").touch()
    rest = second.communicate()[0]

    await_end(orphan)
    assert rest.startswith("pytorch-cpu: new environment\n")
    assert second.returncode == 0
    assert prepare() == (root / ".environments" / "pytorch-cpu" / "bin" / "python", [])


def test_without_a_checkout_environments_are_in_the_cache_and_have_what_the_package_has(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "ROOT", root / "installed")
    monkeypatch.setenv("BENCHMATRIX_CACHE_DIR", str(tmp_path / "cache"))
    copies = root / "installed" / "repository" / "images"
    shutil.copytree(root / "images" / "pytorch", copies / "pytorch")

    python, lines = prepare()

    assert python == tmp_path / "cache" / "environments" / "pytorch-cpu" / "bin" / "python"
    assert lines[0] == "pytorch-cpu: new environment"
    subprocess.run([python, "-c", "import tiny_framework"], check=True)
    assert prepare() == (python, [])


def await_text(file: Path) -> str:
    return str(wait_for(lambda: file.exists() and file.read_text(), file.name, 0.002))
