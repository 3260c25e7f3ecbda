"""The price table that comes with the tool."""

from pathlib import Path

SHIPPED_PRICES = Path(__file__).parent / "prices.yaml"
