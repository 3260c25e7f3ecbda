"""One entry of the catalog of commands, and the panels of `benchmatrix --help`."""

from dataclasses import dataclass

MEASURE = "Measure"
READ = "Read what was measured"
DECIDE = "Decide"
CLUSTER = "Run on a cluster"
TOOL = "The tool itself"


@dataclass(frozen=True, kw_only=True)
class CatalogEntry:
    """One command. The name of a command of a group has two words, such as `images build`."""

    name: str
    summary: str
    """The first paragraph of its function's docstring."""
    panel: str
    examples: tuple[tuple[str, str], ...]
    """What an example does, and the words after `benchmatrix`."""
    function: str = ""
    """Its name in the module; default: that of the command."""

    @property
    def module(self) -> str:
        """Return the module that has the command's function."""
        return f"runner.commands.{self.name.split()[0]}"

    @property
    def function_name(self) -> str:
        """Return the name of the command's function in its module."""
        return self.function or self.name.split()[-1]
