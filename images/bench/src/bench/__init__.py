"""What every image installs: a Cell comes in, is measured, and leaves as one Result."""

__version__ = "0.1.0"
