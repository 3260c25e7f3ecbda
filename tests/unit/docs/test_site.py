"""The site builds strictly, its navigation has every page, and it loads nothing from elsewhere."""

import re
from pathlib import Path

import pytest

import build_site
from build_site import SiteError, list_linked_files, list_navigation, list_pages, load_configuration, unlink_folders
from runner.sources import ROOT
from site_pages import draw_diagrams, indent_lists

# What a page may load: an address with a scheme, or one without that begins with two slashes, is elsewhere.
LOADED = re.compile(
    r'<(?:script|img|iframe|source)[^>]* src="([^"]*)"|<link[^>]* href="([^"]*)"|@import|url\((//|http)'
)


def test_the_navigation_has_every_page_once() -> None:
    named = list(list_navigation(load_configuration()["nav"]))
    pages = [page.relative_to(ROOT).as_posix() for page in list_pages(ROOT)]
    assert sorted(named) == sorted(pages), "every page has one place under `nav` in mkdocs.yml"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the site, built from this checkout."""
    return build_site.build_site(tmp_path_factory.mktemp("site"))


def test_the_site_has_a_page_for_every_page_and_loads_nothing_from_elsewhere(site: Path) -> None:
    for page in list_pages(ROOT):
        place = page.relative_to(ROOT).with_suffix("")
        html = (site / (place.parent if place.name == "README" else place) / "index.html").read_text()
        loaded = [found for match in LOADED.findall(html) for found in match if found]
        assert [found for found in loaded if re.match(r"//|[a-z]+:", found)] == []
        assert "only-light" in html or "```mermaid" not in page.read_text()


def test_a_link_to_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("[there](there.yaml), [away](away.yaml#x)")
    (tmp_path / "there.yaml").write_text("")
    with pytest.raises(SiteError, match=r"the link away\.yaml#x leads to .*away\.yaml, which is not there"):
        list(list_linked_files(page))
    page.write_text("[there](there.yaml), [page](page.md), [web](https://a.example), [here](#here)")
    assert list(list_linked_files(page)) == [tmp_path / "there.yaml"]


def test_a_link_to_a_folder_is_text(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    text = "in [runs](runs), [file](a.yaml), [part](#runs)"
    assert unlink_folders(text, tmp_path) == "in runs, [file](a.yaml), [part](#runs)"


def test_lists_are_indented_by_four_spaces_a_level() -> None:
    text = (
        "Text:\n- one\n  goes on\n  - two\n\n    a paragraph\n\n1. first\n\n   ```sh\n   run\n     deeper\n   ```\n\n"
        "10. tenth\nlazy\n\n    code: not a list\n"
    )
    assert indent_lists(text) == (
        "Text:\n\n- one\n    goes on\n    - two\n\n        a paragraph\n\n1. first\n\n"
        "    ```sh\n    run\n      deeper\n    ```\n\n10. tenth\n    lazy\n\n    code: not a list\n"
    )


def test_a_diagram_becomes_pictures_with_its_description_and_needs_one(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    text = "before\n\n```mermaid\nflowchart LR\n    accDescr: A leads to B.\n    a --> b\n```\n\nafter\n"
    drawn = draw_diagrams(text, page)
    assert drawn == (
        "before\n\n[![A leads to B.](page-diagram-1-light.svg#only-light)](page-diagram-1-light.svg)\n"
        "[![A leads to B.](page-diagram-1-dark.svg#only-dark)](page-diagram-1-dark.svg)\n\nafter\n"
    )
    for scheme in ("light", "dark"):
        assert (tmp_path / f"page-diagram-1-{scheme}.svg").read_text().startswith("<svg")
    with pytest.raises(ValueError, match=r"diagram 1 has no line `accDescr:`"):
        draw_diagrams("```mermaid\nflowchart LR\n    a --> b\n```\n", tmp_path / "page.md")
