"""The page for a pull request: what counts on top, the rest folded, and no text of a host or setting is markup."""

from pathlib import Path

from collector.versus.document import CompareDocument, export_compare_schema
from collector.versus.markdown import escape_comment, write_markdown
from factories import make_cell, make_environment
from two_runs import EVEN, TRAIN, compare_runs, put_run, scale


def test_the_conclusion_and_what_is_worse_stand_before_what_is_folded(tmp_path: Path) -> None:
    put_run(tmp_path, "a", {TRAIN: EVEN, make_cell(batch_size=8): EVEN})
    put_run(tmp_path, "b", {TRAIN: scale(EVEN, 1.5), make_cell(batch_size=8): EVEN})
    page = write_markdown(compare_runs(tmp_path))
    top, *folded = page.split("<details>")
    assert top.startswith("**❌ B is worse: of 2 cells 1 slower, 1 within the floor")
    assert "| conv6 train, CPU, batch 64, 32 px, PyTorch eager | 100 | 150 | 1.500 |" in top
    assert "batch 8" not in top
    assert "batch 8" in folded[0]
    assert page.count("<details>") == page.count("</details>")


def test_nothing_that_was_measured_is_read_as_markup(tmp_path: Path) -> None:
    hostile = "</details><b>|*@ada #12 `x` [y](http://z) &lt; ~~no~~"
    put_run(tmp_path, "a", {TRAIN: EVEN})
    put_run(tmp_path, "b", {TRAIN: EVEN}, environment=make_environment(hostname=hostile))
    page = write_markdown(compare_runs(tmp_path))
    for markup in ("</details><b>", "@ada", "#12", " `x`", "[y](", "http://z", "~~no", " &lt; "):
        assert markup not in page
    assert escape_comment("a|b\nc") == "a\\|b c"


def test_a_comment_stays_below_the_limit_of_github(tmp_path: Path) -> None:
    put_run(tmp_path, "a", {TRAIN: EVEN})
    put_run(tmp_path, "b", {TRAIN: scale(EVEN, 2)})
    document = compare_runs(tmp_path)
    page = write_markdown(document.model_copy(update={"cells": 400 * document.cells}))
    assert "300 cells more; --json has all" in page.replace("\\", "")
    assert len(page) < 65_536


def test_the_document_is_what_its_schema_says_and_can_be_read_back(tmp_path: Path) -> None:
    put_run(tmp_path, "a", {TRAIN: EVEN})
    put_run(tmp_path, "b", {TRAIN: EVEN})
    document = compare_runs(tmp_path)
    assert CompareDocument.model_validate_json(document.to_json()) == document
    schema = export_compare_schema()
    assert set(schema["required"]) <= schema["properties"].keys()
    assert schema["properties"]["exit_code"]["enum"] == [0, 1, 2]
