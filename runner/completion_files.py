"""Installs completion: a script, and the lines that load it, in the file that the shell reads at its start.

Typer's own installation writes over that file: on a full disk nothing of it was left.
"""

import os
import shlex
from pathlib import Path
from typing import Any

from bench.errors import UserError
from bench.foreign_files import FileProblem, ForeignFileError, read_foreign_file

MAX_START_FILE_BYTES = 4_000_000
"""Of a shell's start file; such files have some kilobytes."""


def install_completion(ctx: Any, param: Any, value: Any) -> Any:
    """Install completion for the shell that this was called from, say where, and end; the option's callback."""
    if not value or ctx.resilient_parsing:
        return value
    import typer

    from runner.terminal_text import echo

    root = ctx.find_root()
    shell = _detect_shell()
    home = Path(os.path.expanduser("~"))
    if not home.is_absolute():
        raise UserError("--install-completion: there is no home folder; set HOME")
    echo(f"{shell} completion installed in {write_completion(shell, home, str(root.info_name))}")
    echo("It takes effect in the next shell")
    raise typer.Exit


def write_completion(shell: str, home: Path, program: str) -> Path:
    """Write the script of `program` for `shell`, and the lines that load it; return the script's path.

    Raise UserError where the shell is not known, or where a file cannot be read or written; it is as it was then.
    """
    from typer._completion_shared import get_completion_script

    from collector.files import replace_text

    paths = {
        "bash": home / ".bash_completions" / f"{program}.sh",
        "zsh": home / ".zfunc" / f"_{program}",
        "fish": home / ".config" / "fish" / "completions" / f"{program}.fish",
    }
    if shell not in paths:
        raise UserError(
            f"--install-completion: {shell or 'this shell'} is not known; known are {', '.join(paths)}: put what "
            "--show-completion prints into the file that your shell reads at its start"
        )
    path = paths[shell]
    variable = f"_{program}_COMPLETE".replace("-", "_").upper()
    replace_text(path, get_completion_script(prog_name=program, complete_var=variable, shell=shell) + "\n")
    if shell == "bash":
        _add_lines(home / ".bashrc", [f"source {shlex.quote(str(path))}"])
    elif shell == "zsh":
        _add_lines(home / ".zshrc", ["fpath+=~/.zfunc; autoload -Uz compinit; compinit"])
    return path


def _add_lines(path: Path, lines: list[str]) -> None:
    """Append the lines that a start file lacks; the rest of it stays byte by byte."""
    from collector.files import replace_file

    try:
        found = read_foreign_file(path, max_bytes=MAX_START_FILE_BYTES)
    except ForeignFileError as error:
        if error.problem != FileProblem.MISSING:
            raise UserError(f"--install-completion: {path}: {error}; add to it: {'; '.join(lines)}") from error
        found = b""
    missing = [line for line in map(os.fsencode, lines) if line not in found.splitlines()]
    if not missing:
        return
    with replace_file(path, may_be_read=True) as file:
        file.write(found if found.endswith(b"\n") or not found else found + b"\n")
        file.writelines(line + b"\n" for line in missing)


def _detect_shell() -> str:
    from typer._completion_shared import _get_shell_name

    return _get_shell_name() or ""
