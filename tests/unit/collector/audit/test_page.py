"""The audit as a table, a page and a JSON document."""

import json
from pathlib import Path

from audit_tables import make_row, make_table
from collector.audit.page import count_verdicts, make_audit_table, write_audit_json, write_audit_page
from collector.audit.rows import audit_table
from collector.results.summary import summarize_cells
from factories import make_cell
from measured_runs import collect_results, make_repeats

TABLE = make_table(
    make_row(label="slow|one", source="page 3"),
    make_row(samples_per_second=200),
    make_row(samples_per_second=900),
    title="Mine",
    provenance="as a blog reports it",
    remark="Read this.",
)


def test_verdicts_are_counted_in_words() -> None:
    rows = audit_table(TABLE)
    verdicts = [row.verdict_in_words for row in rows]
    assert count_verdicts("row", verdicts) == "3 rows: 1 possible, 1 implausible without Winograd, 1 impossible"
    assert count_verdicts("row", verdicts[:1]) == "1 row: 1 possible"


def test_without_a_run_the_table_has_one_verdict() -> None:
    table = make_audit_table(TABLE, audit_table(TABLE))
    assert table.caption == "Mine (a test, as a blog reports it)"
    assert table.headings == ["row", "stated", "implied, TFLOP/s", "of bound, %", "verdict"]
    assert table.format_rows()[1] == (
        "2. model infer, Round, fp32",
        "200 samples/s",
        "2.00",
        "200",
        "implausible without Winograd",
    )


def test_with_a_run_both_verdicts_have_a_column(tmp_path: Path) -> None:
    summary = summarize_cells(collect_results(tmp_path, *make_repeats(make_cell(), 0.1, 0.1, 0.1)))
    table = make_audit_table(TABLE, audit_table(TABLE, summary))
    assert table.headings[-3:] == ["by arithmetic", "by measurement", "verdict"]
    assert table.format_rows()[0][-3:] == ("possible", "not tested", "possible")


def test_the_page_holds_provenance_verdicts_and_arithmetic() -> None:
    page = write_audit_page(TABLE, audit_table(TABLE))
    assert page.startswith("# Mine: audit\n\nMine (a test, as a blog reports it).\n\nRead this.\n")
    assert "No run was given: nothing was held against measurements." in page
    assert "| 1. slow\\|one, Round, batch 10, fp32 | 1 s | 0.100 | 10.0 | possible |" in page
    assert "- Round: made up: a peak of 1 TFLOP/s" in page
    assert "- 10 samples x 10.0 GFLOP / 1 s = 0.100 TFLOP/s, 10.0 % of the 1.00 TFLOP/s of the Round at fp32" in page
    assert "- stated by page 3" in page
    assert "- impossible: out of reach even if" in page


def test_the_json_document_holds_base_units() -> None:
    document = json.loads(write_audit_json(TABLE, audit_table(TABLE)))
    assert (document["title"], document["provenance"]) == ("Mine", "as a blog reports it")
    first, _, last = document["rows"]
    assert first["stated"]["seconds"] == 1
    assert (first["flops_per_second"], first["bound_flops_per_second"], first["share_of_bound"]) == (1e11, 1e12, 0.1)
    assert (last["verdict"], last["by_arithmetic"], last["by_measurement"]) == (
        "impossible",
        "impossible",
        "not tested",
    )
