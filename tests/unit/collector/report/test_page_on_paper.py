"""The report in a browser, beyond filters and heat map: it prints whole, keeps to its links' targets, sorts tables."""

from pathlib import Path

from playwright.sync_api import Browser, expect

from browser_visits import visit

A4_LANDSCAPE_PIXELS = 1032
"""What the margins leave of 297 mm at 96 dpi."""

TWO_FRAMES = "new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))"
"""Kept when the page has been laid out anew, and all who watch for that have been told."""


def test_all_is_printed_without_scrolling_in_light_colours_and_nothing_is_cut(
    browser: Browser, full_report: Path
) -> None:
    page = visit(browser, full_report, width=A4_LANDSCAPE_PIXELS, scheme="dark").page
    page.evaluate("drawForPrint()")  # of what is folded, too: the browser's own menu prints what is drawn
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details.fold:not([open])").count() == 0

    assert page.locator(".plot:not([data-drawn]):visible").count() == 0
    assert page.locator(".plot svg").count() > 10
    assert page.locator("button:visible, #filters:visible, nav:visible").count() == 0
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("document.documentElement.scrollWidth") == A4_LANDSCAPE_PIXELS
    # Items of a grid break between their caption and their plot: chromium put the captions of four on one page and the
    # plots on the next.
    several = ".questions .panels > figure:not(:only-of-type)"
    displays = "(query) => [...document.querySelectorAll(query)].map((one) => getComputedStyle(one).display)"
    assert set(page.evaluate(displays, several)) == {"inline-block"}
    assert set(page.evaluate(displays, f":has(> {several})")) == {"block"}
    expect(page.locator(".facts-box dl")).to_be_visible()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    expect(page.locator(".facts-box dl")).to_be_hidden()
    assert page.locator("details.fold[open]").count() == 0


def test_a_link_keeps_to_its_target_while_the_plots_above_it_are_drawn(browser: Browser, full_report: Path) -> None:
    seen = visit(browser, full_report, width=390)
    seen.page.get_by_role("navigation").get_by_role("link", name="How it was measured").click()
    seen.page.evaluate("drawForPrint()")
    seen.page.evaluate(TWO_FRAMES)
    assert seen.page.evaluate("Math.abs(document.getElementById('method').getBoundingClientRect().top)") < 100
    assert seen.errors == []


def test_a_table_is_sorted_by_a_heading_and_back(browser: Browser, full_report: Path) -> None:
    page = visit(browser, full_report, address="#step-times").page
    heading = page.locator("#step-times th", has_text="step time, ms").first
    times = page.locator("#step-times table").first.locator("tbody tr > :nth-child(2)")
    before = times.all_inner_texts()
    heading.get_by_role("button").click()
    assert heading.get_attribute("aria-sort") == "ascending"
    assert times.all_inner_texts() == sorted(before, key=float)
    heading.get_by_role("button").press("Enter")
    assert times.all_inner_texts() == sorted(before, key=float, reverse=True)
    heading.get_by_role("button").press("Enter")
    assert heading.get_attribute("aria-sort") is None
    assert times.all_inner_texts() == before
