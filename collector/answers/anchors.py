"""Name the tables of the report that sentences point to."""

import re


def name_anchor(caption: str) -> str:
    """Return the id that a table with this caption has in the report: `table-training-time-of-one-step`."""
    return f"table-{re.sub('[^a-z0-9]+', '-', caption.lower()).strip('-')}"
