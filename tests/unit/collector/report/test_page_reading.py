"""The report as it is read: links lead to what they say, folds say what is in them, small runs offer no choice."""

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Browser, expect

from browser_visits import visit
from factories import make_failed_result, make_result

Render = Callable[..., Path]

# By a part of what stands beside a link, what is to be read where the link leads, within a screen and a half.
LANDINGS = {
    "Can this be trusted?": "Valid says",
    "Repeats": "erdict",
    "Agreement": "repeats ok",
    "Idle machine": "others' use",
    "Clocks": "SM clock",
    "Versions": "package torch",
    "Not varied": "fp32",
    "Not planned": "not planned",
    "No difference shown": "excludes equality",
    "Other machines": "CPU",
    "What limits": "nearest roof",
    "Without a result": "did not end ok",
    "Verdicts": "throttled",
    "One repeat": "repeats ok",
    "How intervals are made": "95 % interval",
}
LINKS = """() => [...document.querySelectorAll('a[href^="#"]')].map((link) => ({
  address: link.getAttribute("href"),
  about: link.closest("div:has(> dt)")?.querySelector("dt").textContent.trim()
    ?? link.closest("li")?.querySelector("strong")?.textContent ?? link.textContent,
}))"""
LAND = """({ address }) => {
  for (const fold of document.querySelectorAll("details.fold")) fold.open = false;
  scrollTo(0, 0);
  [...document.querySelectorAll("a")].find((link) => link.getAttribute("href") === address).click();
  const target = findElement(parseHash(address).anchor);
  const { top } = target.getBoundingClientRect();
  const isAtEnd = scrollY + innerHeight >= document.documentElement.scrollHeight - 2;
  const isFolded = target.querySelector(":scope > details.fold:not([open])") !== null;
  const isInView = (top > -2 && top < 150) || (isAtEnd && top < innerHeight);
  const isNear = (one) => one.getBoundingClientRect().top < 1.5 * innerHeight;
  const texts = [...target.querySelectorAll("h2, h3, caption, th, td, dt, dd, p, li")].filter(isNear);
  const text = texts.map((one) => one.textContent).join(" ");
  return { text, isOpen: target.checkVisibility() && !isFolded, isInView };
}"""


def test_every_link_leads_to_what_it_says_unfolded_and_in_view(
    browser: Browser, report: Path, full_report: Path
) -> None:
    known: set[str] = set()
    for path in (report, full_report):
        seen = visit(browser, path)
        links = seen.page.evaluate(LINKS)
        assert len(links) > 20
        for link in links:
            landed = seen.page.evaluate(LAND, link)
            assert (landed["isOpen"], landed["isInView"]) == (True, True), link
            for about, words in LANDINGS.items():
                if about in link["about"]:
                    known.add(about)
                    assert words in landed["text"], link
        assert seen.errors == []
    assert known >= {"Repeats", "Idle machine", "Clocks", "Not varied", "How intervals are made"}


def test_what_is_folded_says_all_of_its_summary_and_a_button_says_how_many_it_shows(
    browser: Browser, full_report: Path
) -> None:
    page = visit(browser, full_report, width=390).page
    cut = "[...document.querySelectorAll('.fold .about')].filter((one) => one.scrollWidth > one.clientWidth + 1).length"
    assert page.evaluate(cut) == 0
    offer = """(count) => {
      const box = new PanelBox(document.createElement("div"), { listTitles: async () => [], draw: () => null });
      box.offerMore(count);
      return box.more.textContent;
    }"""
    assert [page.evaluate(offer, count) for count in (1, 6, 30)] == [
        "Show the other one", "Show the other 6", "Show 12 more; 30 are not shown",
    ]  # fmt: skip


def test_a_run_of_failures_says_so_in_the_heat_map_and_has_its_reasons_open(browser: Browser, render: Render) -> None:
    page = visit(browser, render(make_failed_result(repeat=1, message="ValueError: wrong shape"), repeats=2)).page
    expect(page.locator("#heat td.heat-cell")).to_have_text("✕failed")
    expect(page.locator("#heat-caption")).to_contain_text("How each cell ended")
    expect(page.locator("#baseline")).to_be_hidden()
    expect(page.get_by_text("ValueError: wrong shape").first).to_be_visible()


def test_one_cell_has_its_step_time_and_nothing_to_choose(browser: Browser, render: Render) -> None:
    page = visit(browser, render(make_result(), repeats=1)).page
    expect(page.locator("#heat thead th")).to_have_text("step time")
    expect(page.locator("#baseline")).to_be_hidden()
    expect(page.locator("#overview-tools .keys")).to_be_hidden()


def test_what_a_link_led_to_is_marked_until_the_next_one(browser: Browser, full_report: Path) -> None:
    page = visit(browser, full_report, address="#claim-latency").page
    colour = "(selector) => getComputedStyle(document.querySelector(selector)).backgroundColor"
    assert page.evaluate("document.activeElement.id") == "claim-latency"
    marked = page.evaluate(colour, "#claim-latency")
    assert marked != page.evaluate(colour, "#claim-fusion")
    page.locator("nav a", has_text="Comparisons").click()
    assert page.evaluate(colour, "#comparisons summary") == marked
    assert page.evaluate(colour, "#claim-latency") == page.evaluate(colour, "#claim-fusion")
