"""The table of the atlas in a browser, opened from disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser import CHROMIUM, CONTRAST, NARROW, WHY_NOT, a_window, from_disk

TABLE = (Path(__file__).parents[2] / "docs/evidence/atlas/table.html").as_uri()
CELLS = "[...document.querySelectorAll('tbody tr')].map(line => [...line.cells].map(cell => cell.textContent))"


@pytest.mark.skipif(CHROMIUM is None, reason=WHY_NOT)
def test_the_table_is_searched_from_disk_and_a_search_has_an_address() -> None:
    with a_window(from_disk) as seen:
        seen.page.goto(f"{TABLE}#words=OP202&result=fail")
        assert "48 of " in seen.page.inner_text("#count")
        shown = seen.page.evaluate(CELLS)
        assert len(shown) == 48
        assert {line[2] for line in shown} == {"OP202 padding (padded)", "OP202 padding (padded), output pooler_output"}
        seen.page.select_option("#result", label="all results")
        seen.page.fill("#words", "llama causal")
        found = seen.page.evaluate(CELLS)
        assert ["llama", "causal_lm", "OP201 causal", "pass", "proved for every length"] in [line[:5] for line in found]
        assert seen.page.url.endswith("#words=llama+causal")
        seen.page.fill("#words", "")
        seen.page.check("#unexpected")
        assert all(line[3] == "fail" or "not as expected" in line[3] for line in seen.page.evaluate(CELLS))
        seen.page.fill("#words", "no such words")
        assert seen.page.evaluate(CELLS) == []
        seen.page.fill("#words", "yoso")
        low = [text for text, contrast, asked in seen.page.evaluate(CONTRAST) if contrast < asked]
        seen.page.set_viewport_size({"width": NARROW, "height": 800})
        assert seen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert (low, seen.complaints) == ([], [])
        assert all(address.startswith("file:") for address in seen.asked)
