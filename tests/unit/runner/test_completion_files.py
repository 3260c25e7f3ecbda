"""Completion is installed without a byte of the shell's start file being lost."""

from pathlib import Path

import pytest

from bench.errors import UserError
from runner.cli import make_command
from runner.completion_files import install_completion, write_completion

MINE = b"# \xff mine\nalias x=y"


@pytest.mark.parametrize(
    ("shell", "script", "start_file", "line"),
    [
        ("bash", ".bash_completions/benchmatrix.sh", ".bashrc", b"source {home}/.bash_completions/benchmatrix.sh\n"),
        ("zsh", ".zfunc/_benchmatrix", ".zshrc", b"fpath+=~/.zfunc; autoload -Uz compinit; compinit\n"),
    ],
)
def test_a_line_is_added_once_and_the_rest_stays(
    shell: str, script: str, start_file: str, line: bytes, tmp_path: Path
) -> None:
    (tmp_path / start_file).write_bytes(MINE)
    for _ in range(2):
        assert write_completion(shell, tmp_path, "benchmatrix") == tmp_path / script
        expected = MINE + b"\n" + line.replace(b"{home}", str(tmp_path).encode())
        assert (tmp_path / start_file).read_bytes() == expected
    assert "_BENCHMATRIX_COMPLETE" in (tmp_path / script).read_text()


def test_fish_needs_no_line(tmp_path: Path) -> None:
    path = write_completion("fish", tmp_path, "benchmatrix")
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == [path]


@pytest.mark.parametrize("shell", ["ksh", "powershell", ""])
def test_another_shell_is_left_as_it_is(shell: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--install-completion: .* is not known.*--show-completion"):
        write_completion(shell, tmp_path, "benchmatrix")
    assert list(tmp_path.iterdir()) == []


def test_a_start_file_that_is_none_is_named_with_what_to_add(tmp_path: Path) -> None:
    (tmp_path / ".bashrc").mkdir()
    with pytest.raises(UserError, match=r"\.bashrc: is a directory, not a file; add to it: source "):
        write_completion("bash", tmp_path, "benchmatrix")


def test_the_option_is_ours() -> None:
    [option] = [param for param in make_command().params if param.name == "install_completion"]
    assert option.callback is install_completion
