"""The pages under docs/results and the example of README.md say what the stored results say, and nobody typed it."""

import shutil
from pathlib import Path

import pytest

from make_results import README, SETTINGS, TEMPLATE, Page, find_stale_example, list_pages

PAGES = {page.folder.name: page for page in list_pages()}
H200 = PAGES["2026-11-21-h200"]
# Over the three repeats of ResNet18's training in PyTorch.
SHORT_PAGE = """- A step of batch 64 takes
  {{ time(h200.summary(model="resnet18", framework="pytorch")) }}.
"""
SHORT_SETTINGS = """runs: {h200: {id: study-h200-2, matrix: gpu.yaml, report: report-gpu.html}}
claims: []
typed: {what the matrix says: [batch 64]}
"""


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_every_page_says_what_its_results_say_and_types_no_figure(page: Page) -> None:
    assert list(page.find_faults()) == []


def test_the_example_of_the_readme_is_what_the_tool_prints() -> None:
    assert list(find_stale_example()) == []


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The H200's results with a page of one sentence."""
    shutil.copytree(H200.folder / "runs", tmp_path / "runs")
    (tmp_path / TEMPLATE).write_text(SHORT_PAGE)
    (tmp_path / SETTINGS).write_text(SHORT_SETTINGS)
    shutil.copy(H200.folder / "report-gpu.html", tmp_path)
    Page(tmp_path).write()
    return tmp_path


def test_a_figure_that_is_changed_by_hand_is_found_and_one_whose_result_has_changed(copied: Path) -> None:
    readme, text = copied / README, "- A step of batch 64 takes 24.4 ms (24.3 to 24.5).\n"
    assert readme.read_text() == text
    assert list(Page(copied).find_faults()) == []
    readme.write_text(text.replace("24.4", "22.4"))
    stale = f"{README}: not what its results say; run `make results`"
    assert list(Page(copied).find_faults()) == [stale]
    readme.write_text(text)
    for result in copied.glob("runs/*/results/resnet18-pytorch-gpu-train-*/[12]-*.json"):
        result.unlink()
    page, report = Page(copied).find_faults()
    assert page == stale
    assert report.startswith("report-gpu.html: not what its results say")
    Page(copied).write()
    assert readme.read_text().endswith(" ms (no interval).\n")


def test_a_figure_that_is_typed_into_the_template_is_found(copied: Path) -> None:
    template = copied / TEMPLATE
    template.write_text(template.read_text().replace(".\n", ". It takes 24.4 ms.\n"))
    (fault,) = Page(copied).find_typed_numbers()
    assert fault.startswith(f"{TEMPLATE}: a number that no result made: ...")
    assert "It takes 24.4 ms." in fault
