"""The audit as a table, a page and a JSON document."""

from audit_tables import make_row, make_table
from collector.audit.page import write_audit_page
from collector.audit.rows import audit_table

TABLE = make_table(
    make_row(label="slow|one", source="page 3"),
    make_row(samples_per_second=200),
    make_row(samples_per_second=900),
    title="Mine",
    provenance="as a blog reports it",
    remark="Read this.",
)


def test_the_page_holds_provenance_verdicts_and_arithmetic() -> None:
    page = write_audit_page(TABLE, audit_table(TABLE))
    assert page.startswith("# Mine: audit\n\nMine (a test, as a blog reports it).\n\nRead this.\n")
    assert "No run was given: nothing was held against measurements." in page
    assert "| 1. slow\\|one, Round, batch 10, fp32 | 1 s | 0.100 | 10.0 | possible |" in page
    assert "- Round: made up: a peak of 1 TFLOP/s" in page
    assert "- 10 samples x 10.0 GFLOP / 1 s = 0.100 TFLOP/s, 10.0 % of the 1.00 TFLOP/s of the Round at fp32" in page
    assert "- stated by page 3" in page
    assert "- impossible: out of reach even if" in page
