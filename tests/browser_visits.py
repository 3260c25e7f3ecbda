"""Open pages in a browser, and keep what they ask for and which errors they have."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, expect

# The page is ready when everything is drawn that does not wait for being seen.
READY = "html[data-ready]"
PATIENCE_MILLISECONDS = 300_000.0
"""For whatever a browser does; only a test that fails takes so long."""
expect.set_options(timeout=PATIENCE_MILLISECONDS)


@dataclass
class Visit:
    """A page opened in a browser, and what it asked for and which errors and warnings it had."""

    page: Any
    requests: list[str]
    errors: list[str]


def visit(browser: Browser, path: Path, *, width: int = 1440, scheme: Any = "light", address: str = "") -> Visit:
    """Open a report and return when it can be used. `address`: what follows the file's name, such as `#doubts`."""
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce")
    page.set_default_timeout(PATIENCE_MILLISECONDS)
    requests: list[str] = []
    errors: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if message.type in ("error", "warning") else None)
    page.goto(path.as_uri() + address)
    page.wait_for_selector(READY)
    return Visit(page=page, requests=[url for url in requests if not url.startswith("data:")], errors=errors)
