"""Every place that starts a program says what ends it: nothing waits for a program of somebody else for ever.

A place that is not in STARTS fails the test: give it a limit of time (`bench.foreign_programs`), and say which.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
PACKAGES = ("runner", "collector", "benchmatrix", "images/bench/src/bench")
MODULES = frozenset({"subprocess", "os", "pty", "multiprocessing", "asyncio", "webbrowser", "concurrent", "shutil"})
STARTERS = frozenset(
    {
        *("run", "call", "check_call", "check_output", "getoutput", "getstatusoutput", "Popen"),
        *("system", "popen", "fork", "forkpty", "posix_spawn", "posix_spawnp", "startfile", "spawn"),
        *(
            "Process",
            "Pool",
            "ProcessPoolExecutor",
            "create_subprocess_exec",
            "create_subprocess_shell",
            "open_new_tab",
        ),
    }
)
STARTS = {
    ("images/bench/src/bench/foreign_programs.py", "Popen"): "`limit_seconds`, which has no default",
    ("images/bench/src/bench/probes/cuda_start.py", "Popen"): "START_SECONDS of `communicate`",
    ("runner/local/mps.py", "run"): "START_SECONDS",
    ("runner/local/process.py", "Popen"): "the time of the repeat, or INSTALL_SECONDS of an installation",
}
LIBRARIES = {
    (
        "images/bench/src/bench/store/backend.py",
        "get_credentials",
    ): "`limit_login`: credential_process of an AWS profile",
    ("images/bench/src/bench/store/settings.py", "provider"): "`limit_login`: the same, to renew them",
    ("runner/kubernetes/login.py", "load_kube_config"): "`limit_login`: exec and auth-provider of a kubeconfig",
    ("runner/kubernetes/login.py", "update_params_for_auth"): "`limit_login`: the same, to renew them",
}
"""Functions of libraries that start programs, and what ends those."""


def list_calls(name: str) -> Iterator[tuple[ast.Call, str, str]]:
    """Yield each call in a module of the packages, with the object and the name that it calls."""
    for node in ast.walk(ast.parse((ROOT / name).read_text())):
        if isinstance(node, ast.Call):
            owner = ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""
            yield node, owner, node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)


def list_modules() -> list[str]:
    return [str(path.relative_to(ROOT)) for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]


def is_start(owner: str, called: str) -> bool:
    return owner.partition(".")[0] in MODULES and (called in STARTERS or called.startswith(("exec", "spawn")))


def test_every_place_that_starts_a_program_is_known() -> None:
    found = {
        (name, called) for name in list_modules() for _, owner, called in list_calls(name) if is_start(owner, called)
    }
    assert found == set(STARTS)


def test_what_is_run_and_waited_for_has_a_limit_of_time() -> None:
    waiting = [call for name in list_modules() for call, owner, called in list_calls(name)
               if (owner, called) == ("subprocess", "run")]  # fmt: skip
    assert waiting
    assert [ast.unparse(call) for call in waiting if "timeout" not in {word.arg for word in call.keywords}] == []


def test_starters_are_called_by_their_modules() -> None:
    """`from subprocess import run` would hide a start from the first test."""
    imported = {
        (name, node.module)
        for name in list_modules()
        for node in ast.walk(ast.parse((ROOT / name).read_text()))
        if isinstance(node, ast.ImportFrom)
        and {alias.name for alias in node.names} & STARTERS
        and (node.module or "").partition(".")[0] in MODULES
    }
    assert imported == set()


def test_libraries_that_start_programs_are_limited() -> None:
    for name, function in LIBRARIES:
        text = (ROOT / name).read_text()
        limited = [ast.unparse(call) for call, _, called in list_calls(name) if called == "limit_login"]
        nested = [ast.get_source_segment(text, node) or "" for node in ast.walk(ast.parse(text))
                  if isinstance(node, ast.FunctionDef) and node.name == "load"]  # fmt: skip
        assert any(function in call for call in (*limited, *nested)), (name, function)
