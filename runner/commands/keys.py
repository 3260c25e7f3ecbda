"""The commands `keys new` and `keys show`."""

import os
from pathlib import Path
from typing import Annotated

import typer

from bench.errors import UserError
from runner.commands.next_steps import say_next
from runner.commands.options import CONSOLE
from runner.terminal_text import echo

DEFAULT_KEY = Path("signing-key.pem")
KeyFileArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="A secret key, or one or more public ones, in PEM.", show_default=False)
]
KeyOutputOption = Annotated[
    Path, typer.Option("--output", metavar="FILE", help="The secret key; the public one is beside it, as FILE.pub.")
]
PublicOption = Annotated[
    bool, typer.Option("--public", help="Print the public keys themselves, for `--verify`, and not their names.")
]


def new(output: KeyOutputOption = DEFAULT_KEY) -> None:
    """Make a pair of keys: a secret one that signs results, and a public one that checks them."""
    from bench.signatures.keys import make_signing_key

    if not output.name:  # `.` and `/`, which an empty text is read as too
        raise UserError(f"--output {output}: is a folder; name the file for the key in it")
    key = make_signing_key()
    public = output.with_name(f"{output.name}.pub")
    _write_new(output, key.to_pem(), 0o600)
    try:
        _write_new(public, key.public.to_pem(), 0o644)
    except BaseException:  # also Ctrl-C: a secret key without its public half is of no use
        output.unlink()
        raise
    CONSOLE.print(f"{output}: the secret key {key.public.key_id}; whoever has it can sign results", soft_wrap=True)
    CONSOLE.print(f"{public}: its public half, to give away", soft_wrap=True)
    say_next(f"benchmatrix run smoke --sign {output}", f"benchmatrix report --verify {public}")


def show(file: KeyFileArgument, public: PublicOption = False) -> None:
    """Print the names that signatures have of the keys in a file, or the public keys themselves."""
    from bench.signatures.keys import holds_secret_key, read_public_keys, read_signing_key

    is_secret = holds_secret_key(file, "FILE")
    found = [read_signing_key(file, "FILE").public] if is_secret else read_public_keys([file], "FILE")
    for key in found:
        echo(key.to_pem().decode() if public else f"{key.key_id} {'secret' if is_secret else 'public'}", nl=not public)


def _write_new(path: Path, data: bytes, mode: int) -> None:
    """Write a key to a new file, and refuse to overwrite one: an overwritten key is lost for good."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
        except BaseException:
            path.unlink()
            raise
    except FileExistsError:
        message = f"--output {path}: is there already, and a key that is overwritten is lost; name another file"
        raise UserError(message) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UserError(f"--output {path}: cannot be written ({reason}); name another file") from None
