"""The page as it is written: it names nothing outside itself, holds text as text, and can be read out."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from collector.report.html import TEMPLATES, load_bundle, load_scripts, open_templates, state_policy
from report_pages import HOSTILE, Page, list_figure_rows


def test_the_report_names_nothing_outside_itself(full_report: Path) -> None:
    page = Page(full_report.read_text())
    assert all(link.startswith(("#", "data:")) for link in page.links)
    assert not {"iframe", "object", "embed"} & {tag for tag, _ in page.tags}
    assert not re.search(r"@import|url\(", "".join(page.texts["style"]))
    assert not re.search(r'"url"|https?:', json.dumps(page.figures))


def test_the_policy_allows_the_two_scripts_of_the_report_and_no_request(full_report: Path) -> None:
    page = Page(full_report.read_text())
    (policy,) = (attrs["content"] for tag, attrs in page.tags if attrs.get("http-equiv") == "Content-Security-Policy")
    run = [text for attrs, text in page.scripts if not attrs or attrs.get("id") == "vega"]
    assert policy == state_policy(run)
    assert len(run) == 2
    assert "default-src 'none'" in policy
    assert "unsafe-eval" not in policy


@pytest.mark.parametrize("load", [load_bundle, load_scripts])
def test_scripts_can_stand_in_a_script_element(load: Callable[[], str]) -> None:
    assert "</script" not in load()
    assert "<!--" not in load()


def test_no_script_of_the_page_writes_html() -> None:
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", load_scripts())


def test_every_script_is_part_of_the_page() -> None:
    scripts = load_scripts()
    assert [path.name for path in (TEMPLATES / "scripts").iterdir() if path.read_text() not in scripts] == []


def test_the_report_is_smaller_than_2_mb(full_report: Path) -> None:
    assert full_report.stat().st_size < 2_000_000


def test_a_page_shows_no_control_character_and_no_mark_of_direction() -> None:
    page = open_templates().from_string("<b>{{ text }}</b>{{ number }}{{ text | safe }}")

    shown = page.render(text="a\x1b[31m\u202eb\n\u202f<", number=1)

    assert shown == "<b>a\ufffd[31m\ufffdb\n\u202f&lt;</b>1a\x1b[31m\u202eb\n\u202f<"  # what is markup is ours


def test_hostile_text_stays_text(hostile_report: Path) -> None:
    html = hostile_report.read_text()
    page = Page(html)
    assert "img" not in {tag for tag, _ in page.tags}
    assert sum(not attrs for attrs, _ in page.scripts) == 1
    assert html.count("window.pwned") == html.count("&lt;/script&gt;&lt;/pre&gt;&lt;script&gt;window.pwned") * 2
    escaped = html.count("&lt;/script&gt;&lt;/pre&gt;&lt;script&gt;window.pwned = true")
    assert escaped >= len(["user", "CPU", "GPU", "package", "message", "stderr", "left out"])


def test_hostile_text_stays_text_in_what_plots_and_details_are_made_of(hostile_report: Path) -> None:
    page = Page(hostile_report.read_text())
    names = {row["name"].partition(", ")[0] for row in list_figure_rows(page.figures[-1]) if row.get("name")}
    assert names == {HOSTILE}
    assert HOSTILE in page.expand_data("details")["columns"]["stderr_tail"]["texts"]


def test_tables_and_plots_can_be_read_out(full_report: Path) -> None:
    page = Page(full_report.read_text())
    assert all(attrs.get("scope") in ("col", "row") for tag, attrs in page.tags if tag == "th")
    plots = [attrs for tag, attrs in page.tags if attrs.get("class") == "plot"]
    figures = page.figures
    assert len(plots) == sum(not figure["panels"] for figure in figures) > 0
    assert all(attrs["role"] == "img" and attrs["aria-label"] for attrs in plots)
    assert all(figure["says"] and all(figure["panels"]) for figure in figures if figure["panels"])


def test_every_link_in_the_page_leads_to_something(full_report: Path) -> None:
    page = Page(full_report.read_text())
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert {link[1:].partition("?")[0] for link in page.links if link.startswith("#")} <= set(ids)
