"""The registry: every model and every framework that a cell can name, each in one entry. Imports no framework."""

from bench.registry.frameworks import *  # noqa: F403
from bench.registry.models import *  # noqa: F403
