"""The table of documents in the store that did not count."""

from collector.analysis import Analysis
from collector.results.summary import list_skipped
from collector.tables.columns import text_column
from collector.tables.table import MAX_LISTED, Table, make_table

SKIPPED_CAPTION = "Documents that did not count"


def make_skipped_table(analysis: Analysis) -> Table | None:
    """Return the keys that did not count, with the reasons; None where every document counted."""
    skipped = list_skipped(analysis.collection)
    if skipped.empty:
        return None
    shown = skipped.head(MAX_LISTED)
    remark = f"{len(skipped)} of the keys under the run in the store did not count"
    if len(skipped) > len(shown):
        remark += f"; the first {len(shown)} are listed, skipped.csv has all"
    columns = [text_column("key", "key"), text_column("reason", "reason")]
    return make_table(SKIPPED_CAPTION, columns, shown, remark=f"{remark}.")
