"""Predictions: what each step asks, that it hides the answer until then, and that what it calls right is right."""

from __future__ import annotations

import pytest

from orderproof.explain import render_page as render
from tests.browser import CHROMIUM, CONTRAST, WHY_NOT
from tests.explain.conftest import Open
from tests.explain.page_actions import go, move, type_words
from tests.explain.page_checks import CUT_OFF, MOVING
from tests.pairs import first_soon

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason=WHY_NOT)]

# The right answer of each step for "the cat chased the dog", with what the step shows then.
RIGHT = {
    "tokens": ("stays", "#tokens-rows"),
    "asks": ("noun", "#asks-keys .opened"),
    "qkv": ("stays", "#qkv-controls"),
    "attention": ("same", "#attention-sums [data-same=true]"),
    "equation": ("yes", "#equation-timeline [data-same=true]"),
    "rows": ("six", "#rows-chain"),
    "norm": ("own", "#norm-norm"),
    "mean": ("one", "#mean-result [data-same=true]"),
    "positions": ("5", "#abilities-table"),
    "sinusoidal": ("top", "#picture-stripes"),
    "learned": ("none", "#picture-table"),
    "rope": ("stays", "#rope-picture .clocks"),
    "alibi": ("far", "#picture-alibi"),
    "t5": ("no", "#picture-t5"),
    "break": ("2", "#break-step-3.breaks"),
    "reverse": ("yes", "#reverse-result [data-same=true]"),
    "mask": ("no", "#mask-result [data-same=true]"),
    "next-word": ("half", "#next-cards"),
    "heads": ("none", "#heads-chosen"),
    "minilm": ("one", "#live-result .conclusion"),
}


@pytest.mark.parametrize("step", first_soon(RIGHT, 4))
def test_a_step_asks_before_it_shows_its_answer(open_page: Open, step: str):
    right, shown = RIGHT[step]
    page = open_page(step, asks=True).page
    assert page.locator(f"#{step} .after").evaluate_all("all => all.every(part => !part.checkVisibility())")
    page.locator(f"#ask-{step} [data-answer='{right}']").press("Enter")
    assert page.inner_text(f"#ask-{step} .predicted").startswith("As you predicted: ")
    assert page.locator(shown).first.is_visible()
    assert page.evaluate("document.activeElement.id") in ("next", "")  # an opened weight takes the focus
    assert page.evaluate("document.getElementById('announcement').textContent").startswith("As you predicted")


def test_the_question_names_a_word_that_moved_and_stays_with_its_answer(open_page: Open):
    page = open_page(asks=True).page
    go(page, "tokens")  # which swaps the words that the first step leaves in place
    asked = "In the second sentence “dog” gets another place. What will its vector do?"
    assert page.inner_text("#ask-tokens p") == f"Predict. {asked}"
    page.locator("#ask-tokens [data-answer=skip]").click()
    assert page.inner_text("#ask-tokens p >> nth=0") == asked


def test_an_introduction_does_not_say_what_its_step_asks(open_page: Open):
    page = open_page("mean", asks=True).page
    assert "the same for every order" not in page.inner_text("#mean .lead")
    page.locator("#ask-mean [data-answer=one]").click()
    assert "the same for every order" in page.inner_text("#mean .lead")


@pytest.mark.parametrize("step", first_soon(RIGHT, 2))
def test_a_wrong_prediction_and_none_are_answered_too(open_page: Open, step: str):
    page = open_page(step, asks=True).page
    wrong = page.locator(f"#ask-{step} button:not([data-answer='{RIGHT[step][0]}']):not([data-answer=skip])").first
    wrong.click()
    assert page.inner_text(f"#ask-{step} .predicted").startswith("Not as you predicted: ")
    page = open_page(step, asks=True).page
    page.locator(f"#ask-{step} [data-answer=skip]").click()
    assert page.inner_text(f"#ask-{step} .predicted").startswith("The answer: ")


def test_what_is_right_depends_on_the_readers_words(open_page: Open):
    page = open_page("break", asks=True).page
    move(page, "as typed")  # P moves nothing
    page.locator("#ask-break [data-answer='2']").click()
    assert page.inner_text("#ask-break .predicted").startswith("Not as you predicted: none.")
    go(page, "asks")
    type_words(page, "a big dog")
    assert "“dog”" in page.inner_text("#ask-asks")
    page.locator("#ask-asks [data-answer=adjective]").click()
    assert page.inner_text("#ask-asks .predicted").startswith("As you predicted: adjective.")


@pytest.mark.parametrize("motion", [True, False])
def test_the_answer_moves_into_view_unless_the_reader_prefers_less_motion(open_page: Open, motion: bool):
    page = open_page("tokens", asks=True, motion=motion).page
    page.locator("#ask-tokens [data-answer=stays]").click()
    assert (page.evaluate(MOVING, "#tokens-rows") > 0) == motion
    assert page.locator("#tokens-rows .chip").all_inner_texts() == ["the", "dog", "chased", "the", "cat"]


def test_the_conclusion_counts_the_predictions_and_compares_the_readers_sentences(open_page: Open):
    page = open_page("end", asks=True).page
    move(page, "as typed")  # the first step asks while both sentences are the same
    assert "You gave no predictions" in page.inner_text("#end-predictions")
    go(page, "sentences")
    page.locator("#sentence-result [data-answer=stay]").click()
    for step, answer in (("tokens", "stays"), ("mask", "yes"), ("norm", "skip")):
        go(page, step)
        page.locator(f"#ask-{step} [data-answer={answer}]").click()
    go(page, "end")
    assert page.inner_text("#end-predictions p") == "2 of 3 of your predictions were right."
    assert page.locator("#end-predictions .cannot").all_inner_texts() == ["A causal mask carries order by itself: no"]
    texts = page.locator("#end-sentences tbody tr").evaluate_all("all => all.map(row => row.children[1].textContent)")
    assert texts == ["the same vector"] + 5 * ["different vectors"]
    move(page, "as typed")
    assert "Both sentences are the same" in page.inner_text("#end-sentences")


def test_predictions_are_switched_off_in_the_contents(open_page: Open):
    page = open_page("mask", asks=True).page
    page.locator("#contents summary").click()
    page.locator("#ask-first").uncheck()
    page.locator("#contents summary").click()
    assert page.locator("#mask-result").is_visible()
    assert not page.locator("#ask-mask").is_visible()


@pytest.mark.parametrize("scheme", first_soon(["dark", "light"]))
def test_questions_have_contrast_and_fit_a_phone(open_page: Open, scheme: str):
    page = open_page(asks=True, width=390).page
    page.emulate_media(color_scheme=scheme)
    for step, (right, _) in RIGHT.items():
        go(page, step)
        for _ in range(2):
            low = [(text, ratio) for text, ratio, least in page.evaluate(CONTRAST) if ratio < least]
            assert low == [], step
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, step
            assert page.evaluate(CUT_OFF) == [], step
            if page.locator(f"#ask-{step} [data-answer='{right}']").count():
                page.locator(f"#ask-{step} [data-answer='{right}']").click()


def test_without_scripts_nothing_is_hidden_by_a_question():
    assert 'class="asking' not in render().split("<main", 1)[1].split("</main>", 1)[0]
