"""The page in a real browser, opened from disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from orderproof.explain import render_page
from tests.browser import WIDE, Seen, a_window, from_disk

Open = Callable[..., Seen]


@pytest.fixture(scope="module")
def window() -> Iterator[Seen]:
    with a_window(from_disk) as seen:
        yield seen


@pytest.fixture(scope="module")
def asked(window: Seen, tmp_path_factory: pytest.TempPathFactory) -> Page:
    """The page opened once, for tests that only ask it for numbers."""
    file = tmp_path_factory.mktemp("page") / "page.html"
    file.write_text(render_page(), encoding="utf-8")
    window.page.goto(file.as_uri())
    return window.page


@pytest.fixture
def open_page(window: Seen, tmp_path: Path) -> Open:
    """Write the page and open it from disk at a step, in light colours, without motion and without predictions."""

    def open_page(
        step: str = "sentences", *, width: int = WIDE, motion: bool = False, asks: bool = False, **embedded: Any
    ) -> Seen:
        file = tmp_path / "page.html"
        file.write_text(render_page(**embedded), encoding="utf-8")
        window.page.goto("about:blank")  # another step of the same file would not be loaded again
        for log in (window.asked, window.complaints, window.dialogs):
            log.clear()
        window.page.emulate_media(color_scheme="light", reduced_motion="no-preference" if motion else "reduce")
        window.page.set_viewport_size({"width": width, "height": 900})
        window.page.goto(f"{file.as_uri()}#{step}")
        window.page.locator("html[data-ready='true']").wait_for(state="attached")
        if not asks:
            window.page.evaluate("document.getElementById('ask-first').click()")
        return window

    return open_page
