"""Alarms of nights for Microsoft Teams: `--webhook teams:VARIABLE`."""

import json
from typing import Any


def write_message(alarm: Any) -> bytes:
    """Return the body that is sent for one alarm; its fields are in docs/reference/schema.md."""
    return json.dumps({"type": "message", "text": f"{alarm.matrix}: regressions: {len(alarm.regressions)}"}).encode()
