"""The pictures in the documentation show the current page.

ORDERPROOF_SCREENSHOTS=docs/images python -m pytest tests/explain/test_screenshots.py      writes them
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from PIL import Image

from orderproof.explain import bundled_study
from tests.explain.conftest import Open
from tests.pairs import first_soon

KEPT = Path(__file__).parents[2] / "docs" / "images"
SHOTS = {
    "explain_asks": ("asks", "light"),
    "explain_attention": ("attention", "light"),
    "explain_sinusoidal": ("sinusoidal", "light"),
    "explain_break": ("break", "light"),
    "explain_next_word": ("next-word", "light"),
    "explain_heads": ("heads", "dark"),
    "explain_lab": ("lab", "dark"),
}


@pytest.mark.parametrize("name", first_soon(SHOTS, 2))
def test_a_picture_shows_its_panel_and_the_documentation_has_it(name: str, open_page: Open, tmp_path: Path) -> None:
    step, colours = SHOTS[name]
    seen = open_page(step, width=1280, study=bundled_study())
    seen.page.emulate_media(color_scheme=colours)
    seen.page.set_viewport_size({"width": 1280, "height": 1600})  # the whole step: the menu stays where it is
    if step == "attention":
        seen.page.locator("#attention-swap").click()
    if step == "asks":
        seen.page.locator("#asks-keys .weight").nth(1).click()
    if step == "heads":
        seen.page.locator("#heads-positions input[value='1']").check(force=True)
    file = Path(os.environ.get("ORDERPROOF_SCREENSHOTS", tmp_path)) / f"{name}.png"
    seen.page.locator(f"#{step}").screenshot(path=file)
    with Image.open(file) as made, Image.open(KEPT / f"{name}.png") as kept:
        painted = made.convert("RGB").resize((200, 200)).getcolors(40_000)
        assert painted is not None
        assert len(painted) > 50, "nearly nothing is painted"
        assert (made.convert("L").resize((1, 1)).getpixel((0, 0)) > 128) == (colours == "light")
        assert abs(made.height / made.width - kept.height / kept.width) < 0.1, (
            "the step has changed: write the picture again"
        )
