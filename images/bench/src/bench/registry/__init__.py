"""The registry: every model and every framework that a cell can name, each in one entry. Imports no framework."""

from bench.registry.frameworks import FRAMEWORKS, Device, Framework, FrameworkSpec, Mode
from bench.registry.models import MODELS, Dialect, MirrorCase, ModelSpec, Phase, Reference, name_definition

__all__ = [
    "FRAMEWORKS",
    "MODELS",
    "Device",
    "Dialect",
    "Framework",
    "FrameworkSpec",
    "MirrorCase",
    "Mode",
    "ModelSpec",
    "Phase",
    "Reference",
    "name_definition",
]
