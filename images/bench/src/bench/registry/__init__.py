"""The registry: every model and every framework that a cell can name, each in one entry. Imports no framework."""

from typing import TYPE_CHECKING, Literal

from bench.registry.frameworks import *  # noqa: F403
from bench.registry.frameworks import FRAMEWORKS
from bench.registry.models import *  # noqa: F403
from bench.registry.models import MODELS
from bench.registry.plugins import load_plugins

# Here, as a plugin imports this package. A name of its own never replaces one that comes with the tool.
MODELS |= load_plugins("models") | MODELS
FRAMEWORKS |= load_plugins("frameworks") | FRAMEWORKS
if not TYPE_CHECKING:  # pydantic takes the plugins' as well
    Framework = Literal[tuple(FRAMEWORKS)]
