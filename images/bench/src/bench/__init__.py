"""The measuring program that every image installs, and the contract that it shares with runner and collector."""

__version__ = "0.1.0"
