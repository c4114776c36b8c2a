"""One page of a real browser for the tests of pages: what it asks for, complains of, and how it can be read."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from playwright.sync_api import Page, Route, sync_playwright

CHROMIUM = shutil.which("chromium")
WHY_NOT = "chromium is not installed: pages are not opened in a browser"
WIDE, NARROW = 1440, 360
# Every text that is seen, with the contrast of its colour and what is painted behind it, and what is asked of its size.
CONTRAST = """() => {
  const parse = text => text.match(/[\\d.]+/g).map(Number);
  const linear = c => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const luminance = c => 0.2126 * linear(c[0]) + 0.7152 * linear(c[1]) + 0.0722 * linear(c[2]);
  const behind = element => {
    for (let e = element; e; e = e.parentElement) {
      const colour = parse(getComputedStyle(e).backgroundColor);
      if (colour[3] === undefined || colour[3] === 1) return colour;
      if (colour[3] !== 0) throw new Error("half transparent: " + e.outerHTML.slice(0, 80));
    }
    return [255, 255, 255];
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !element.checkVisibility({visibilityProperty: true})) continue;
    const style = getComputedStyle(element), size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const [low, high] = [luminance(parse(style.color)), luminance(behind(element))].sort((a, b) => a - b);
    found.push([walker.currentNode.data.trim().slice(0, 40), (high + 0.05) / (low + 0.05), large ? 3 : 4.5]);
  }
  return found;
}"""


@dataclass
class Seen:
    """One page, with everything that it asked for, complained of or asked the reader."""

    page: Page
    asked: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)


@contextmanager
def a_window(allowed: Callable[[str], bool]) -> Iterator[Seen]:
    """One page; only requests whose address is allowed are let through."""
    flags = ["--no-sandbox"] if os.geteuid() == 0 else []

    def let_through(route: Route) -> None:
        if allowed(route.request.url):
            route.continue_()
        else:
            route.abort()

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=flags)
        seen = Seen(browser.new_page())
        seen.page.set_default_timeout(10_000)
        seen.page.on("request", lambda request: seen.asked.append(request.url))
        seen.page.on("console", lambda message: seen.complaints.append(message.text))
        seen.page.on("pageerror", lambda error: seen.complaints.append(str(error)))
        seen.page.on("dialog", lambda dialog: (seen.dialogs.append(dialog.message), dialog.dismiss()))
        seen.page.route("**/*", let_through)
        yield seen
        browser.close()


def from_disk(url: str) -> bool:
    """Whether an address is a file's."""
    return url.startswith("file:")
