"""Load a command when it is called or asked for its help, and show its examples below its help."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import CommandInfo

from bench.errors import UserError
from runner.commands.catalog import COMMANDS, GROUPS
from runner.commands.catalog_entry import CatalogEntry
from runner.exhaustion import explain_limits
from runner.terminal_text import echo, hide_typed_credentials, replace_unprintable

PROGRAM = "benchmatrix"


@contextmanager
def clean_usage_errors(ctx: Any) -> Iterator[None]:
    """Make a usage error name its command, and remove credentials and what steers a terminal from its message.

    It is shown in a box, which may break a URL in two before the guarded streams see it. An option without its value
    is an error without a command.
    """
    try:
        yield
    except Exception as error:
        if vars(error).get("ctx", ctx) is None:
            vars(error).update(ctx=ctx, cmd=ctx.command)
        if isinstance(message := getattr(error, "message", None), str):
            vars(error)["message"] = replace_unprintable(hide_typed_credentials(message))
        raise


class CatalogCommand(TyperCommand):
    """A command of the catalog. Its help ends with examples, one a line, so that they can be copied."""

    entry: CatalogEntry

    def get_help_option(self, ctx: Any) -> Any:
        """Return `--help`, which takes no value."""
        option = super().get_help_option(ctx)
        _take_no_value([] if option is None else [option])
        return option

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words after the command; an error that repeats one is cleaned."""
        with clean_usage_errors(ctx):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Call the command, where the process may take what it needs."""
        if reason := explain_limits():
            raise UserError(reason)
        return super().invoke(ctx)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help, then the examples."""
        super().format_help(ctx, formatter)
        echo(" Examples:")
        for purpose, words in self.entry.examples:
            echo(f"   # {purpose}\n   {PROGRAM} {words}")


class CatalogGroup(TyperGroup):
    """The commands of the catalog, or of one of its groups. Their names and summaries are known without their modules.

    `commands` imports a module where one of its commands is looked up.
    """

    def __init__(self, *, group: str = "", **settings: Any) -> None:
        super().__init__(**settings)
        _take_no_value(self.params)
        self.commands = cast("dict[str, Any]", LazyCommands(group))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words up to the command; without any, show the help, as of `--help`."""
        return super().parse_args(ctx, args if args or ctx.resilient_parsing else ["--help"])

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands, in the catalog's order."""
        return list(self.commands)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command's name and summary for lists of commands; None if there is no such command."""
        return cast("LazyCommands", self.commands).describe(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return the command that the words name, loaded, and the words after it."""
        with clean_usage_errors(ctx):
            name, found, rest = super().resolve_command(ctx, args)
        return name, None if found is None else self.commands[name or ""], rest


class LazyCommands(Mapping[str, Any]):
    """The commands of the catalog by name; `group`: only those of this group, without its name."""

    def __init__(self, group: str = "") -> None:
        prefix = f"{group} " if group else ""
        self._prefix = prefix
        within = [entry for entry in COMMANDS if entry.name.startswith(prefix)]
        self._entries = {entry.name.removeprefix(prefix).split()[0]: entry for entry in within}
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = self._load(name, self._entries[name])
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def describe(self, name: str) -> TyperCommand | None:
        """Return a command that has no more than name, summary and panel; None if there is none of this name."""
        entry = self._entries.get(name)
        if entry is None:
            return None
        summary = GROUPS[name] if self._is_group(name, entry) else entry.summary
        return TyperCommand(name, help=summary, rich_help_panel=entry.panel)

    def _is_group(self, name: str, entry: CatalogEntry) -> bool:
        return entry.name != f"{self._prefix}{name}"

    def _load(self, name: str, entry: CatalogEntry) -> Any:
        if self._is_group(name, entry):
            return CatalogGroup(group=name, name=name, help=GROUPS[name], rich_help_panel=entry.panel)
        function = getattr(import_module(entry.module), entry.function_name)
        info = CommandInfo(name=name, cls=CatalogCommand, callback=function, rich_help_panel=entry.panel)
        command = typer.main.get_command_from_info(info, pretty_exceptions_short=False, rich_markup_mode="rich")
        cast("CatalogCommand", command).entry = entry
        _take_no_value(command.params)
        return command


def _take_no_value(params: Iterable[Any]) -> None:
    """Remove the type of flags from the help: `--json <bool>` would look as if it took a value."""
    for param in params:
        if getattr(param, "is_flag", False) and param.metavar is None:
            param.metavar = ""


def parse_words(group: CatalogGroup, words: Sequence[str]) -> Any:
    """Return the context of the command that the words name, which is not called. Raise a usage error if one is not."""
    context: Any = group.make_context(PROGRAM, [*words])
    while isinstance(context.command, CatalogGroup):
        left = [*context._protected_args, *context.args]
        name, command, rest = context.command.resolve_command(context, left)
        context = command.make_context(name, rest, parent=context)
    return context
