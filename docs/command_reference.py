"""Describe the command line for docs/reference/cli.md: every command with its arguments, options, defaults, examples.

The words are those of `--help`.
"""

import re
import textwrap
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any, Literal, get_args, get_origin

from runner.cli import make_command

PROGRAM = "benchmatrix"
COLUMNS = 100
"""At which prose is wrapped."""
HIDDEN = {"help", "install_completion", "show_completion"}
"""Parameters that every command has, or that are the shell's."""
# Typer does not export the classes of its commands and parameters: hence Any.
Command = Any
Parameter = Any


def describe_commands() -> str:
    """Return a section for each command, in the order of `benchmatrix --help`."""
    group = make_command()
    return "\n\n".join(_describe(command, path) for path, command in list_commands(group, PROGRAM))


def list_commands(group: Command, path: str) -> Iterator[tuple[str, Command]]:
    """Yield each command below `group` with its path: `benchmatrix images build`."""
    for name, command in group.commands.items():
        if command.hidden:
            continue
        if hasattr(command, "commands"):
            yield from list_commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def _describe(command: Command, path: str) -> str:
    own = [parameter for parameter in command.params if parameter.name not in HIDDEN]
    shown = [parameter for parameter in own if not getattr(parameter, "hidden", False)]
    arguments = [parameter for parameter in shown if parameter.param_type_name == "argument"]
    options = [parameter for parameter in shown if parameter.param_type_name == "option"]
    usage = " ".join([path, *(["[OPTIONS]"] if options else []), *map(_name_argument, arguments)])
    parts = [f"## {path.removeprefix(PROGRAM + ' ')}", f"```text\n{usage}\n```"]
    parts.append(_describe_help(command.help))
    parts.append("\n".join(["<!-- not run: comes from --help -->", "```sh", *command.epilog.splitlines(), "```"]))
    if arguments:
        parts.append(_make_table("argument", [(f"`{_name_argument(found)}`", found) for found in arguments]))
    panels = list(dict.fromkeys(getattr(option, "rich_help_panel", None) for option in options))
    for panel in panels:
        if panel:
            parts.append(f"{panel}:")
        here = [option for option in options if getattr(option, "rich_help_panel", None) == panel]
        parts.append(_make_table("option", [(_name_option(option), option) for option in here]))
    return "\n\n".join(parts)


def _describe_help(text: str) -> str:
    paragraphs = re.split(r"\n\s*\n", text.replace("\f", "").strip())
    return "\n\n".join(_wrap(" ".join(paragraph.split())) for paragraph in paragraphs)


def _wrap(text: str) -> str:
    return textwrap.fill(text, COLUMNS, break_long_words=False, break_on_hyphens=False)


def _make_table(kind: str, rows: Sequence[tuple[str, Parameter]]) -> str:
    lines = [f"| {kind} | default | what it says |", "|---|---|---|"]
    lines += [f"| {name} | {_describe_default(found)} | {_escape(_list_help(found))} |" for name, found in rows]
    return "\n".join(lines)


def _name_argument(argument: Parameter) -> str:
    name = re.sub(r"[\[\].]", "", argument.metavar or argument.name.upper())
    several = "..." if argument.nargs == -1 else ""
    return f"{name}{several}" if argument.required else f"[{name}]{several}"


def _name_option(option: Parameter) -> str:
    metavar = "" if option.is_flag else f" {option.metavar or option.name.upper()}"
    names = [f"`{name}{metavar}`" for name in option.opts]
    return ", ".join([*names, *(f"`{name}`" for name in option.secondary_opts)])


def _describe_default(parameter: Parameter) -> str:
    default = parameter.default
    if parameter.required:
        return "needed"
    if default is None or default == "" or default == () or callable(default) or "UNSET" in repr(default):
        return ""
    if isinstance(getattr(parameter, "show_default", None), str):  # as --help shows it: `30m`
        return f"`{parameter.show_default}`"
    if isinstance(default, bool):
        names = parameter.opts if default else parameter.secondary_opts
        return f"`{names[0]}`" if names else "off"
    return f"`{default}`"


def _list_help(parameter: Parameter) -> str:
    choices = _list_choices(parameter.type_descriptor.annotation)
    words = " ".join((parameter.help or "").split())
    repeats = "Repeatable." if getattr(parameter, "multiple", False) and "repeatable" not in words.lower() else ""
    known = f"One of {', '.join(f'`{choice}`' for choice in choices)}." if choices else ""
    return " ".join(filter(None, [words, known, repeats]))


def _list_choices(annotation: Any) -> tuple[str, ...]:
    """Return the values that an annotation allows, if it allows only some texts."""
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return tuple(str(choice.value) for choice in annotation)
    return ()


def _escape(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
