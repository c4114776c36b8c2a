"""The steps of the story: next and back, keys, addresses, motion, and every step on every screen."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page

from orderproof.explain import bundled_study
from orderproof.explain import render_page as render
from tests.browser import CHROMIUM, CONTRAST, WHY_NOT, WIDE
from tests.explain.conftest import Open
from tests.explain.examples import everything
from tests.explain.page_actions import STEPS, choose, go, move, type_words, wait_for_step
from tests.explain.page_checks import CUT_OFF, GRAPHICS_CONTRAST, MOVING, NAMES, TOO_WIDE
from tests.pairs import first_soon

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=WHY_NOT)

PHONE = 390


def shown(page: Page) -> list[str]:
    return page.evaluate("[...document.querySelectorAll('main > section')].filter(s => !s.hidden).map(s => s.id)")


# ---------------------------------------------------------------- one step at a time


def test_next_and_back_go_through_every_step(open_page: Open):
    page = open_page().page
    assert page.locator("#back").is_disabled()
    for i, step in enumerate(STEPS):
        assert shown(page) == [step]
        assert page.inner_text("#step-count") == f"{i + 1} of {len(STEPS)}"
        assert page.title().startswith(page.inner_text(f"#{step} h2"))
        if i + 1 < len(STEPS):
            page.locator("#next").click()
            wait_for_step(page, STEPS[i + 1])
    assert page.locator("#next").is_disabled()
    page.locator("#back").click()
    wait_for_step(page, "claims")
    page.go_back()
    wait_for_step(page, "end")
    assert shown(page) == ["end"]


def test_arrow_keys_change_the_step_and_belong_to_controls_first(open_page: Open):
    page = open_page().page
    page.keyboard.press("ArrowRight")
    wait_for_step(page, "tokens")
    page.keyboard.press("ArrowLeft")
    wait_for_step(page, "sentences")
    page.locator("#other-words summary").click()
    page.locator("#typed").focus()
    page.keyboard.press("ArrowRight")
    page.locator("#moving button").first.focus()
    page.keyboard.press("ArrowRight")
    assert shown(page) == ["sentences"]
    assert page.locator("#moving button").all_inner_texts()[:2] == ["dog", "the"]
    go(page, "positions")
    page.locator("#positions-layers input").first.focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("#positions-layers input[value='2']").is_checked()
    assert shown(page) == ["positions"]
    page.locator("#next").focus()
    page.keyboard.press("Enter")
    wait_for_step(page, "sinusoidal")
    place = STEPS.index("sinusoidal") + 1
    assert page.inner_text("#announcement") == f"Step {place} of {len(STEPS)}: Sinusoidal: stripes"


def test_page_keys_read_a_long_step_before_they_change_it(open_page: Open):
    page = open_page("rows").page
    page.keyboard.press("PageDown")
    page.wait_for_timeout(500)  # the browser scrolls smoothly
    assert shown(page) == ["rows"]
    assert page.evaluate("document.documentElement.scrollTop") > 0
    page.evaluate("document.documentElement.scrollTop = 1e6")
    page.keyboard.press("PageDown")
    wait_for_step(page, "norm")
    assert page.evaluate("document.documentElement.scrollTop") == 0


@pytest.mark.parametrize("step", first_soon(STEPS, 4))
def test_every_step_has_an_address(open_page: Open, step: str):
    page = open_page(step).page
    assert shown(page) == [step]
    assert page.locator("#contents-list a[aria-current=step]").get_attribute("href") == f"#{step}"


@pytest.mark.parametrize("address", ["nowhere", "%E0%A4%A", "%3Cimg%20src=x%3E", ""])
def test_an_unknown_address_is_the_first_step(open_page: Open, address: str):
    seen = open_page(address)
    assert shown(seen.page) == ["sentences"]
    assert seen.complaints == []


def test_the_contents_name_every_step_and_lead_to_it(open_page: Open):
    page = open_page().page
    page.locator("#contents summary").click()
    links = page.locator("#contents-list a")
    hrefs = links.evaluate_all("all => all.map(a => a.getAttribute('href'))")
    assert hrefs == [f"#{step}" for step in STEPS]
    assert page.locator("#contents-list h3").count() == 5
    page.keyboard.press("Escape")
    rope = links.nth(STEPS.index("rope"))
    assert not rope.is_visible()
    page.keyboard.press("Enter")  # the focus is on the list's heading
    rope.click()
    wait_for_step(page, "rope")
    assert page.evaluate("document.getElementById('contents').open") is False


def test_the_words_that_students_search_for_are_there(open_page: Open):
    page = open_page().page
    move(page, "swap")
    text = page.inner_text("body")
    assert "positional encoding" in text
    assert "permutation equivariance" in text
    assert "positional encoding" in re.search(r"<title>(.*)</title>", render()).group(1)


# ---------------------------------------------------------------- motion


@pytest.mark.parametrize("motion", [True, False])
def test_rows_slide_and_arrows_move_unless_the_reader_prefers_less_motion(open_page: Open, motion: bool):
    page = open_page("attention", motion=motion).page
    lines = "[...document.querySelectorAll('#attention-arrows .arrow line')].map(l => l.outerHTML).join()"
    first = page.evaluate(lines)
    page.locator("#attention-swap").click()
    assert (page.evaluate(MOVING, "#attention-terms") > 0) == motion
    early = page.evaluate(lines)
    page.wait_for_timeout(1300 if motion else 50)
    last = page.evaluate(lines)
    assert first != last
    assert (early != last) == motion
    go(page, "rows")
    apply = page.locator("#rows-controls button")
    assert apply.is_visible() == motion  # without motion it would do nothing
    if motion:
        apply.click()
        assert page.evaluate(MOVING, "#rows-chain") > 0


# ---------------------------------------------------------------- every step on every screen


@pytest.mark.parametrize("width", first_soon([PHONE, WIDE]))
@pytest.mark.parametrize("text", ["", "pneumonoultramicroscopic internationalization a b c d e f"])
def test_no_step_is_wider_than_the_window(open_page: Open, tmp_path: Path, width: int, text: str):
    page = open_page(width=width, **everything(tmp_path)).page
    if text:
        type_words(page, text)
    for step in STEPS:
        go(page, step)
        page.evaluate("document.querySelectorAll('main details').forEach(d => d.open = true)")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, step


def test_on_a_phone_no_matrix_word_picture_or_table_is_cut(open_page: Open, tmp_path: Path):
    page = open_page(width=PHONE, **{**everything(tmp_path), "study": bundled_study()}).page
    for step in STEPS:
        go(page, step)
        page.evaluate("document.querySelectorAll('main details').forEach(d => d.open = true)")
        assert page.evaluate(CUT_OFF) == [], step
        assert page.evaluate(TOO_WIDE) == [], step


@pytest.mark.parametrize("width", first_soon([768, 1280, 820, 1024]))
def test_the_terms_and_their_arrows_do_not_overlap(open_page: Open, width: int):
    page = open_page("attention", width=width).page
    page.locator("#attention-swap").click()
    arrows = page.locator("#attention-arrows svg").bounding_box()
    for part in page.locator("#attention-terms .heat table, #attention-sums .heat table").all():
        box = part.bounding_box()
        beside = box["x"] + box["width"] <= arrows["x"]
        assert beside or box["y"] >= arrows["y"] + arrows["height"]


def test_words_of_arrows_do_not_cover_each_other(open_page: Open):
    page = open_page("attention").page
    boxes = """texts => {
      const all = texts.map(t => t.getBBox()), size = 400;
      const meet = (a, b) => a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
      const covered = all.flatMap((a, i) => all.slice(i + 1).map(b => meet(a, b))).filter(Boolean).length;
      const outside = all.filter(b => b.x < 0 || b.y < 0 || b.x + b.width > size || b.y + b.height > size).length;
      return [all.length, covered, outside];
    }"""
    words = "pneumonoultramicroscopic internationalization counterrevolutionary photosynthesis electroencephalograph "
    for text, least in (
        ("the cat chased the dog", 5),
        (words + "uncharacteristically disproportionate misunderstanding", 3),
    ):
        type_words(page, text)
        for encoding in ("none", "sinusoidal", "rotary", "alibi"):
            page.locator(f"#attention-controls input[value={encoding}]").check(force=True)
            for _ in range(2):
                shown, covered, outside = page.locator("#attention-arrows .arrow text").evaluate_all(boxes)
                assert shown >= least, (text, encoding)
                assert (covered, outside) == (0, 0), (text, encoding)
                page.locator("#attention-swap").click()


def test_both_sides_of_an_equation_stay_in_one_line_with_eight_words(open_page: Open):
    page = open_page("rows", width=1280).page
    type_words(page, "eight words of the reader make large matrices")
    for pair in page.locator("#rows-chain .both").all():
        left, right = (figure.bounding_box() for figure in pair.locator("figure").all())
        assert left["x"] + left["width"] <= right["x"]
        assert abs(left["y"] - right["y"]) < left["height"] / 2


@pytest.mark.parametrize("scheme", first_soon(["dark", "light"]))
def test_every_text_of_every_step_has_the_contrast_of_level_aa(open_page: Open, tmp_path: Path, scheme: str):
    page = open_page(**everything(tmp_path)).page
    page.emulate_media(color_scheme=scheme)
    type_words(page, "a b c d e f g h")  # a word of each colour
    count = 0
    for step in STEPS:
        go(page, step)
        if step == "attention":
            page.locator("#attention-swap").click()
        page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        found = page.evaluate(CONTRAST)
        count += len(found)
        assert [(text, round(ratio, 2)) for text, ratio, least in found if ratio < least] == [], step
    assert count > 1500


@pytest.mark.parametrize("scheme", first_soon(["dark", "light"]))
def test_every_line_arrow_and_dot_has_contrast(open_page: Open, scheme: str):
    page = open_page("attention", study=bundled_study()).page
    page.emulate_media(color_scheme=scheme)
    page.locator("#attention-swap").click()
    for step in ("attention", "rope", "alibi", "t5", "minilm", "lab"):
        go(page, step)
        page.evaluate("document.querySelectorAll('main details').forEach(d => d.open = true)")
        found = page.evaluate(GRAPHICS_CONTRAST)
        assert len(found) > 5, step
        assert [(name, round(ratio, 2)) for name, ratio, least in found if ratio < least] == [], step


def test_every_control_and_picture_has_a_name(open_page: Open, tmp_path: Path):
    page = open_page(live=True, **everything(tmp_path)).page
    count = 0
    for step in STEPS:
        go(page, step)
        found = page.evaluate(NAMES)
        count += len(found)
        assert [markup for markup, name in found if not name.strip()] == [], step
        ids = page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
        assert len(ids) == len(set(ids)), step
    assert count > 300
    assert page.locator("[tabindex='-1']").count() == 0


def test_the_number_of_a_cell_is_shown_on_hover_and_on_focus(open_page: Open):
    page = open_page("qkv").page
    cells = page.locator("#qkv-q td")
    box = page.locator("#cell-number")
    assert not box.is_visible()
    cells.nth(5).hover()
    assert box.inner_text() == cells.nth(5).get_attribute("aria-label")
    assert re.fullmatch(r"cat, feature 2: −?\d\.\d{3}", box.inner_text())
    page.mouse.move(5, 400)
    assert not box.is_visible()
    page.locator("#qkv-q table").focus()
    assert box.inner_text() == cells.nth(0).get_attribute("aria-label")
    for key, place in (("ArrowRight", 1), ("ArrowDown", 5), ("ArrowLeft", 4), ("ArrowUp", 0), ("ArrowUp", 0)):
        page.keyboard.press(key)
        assert box.inner_text() == cells.nth(place).get_attribute("aria-label")
    assert shown(page) == ["qkv"]
    page.keyboard.press("Escape")
    assert not box.is_visible()


def test_no_step_makes_a_request_or_complains(open_page: Open, tmp_path: Path):
    seen = open_page(**everything(tmp_path))
    for step in STEPS:
        go(seen.page, step)
    for encoding in ("sinusoidal", "learned", "rotary", "alibi", "t5", "none"):
        go(seen.page, "break")
        choose(seen.page, "break-encoding", encoding)
    assert [url.partition("#")[0] for url in seen.asked] == [(tmp_path / "page.html").as_uri()]
    assert (seen.complaints, seen.dialogs) == ([], [])


def test_every_proof_in_the_table_says_for_what_it_holds(open_page: Open):
    page = open_page("theorem").page
    known = page.locator("#theorem table.proofs tbody td:last-child").all_text_contents()
    assert len(known) >= 5
    for text in known:
        assert text.startswith("proved: ")
        assert "every weight" in text or "every value of every parameter" in text, text


def test_the_steps_of_the_proof_have_the_numbers_of_the_chain(open_page: Open):
    page = open_page("theorem").page
    page.locator("#proof summary").click()
    steps = page.locator("#proof li").all_text_contents()
    for number, part in ((1, "X′ = P X"), (2, "projection"), (3, "Scores"), (4, "Softmax"), (5, "Weighted sum")):
        assert part in steps[number - 1]
    assert "step 3 (rotations and biases)" in page.inner_text("#theorem")


def test_on_a_phone_labels_keep_away_from_words_and_dots_stay_with_them(open_page: Open):
    page = open_page("sentences", width=390).page
    label, words = (page.locator(where).bounding_box() for where in ("#second-label", "#second-label + *"))
    assert label is not None
    assert words is not None
    assert label["y"] + label["height"] <= words["y"]
    page = open_page("mask", width=390).page
    for cell in page.locator("#mask .sees td.new").all():
        place, row = (part.bounding_box() for part in (cell, cell.locator("figure")))
        assert place is not None
        assert row is not None
        assert row["x"] > place["x"] + 4, "the dot is on a line of its own"


def test_on_a_phone_an_equals_sign_is_between_its_matrices(open_page: Open):
    page = open_page("reverse", width=PHONE).page
    for words in ("the cat chased the dog", "a b c d e f g h"):
        type_words(page, words)
        left, sign, right = (
            page.locator(f"#reverse .bias-pair > {part}").bounding_box()
            for part in ("figure:first-child", ".sign", "figure:last-child")
        )
        assert left is not None
        assert sign is not None
        assert right is not None
        assert left["x"] + left["width"] <= sign["x"]
        assert sign["x"] + sign["width"] <= right["x"]
        assert right["x"] + right["width"] <= PHONE
        assert right["y"] < sign["y"] < right["y"] + right["height"]


def test_on_a_phone_a_score_of_the_lab_stays_in_one_line(open_page: Open):
    page = open_page("lab", width=PHONE, study=bundled_study()).page
    page.locator("#study-numbers summary").click()
    scores = page.locator("#study-numbers td[data-title=score]")
    assert scores.count() == 24
    assert scores.first.inner_text() == "0.500"
    lines = (
        "cells => cells.map(cell => cell.getClientRects()[0].height / parseFloat(getComputedStyle(cell).lineHeight))"
    )
    assert max(scores.evaluate_all(lines)) < 1.5


def test_terms_are_defined_where_they_are_used_first(open_page: Open):
    page = open_page().page
    texts = page.locator("main > section").evaluate_all("all => all.map(s => [s.id, s.textContent])")
    for term, definition in {
        "P X": "P is a permutation matrix",
        "X′": "A prime (X′, Q′) marks what is computed from the second sentence",
        "permutation-equivariant": "the outputs permute with the inputs",
        "permutation-invariant": "the output does not change",
        "prompt": "The prompt is every word before the last",
        "bag of words": "which words there are, and how often",
        "slope": "A bias is a number that is added to a score",
        "cosine": "their cosine is 1, the same direction",
    }.items():
        first = next(text for _, text in texts if term in text)
        assert definition in first, term
    learner = "".join(text for step, text in texts if step not in ("theorem", "model", "claims"))
    assert not re.search(r"OP\d", learner)
    codes = re.findall(r".*OP\d.*", dict(texts)["theorem"])
    assert codes
    assert all("a code, such as OP101" in line for line in codes)


@pytest.mark.parametrize("width", first_soon([PHONE, 1280]))
def test_a_long_word_ends_before_its_weight(open_page: Open, width: int):
    page = open_page(width=width).page
    type_words(page, "internationalization of antidisestablishmentarianism")
    go(page, "attention")
    for term in page.locator("#attention-terms li").all():
        word, weight = (term.locator(where).bounding_box() for where in (".chip", ".weight"))
        assert word is not None
        assert weight is not None
        assert word["x"] + word["width"] <= weight["x"]
