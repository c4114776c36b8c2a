"""The page in front of people: mouse and keys, phones and halls, light and dark, odd words, and no network."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from playwright.sync_api import Page

from orderproof.explain import read_study
from orderproof.explain import render_page as render
from tests.browser import CHROMIUM, CONTRAST, NARROW, WHY_NOT, WIDE
from tests.explain.conftest import Open
from tests.explain.examples import study_text
from tests.explain.page_actions import choose, type_words
from tests.report import examples

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=WHY_NOT)

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


def test_a_word_is_moved_by_the_keyboard_alone_and_keeps_the_focus(open_page: Open):
    page = open_page().page
    page.locator("#typed").focus()
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


def test_every_control_is_reached_by_the_keyboard_and_named(open_page: Open):
    page = open_page().page
    names = page.evaluate("""() => [...document.querySelectorAll("button, input, a[href], summary")].map(e =>
      e.ariaLabel || e.innerText || (e.labels && e.labels.length && e.labels[0].innerText) || "")""")
    assert len(names) > 40
    assert all(name.strip() for name in names)
    assert page.locator("[tabindex='-1']").count() == 0
    page.locator("#swap-settings input[value=none]").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("#swap-settings input[value=sinusoidal]").is_checked()
    assert page.inner_text("#swap-verdict") == "Different outputs"
    assert page.locator("#encodings-settings input[value=sinusoidal]").is_checked()


def test_what_is_chosen_in_one_panel_is_chosen_in_all(open_page: Open):
    page = open_page().page
    choose(page, "encodings", encoding="alibi", causal=True, layers=2)
    for name, value in (("encoding", "alibi"), ("causal", "true"), ("layers", "2")):
        assert page.locator(f"#swap-settings input[name='swap-{name}'][value='{value}']").is_checked()
    assert "ALiBi, causal, 2 layers" in page.inner_text("#swap-model")


def test_reverse_shuffle_and_as_typed_do_what_they_say(open_page: Open):
    page = open_page().page
    type_words(page, "a b c d e")
    button = lambda name: page.locator("#moves").get_by_role("button", name=name).click()  # noqa: E731
    button("as typed")
    assert order(page) == ["a", "b", "c", "d", "e"]
    assert page.inner_text("#swap-why") == "Both sentences are the same: move a word."
    for _ in range(2):  # each acts on the sentence as typed
        button("reverse")
        assert order(page) == ["e", "d", "c", "b", "a"]
        button("swap first and last")
        assert order(page) == ["e", "b", "c", "d", "a"]
    button("shuffle")
    assert sorted(order(page)) == ["a", "b", "c", "d", "e"]


# ---------------------------------------------------------------- odd words


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_odd_words_are_words_like_any_other(open_page: Open, text: str):
    count = "() => document.querySelectorAll('script, img, iframe, style, link, form').length"
    seen = open_page()
    before = seen.page.evaluate(count)
    type_words(seen.page, text)
    assert len(order(seen.page)) == len(text.split())
    assert seen.page.evaluate(count) == before
    assert seen.page.inner_text("#swap-verdict") == "The same output"
    for width in (WIDE, NARROW):
        seen.page.set_viewport_size({"width": width, "height": 900})
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
    assert (seen.dialogs, seen.complaints) == ([], [])


def test_html_is_shown_as_it_was_typed_and_controls_are_spelt_out(open_page: Open):
    page = open_page().page
    type_words(page, ODD["html"])
    assert sorted(order(page)) == sorted(word[:24] for word in HOSTILE.split())
    type_words(page, ODD["overrides"])
    assert sorted(order(page)) == ["a\\u202eb", "c\\u2066d", "e\\u200bf", "g\\u0007h"]


def test_nothing_typed_and_too_much_typed_are_said(open_page: Open):
    page = open_page().page
    type_words(page, "   ")
    assert page.inner_text("#typed-notes") == "Type at least one word."
    assert order(page) == ["dog", "chased", "cat"]
    type_words(page, "a b c d e f g h i j")
    assert page.inner_text("#typed-notes") == "The page uses 8 words; 2 left out."
    assert len(order(page)) == 8
    type_words(page, "y" * 25)
    assert "cut at 24 characters" in page.inner_text("#typed-notes")
    assert "One word has one order only." in page.inner_text("#typed-notes")
    assert order(page) == ["y" * 24]


# ---------------------------------------------------------------- screens, colours, network, weight


def full(tmp_path: Path) -> dict[str, object]:
    file = tmp_path / "study.json"
    file.write_text(study_text(), encoding="utf-8")
    return {"report": examples.everyday(), "study": read_study(file)}


def all_shown(page: Page) -> None:
    page.wait_for_function("document.querySelector('#orders-with strong')")
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")


@pytest.mark.parametrize("text", ["cat chased dog", "pneumonoultramicroscopic internationalization a b c d e f"])
def test_the_page_is_never_wider_than_the_window(open_page: Open, tmp_path: Path, text: str):
    page = open_page(**full(tmp_path)).page
    type_words(page, text)
    choose(page, "swap", readout="each", encoding="rotary")
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    for width in (NARROW, 768, 1024, WIDE, 2560):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_on_a_phone_every_verdict_of_the_table_is_seen_without_scrolling(open_page: Open):
    page = open_page(width=NARROW).page
    for cell in page.locator("#abilities-table .outcome, #abilities-table .gap-size").all():
        box = cell.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= NARROW


def test_on_a_wide_screen_letters_are_large(open_page: Open):
    page = open_page().page
    pixels = "selector => parseFloat(getComputedStyle(document.querySelector(selector)).fontSize)"
    sizes = {"body": 20, "#moving button": 30, "#swap-verdict": 36, "#swap-size": 30, "#proof .numbers td": 18}
    for selector, least in {**sizes, "#orders-without strong": 56}.items():
        page.wait_for_selector(selector)
        assert page.evaluate(pixels, selector) >= least


def test_letters_grow_with_the_screen_of_a_hall(open_page: Open):
    page = open_page(width=1920).page
    assert page.evaluate("parseFloat(getComputedStyle(document.body).fontSize)") > 26
    assert page.evaluate("document.documentElement.scrollWidth") <= 1920


def test_every_text_has_the_contrast_of_level_aa(open_page: Open, tmp_path: Path):
    page = open_page(**full(tmp_path)).page
    type_words(page, "a b c d e f")  # a word of each of six colours
    choose(page, "swap", encoding="rotary", readout="each")
    page.locator("#proof-placed").check()
    all_shown(page)
    papers = set()
    for scheme, width in (("light", WIDE), ("dark", WIDE), ("light", NARROW), ("dark", NARROW)):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 900})
        papers.add(page.evaluate("getComputedStyle(document.documentElement).backgroundColor"))
        found = page.evaluate(CONTRAST)
        assert len(found) > 500
        assert [(text, round(ratio, 2)) for text, ratio, least in found if ratio < least] == []
    assert len(papers) == 2


LINES = """() => {
  const parse = text => text.match(/[\\d.]+/g).map(Number);
  const linear = c => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const luminance = c => 0.2126 * linear(c[0]) + 0.7152 * linear(c[1]) + 0.0722 * linear(c[2]);
  const paper = luminance(parse(getComputedStyle(document.documentElement).backgroundColor));
  return [...document.querySelectorAll("svg .line, svg .ceiling, svg .tick")].map(e => {
    const style = getComputedStyle(e), tick = e.classList.contains("tick");
    const [low, high] = [luminance(parse(tick ? style.fill : style.stroke)), paper].sort((a, b) => a - b);
    return [e.getAttribute("class"), (high + 0.05) / (low + 0.05), tick ? 4.5 : 3];
  });
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_line_of_a_chart_has_contrast(open_page: Open, tmp_path: Path, scheme: str):
    page = open_page(**full(tmp_path)).page
    page.emulate_media(color_scheme=scheme)
    found = page.evaluate(LINES)
    assert len(found) > 20
    assert [(name, round(ratio, 2)) for name, ratio, least in found if ratio < least] == []


def test_no_request_is_made_and_nothing_is_complained_of(open_page: Open, tmp_path: Path):
    seen = open_page(**full(tmp_path))
    for encoding in ("sinusoidal", "learned", "rotary", "alibi", "t5", "none"):
        choose(seen.page, "swap", encoding=encoding, causal=True, layers=2)
    all_shown(seen.page)
    assert len(seen.asked) == 1
    assert seen.asked[0].startswith("file:")
    assert (seen.complaints, seen.dialogs) == ([], [])


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
    seen = open_page(**full(tmp_path))
    assert len(render(**full(tmp_path)).encode()) <= 1_000_000
    assert len(render().encode()) <= 200_000
    times: list[float] = []
    for _ in range(3):
        began = time.perf_counter()
        seen.page.reload()
        seen.page.wait_for_function("document.documentElement.dataset.ready === 'true'")
        times.append(time.perf_counter() - began)
    assert min(times) < 1


def test_without_scripts_the_page_says_so(open_page: Open, tmp_path: Path):
    seen = open_page()
    context = seen.page.context.browser.new_context(java_script_enabled=False)
    try:
        bare = context.new_page()
        bare.goto((tmp_path / "page.html").as_uri())
        assert "JavaScript, which is switched off" in bare.inner_text("body")
    finally:
        context.close()
