"""The page in front of people: mouse and keys, halls, odd words, and what its policy refuses."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from playwright.sync_api import Page

from orderproof.explain import bundled_study
from orderproof.explain import render_page as render
from tests.browser import CHROMIUM, NARROW, WHY_NOT, WIDE
from tests.explain.conftest import Open
from tests.explain.examples import everything
from tests.explain.page_actions import STEPS, go, move, type_words
from tests.pairs import first_soon

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason=WHY_NOT)]

HOSTILE = '<img/src=x/onerror=alert(1)> <script>alert("x")</script> {{7*7}} </script>'
ODD = {
    "html": HOSTILE,
    "emoji": "👩‍🚀 🇩🇪 👍🏽 é ﷽",
    "right to left": "הכלב רדף אחרי החתול",
    "mixed": "the كلب chased 猫",
    "overrides": "a\u202eb c\u2066d e\u200bf g\u0007h",
    "long": "x" * 300 + " y",
    "marks": "z" + "\u0301" * 200 + " y",
}


def order(page: Page) -> list[str]:
    return page.locator("#moving button").all_inner_texts()


# ---------------------------------------------------------------- mouse and keys


def test_a_word_is_dragged_by_the_mouse(open_page: Open):
    page = open_page().page
    type_words(page, "cat chased dog")
    move(page, "swap")
    assert order(page) == ["dog", "chased", "cat"]
    chip = page.locator("#moving button", has_text="dog").bounding_box()
    target = page.locator("#moving button", has_text="cat").bounding_box()
    page.mouse.move(chip["x"] + 10, chip["y"] + 10)
    page.mouse.down()
    page.mouse.move(target["x"] + target["width"] - 4, target["y"] + 12, steps=12)
    page.mouse.up()
    assert order(page) == ["chased", "cat", "dog"]
    page.mouse.move(5, 5, steps=5)
    assert order(page) == ["chased", "cat", "dog"]


@pytest.mark.parametrize("motion", [True, False])
def test_a_word_is_moved_by_the_keyboard_alone_and_keeps_the_focus(open_page: Open, motion: bool):
    page = open_page(motion=motion).page
    type_words(page, "cat chased dog")
    move(page, "swap")
    page.locator("#next").focus()
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.closest('#moving') !== null"):
            break
    focused = "document.activeElement.innerText"
    assert page.evaluate(focused) == "dog"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    for key, wanted in (
        ("ArrowRight", ["chased", "dog", "cat"]),
        ("ArrowLeft", ["dog", "chased", "cat"]),
        ("ArrowLeft", ["dog", "chased", "cat"]),
        ("End", ["chased", "cat", "dog"]),
        ("Home", ["dog", "chased", "cat"]),
    ):
        page.keyboard.press(key)
        assert order(page) == wanted
        assert page.evaluate(focused) == "dog"
    assert page.inner_text("#announcement") == "dog: place 1 of 3"
    assert page.locator("#moving button").first.get_attribute("aria-label") == "dog, place 1 of 3"


def test_a_choice_of_words_keeps_the_focus(open_page: Open):
    page = open_page("attention").page
    page.locator("#attention-query input").nth(1).focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.locator("#attention-query input:checked").get_attribute("value") == "3"
    assert page.evaluate("document.activeElement === document.querySelector('#attention-query input:checked')")


def test_the_second_sentence_stays_when_the_step_changes(open_page: Open):
    page = open_page().page
    type_words(page, "one two three")
    move(page, "reverse")
    go(page, "mean")
    assert order(page) == ["three", "two", "one"]


# ---------------------------------------------------------------- odd words


@pytest.mark.parametrize("text", first_soon(ODD.values(), 2), ids=ODD)
def test_odd_words_are_words_like_any_other(open_page: Open, text: str):
    count = "() => document.querySelectorAll('script, img, iframe, style, link, form').length"
    seen = open_page()
    before = seen.page.evaluate(count)
    type_words(seen.page, text)
    assert len(order(seen.page)) == len(text.split())
    move(seen.page, "swap")
    assert seen.page.inner_text("#sentence-result .answer") == "The same vector"
    for width in (WIDE, NARROW):
        seen.page.set_viewport_size({"width": width, "height": 900})
        for step in STEPS[:16]:
            go(seen.page, step)
            assert seen.page.evaluate("document.documentElement.scrollWidth") <= width, step
    assert seen.page.evaluate(count) == before
    assert (seen.dialogs, seen.complaints) == ([], [])


def test_html_is_shown_as_it_was_typed_and_controls_are_spelt_out(open_page: Open):
    page = open_page().page
    type_words(page, ODD["html"])
    assert sorted(order(page)) == sorted(word[:24] for word in HOSTILE.split())
    go(page, "attention")
    assert "<img/src=x/…" in page.text_content("#attention-arrows svg")
    type_words(page, ODD["overrides"])
    assert sorted(order(page)) == ["a\\u202eb", "c\\u2066d", "e\\u200bf", "g\\u0007h"]
    assert "\\u202eb" in page.text_content("#attention-arrows svg")
    assert "\u202e" not in page.inner_text("body")


def test_nothing_typed_and_too_much_typed_are_said(open_page: Open):
    page = open_page().page
    type_words(page, "   ")
    assert page.inner_text("#typed-notes") == "Type at least one word."
    assert order(page) == ["the", "cat", "chased", "the", "dog"]
    type_words(page, "a b c d e f g h i j")
    assert page.inner_text("#typed-notes") == "The page uses 8 words; 2 left out."
    assert len(order(page)) == 8
    type_words(page, "y" * 25)
    assert "cut at 24 characters" in page.inner_text("#typed-notes")
    assert "One word has one order only." in page.inner_text("#typed-notes")
    for step in STEPS[:16]:
        go(page, step)


# ---------------------------------------------------------------- screens


def test_letters_are_large_on_a_wide_screen_and_grow_with_a_hall(open_page: Open):
    page = open_page().page
    move(page, "swap")
    pixels = "selector => parseFloat(getComputedStyle(document.querySelector(selector)).fontSize)"
    for selector, least in {"body": 20, "#moving button": 30, "#sentence-result .answer": 32, ".lead": 22}.items():
        assert page.evaluate(pixels, selector) >= least
    page.set_viewport_size({"width": 1920, "height": 1080})
    assert page.evaluate(pixels, "body") > 26
    for step in STEPS:
        go(page, step)
        assert page.evaluate("document.documentElement.scrollWidth") <= 1920


def test_a_step_fits_a_laptop_nearly(open_page: Open):
    page = open_page(width=1280, study=bundled_study()).page
    heights = {}
    for step in STEPS:
        go(page, step)
        heights[step] = page.evaluate("document.documentElement.scrollHeight")
    assert {step for step, height in heights.items() if height > 1060} <= {"rows", "break", "theorem"}
    assert max(heights.values()) < 1500


# ---------------------------------------------------------------- what the page does not do

ATTEMPTS = {
    "fetch": "fetch('https://example.org/x').then(() => 'sent', () => 'refused')",
    "image": """new Promise(done => Object.assign(new Image(),
      {onload: () => done('sent'), onerror: () => done('refused'), src: 'https://example.org/x.png'}))""",
    "markup": """(async () => { try { document.body.innerHTML = '<b>x</b>'; return 'run'; }
      catch { return 'refused'; } })()""",
    "script": """(async () => { try { document.createElement('script').src = 'https://example.org/x.js'; return 'run'; }
      catch { return 'refused'; } })()""",
}


@pytest.mark.parametrize("attempt", ATTEMPTS.values(), ids=ATTEMPTS)
def test_the_policy_of_the_page_refuses_what_the_page_never_does(open_page: Open, attempt: str):
    assert open_page().page.evaluate(f"() => {attempt}") == "refused"


def test_the_page_is_ready_within_a_second_and_is_small(open_page: Open, tmp_path: Path):
    seen = open_page(**everything(tmp_path))
    assert len(render(**everything(tmp_path)).encode()) <= 1_000_000
    assert len(render().encode()) <= 450_000
    times: list[float] = []
    for _ in range(3):
        began = time.perf_counter()
        seen.page.reload()
        seen.page.locator("html[data-ready='true']").wait_for(state="attached")
        times.append(time.perf_counter() - began)
    assert min(times) < 1


def test_without_scripts_the_page_says_so_and_shows_its_text(open_page: Open, tmp_path: Path):
    seen = open_page()
    context = seen.page.context.browser.new_context(java_script_enabled=False)
    try:
        bare = context.new_page()
        bare.goto((tmp_path / "page.html").as_uri())
        text = bare.inner_text("body")
        assert "JavaScript, which is switched off" in text
        assert "The theorem" in text
    finally:
        context.close()
