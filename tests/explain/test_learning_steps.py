"""From text to vectors, what a query asks, opened weights, the equation of three words, and scrubbing."""

from __future__ import annotations

import re

import pytest
import torch
from playwright.sync_api import Page

from orderproof.explain.page import trained_model
from orderproof.models import bundled
from tests.browser import CHROMIUM, WHY_NOT
from tests.explain.conftest import Open
from tests.explain.examples import bare_head, numbers
from tests.explain.page_actions import choose, matrix, number, same, same_digits, scrub, type_words, words_of

pytestmark = [pytest.mark.skipif(CHROMIUM is None, reason=WHY_NOT), pytest.mark.slow]

WORDS = ["the", "cat", "chased", "the", "dog"]
SWAPPED = [0, 4, 2, 3, 1]
KINDS = ["article", "noun", "verb", "adjective"]


def steps_of(page: Page, selector: str) -> dict[str, str]:
    """The lines of an opened weight, by name."""
    script = "all => all.map(line => [line.dataset.step, line.textContent])"
    return dict(page.locator(f"{selector} .opened [data-step]").evaluate_all(script))


def results(lines: dict[str, str]) -> dict[str, float]:
    """The number at the end of each line."""
    return {name: number(text.rsplit(" ", 1)[1]) for name, text in lines.items()}


def products(page: Page, selector: str) -> torch.Tensor:
    cells = page.locator(f"{selector} .opened tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.querySelectorAll('td')].map(cell => cell.textContent))"
    )
    return numbers([[number(text) for text in row] for row in cells])


# ---------------------------------------------------------------- from text to vectors


def test_each_token_keeps_its_vector_at_another_place(open_page: Open):
    page = open_page("tokens").page
    x = words_of(page, 8, WORDS)
    for order in ([0, 1, 2, 3, 4], SWAPPED):
        assert page.locator("#tokens-rows .chip").all_inner_texts() == [WORDS[place] for place in order]
        rows = torch.cat([matrix(page, f"#tokens-row-{m}") for m in range(5)])
        assert same_digits(rows, x[order])
        page.locator("#tokens-swap").click()


def test_the_trained_models_tokens_and_rows_are_shown(open_page: Open):
    page = open_page("tokens").page
    texts = trained_model()["texts"]
    assert any(token.startswith("##") for text in texts for token in text["tokens"])
    for i, text in enumerate(texts):
        page.locator("#tokens-text").select_option(str(i))
        heads = page.locator("#tokens-trained tbody th").all_inner_texts()
        assert heads == [f"{token} → {row}" for token, row in zip(text["tokens"], text["ids"], strict=True)]
        assert same_digits(matrix(page, "#tokens-table"), numbers(text["vectors"]))


@pytest.mark.slow
def test_the_tokens_and_rows_are_those_of_the_bundled_model():
    subject = bundled()
    table = next(p for name, p in subject.module.named_parameters() if name.endswith("word_embeddings.weight"))
    assert table.shape == (30_522, 384)  # as the page says
    for text in trained_model()["texts"]:
        sample = subject.encode_sentence(text["text"])
        assert (list(sample.labels), sample.inputs[0][0].tolist()) == (text["tokens"], text["ids"])
        assert same_digits(numbers(text["vectors"]), table[text["ids"], :8].detach().double())


# ---------------------------------------------------------------- a query asks, a key offers


def kind_head(page: Page, words: list[str], kinds: list[str]) -> dict[str, torch.Tensor]:
    """The head that is written by hand, in torch."""
    weights = {name: numbers(values) for name, values in page.evaluate("window.orderproof.KIND_WEIGHTS").items()}
    is_kind = numbers([[float(kind == each) for each in KINDS] for kind in kinds])
    x = torch.cat([is_kind, words_of(page, 4, words)], dim=1)
    q, k, v = (x @ weights[name] for name in ("query", "key", "value"))
    s = q @ k.mT / 2
    return {"q": q, "k": k, "s": s, "a": s.softmax(-1), "z": s.softmax(-1) @ v}


def test_a_query_takes_the_words_that_offer_what_it_asks_for(open_page: Open):
    page = open_page("asks").page
    kinds = ["article", "noun", "verb", "article", "noun"]
    selected = page.locator("#asks-keys select").evaluate_all("all => all.map(menu => menu.value)")
    assert selected == kinds
    wanted = kind_head(page, WORDS, kinds)
    for query, asks in ((2, "noun (3)"), (1, "verb (2), adjective (3)")):
        choose(page, "asks-query", query)
        assert page.inner_text("#asks-for") == asks
        shares = page.locator("#asks-keys .share").all_inner_texts()
        assert same_digits([number(text) for text in shares], wanted["a"][query])
        assert same_digits(matrix(page, "#asks-sum"), wanted["z"][query][None])


def test_the_reader_states_the_kind_of_a_word_that_is_not_listed(open_page: Open):
    page = open_page("asks").page
    type_words(page, "we blorped wugs")
    choose(page, "asks-query", 1)
    assert page.inner_text("#asks-for") == "nothing"
    assert set(page.locator("#asks-keys .share").all_inner_texts()) == {"0.333"}
    page.locator("#asks-kind-1").select_option("verb")
    page.locator("#asks-kind-2").select_option("noun")
    wanted = kind_head(page, ["we", "blorped", "wugs"], ["other", "verb", "noun"])["a"][1]
    assert same_digits([number(text) for text in page.locator("#asks-keys .share").all_inner_texts()], wanted)
    assert wanted.argmax() == 2


def test_a_weight_opens_into_its_products_and_its_softmax(open_page: Open):
    page = open_page("asks").page
    wanted = kind_head(page, WORDS, ["article", "noun", "verb", "article", "noun"])
    bar = page.locator("#asks-keys li:nth-child(5) .weight")
    bar.focus()
    page.keyboard.press("Enter")
    assert bar.get_attribute("aria-expanded") == "true"
    assert page.evaluate("document.activeElement.classList.contains('weight')")
    q, k, s = wanted["q"][2], wanted["k"][4], wanted["s"][2]
    assert same_digits(products(page, "#asks-keys"), torch.stack([q, k, q * k]))
    ends = results(steps_of(page, "#asks-keys"))
    assert ends == {"product": 6, "score": 3, "grown": pytest.approx(float(s.exp().sum()), abs=5e-4), "weight": 0.465}
    page.keyboard.press("Enter")
    assert page.locator("#asks-keys .opened").count() == 0


@pytest.mark.parametrize("encoding", ["none", "sinusoidal", "rotary", "alibi", "t5"])
def test_the_opened_weights_of_the_seeded_head_are_those_of_torch(open_page: Open, encoding: str):
    page = open_page("attention").page
    choose(page, "attention-encoding", encoding)
    page.locator("#attention-swap").click()
    weights = page.evaluate("window.orderproof.HEAD_WEIGHTS")
    with torch.no_grad():
        wanted = bare_head(words_of(page, 4, WORDS)[SWAPPED], weights, encoding, causal=False)
    row = SWAPPED.index(2)
    for n in (0, 4):
        page.locator(f"#attention-terms li:nth-child({n + 1}) .weight").click()
        lines = steps_of(page, "#attention-terms")
        ends = results(lines)
        factors = products(page, "#attention-terms")
        assert (factors[0] * factors[1] - factors[2]).abs().max() < 2e-3  # of three rounded digits
        assert ends["product"] == pytest.approx(float(factors[2].sum()), abs=3e-3)
        assert ends["score"] == pytest.approx(float(wanted["s"][row, n]), abs=6e-4)
        assert ends["grown"] == pytest.approx(float(wanted["s"][row].exp().sum()), abs=6e-4)
        assert ends["weight"] == pytest.approx(float(wanted["a"][row, n]), abs=6e-4)
        added = re.search(r"√4 ([−+] [\d.]+) =", lines["score"])
        assert bool(added) == (encoding in ("alibi", "t5"))
        page.locator(f"#attention-terms li:nth-child({n + 1}) .weight").click()


# ---------------------------------------------------------------- replay and scrubbing


def test_the_arrows_are_scrubbed_between_both_sentences(open_page: Open):
    page = open_page("attention").page
    lines = "() => [...document.querySelectorAll('#attention-arrows .arrow line')].map(l => l.outerHTML).join()"
    drawn = {}
    for time in (0, 0.5, 1, 0):
        scrub(page, "attention-time", time)
        drawn.setdefault(time, page.evaluate(lines))
        assert drawn[time] == page.evaluate(lines)
    assert len(set(drawn.values())) == 3
    scrub(page, "attention-time", 1)
    assert page.inner_text("#attention-swap") == "Swap back"
    page.locator("#attention-swap").click()
    assert page.locator("#attention-time").input_value() == "0"


def written(page: Page, line: str) -> str:
    return page.locator(f"#equation-{line} span:not(.quiet):not(.unwritten)").evaluate_all(
        "all => all.map(part => part.textContent).join('')"
    )


def lane(page: Page, which: str) -> torch.Tensor:
    return torch.cat([matrix(page, f"#equation-{which}-rows li:nth-child({m + 1})") for m in range(3)])


def test_the_equation_is_written_part_by_part_and_in_words_first(open_page: Open):
    page = open_page("equation").page
    assert (written(page, "words"), written(page, "symbols")) == ("words", "X")
    found = []
    for time in range(6):
        scrub(page, "equation-time", time)
        found.append(written(page, "symbols").strip())
    assert found == ["X", "P X", "f(P X)", "f(P X)f(X)", "f(P X)P f(X)", "f(P X)=P f(X)"]
    assert written(page, "words") == "attend(move(words))=move(attend(words))"
    assert page.inner_text("#equation-time-play") == "Replay"
    slider = page.locator("#equation-time")
    slider.press("Home")
    assert written(page, "symbols") == "X"
    slider.press("ArrowRight")
    assert slider.input_value() == "0.05"
    assert page.evaluate("location.hash") == "#equation"


@pytest.mark.parametrize(("encoding", "sign"), [("none", "="), ("sinusoidal", "≠")])
def test_both_ways_of_the_equation_are_those_of_torch(open_page: Open, encoding: str, sign: str):
    page = open_page("equation").page
    choose(page, "equation-encoding", encoding)
    page.locator("#equation-time-play").click()
    x = words_of(page, 4, ["cat", "chased", "dog"])
    weights = page.evaluate("window.orderproof.HEAD_WEIGHTS")
    order = [2, 1, 0]
    assert same_digits(lane(page, "above"), bare_head(x[order], weights, encoding, causal=False)["z"])
    assert same_digits(lane(page, "below"), bare_head(x, weights, encoding, causal=False)["z"][order])
    assert sign in written(page, "symbols")
    assert same(page, "#equation-timeline") == (encoding == "none")


def test_the_three_words_are_the_readers(open_page: Open):
    page = open_page("equation").page
    first = "#equation-above .lane-rows:first-child .chip"
    for text, three in (("we saw her duck", "her saw we"), ("a a", "man bites dog"), ("x y x z", "z y x")):
        type_words(page, text)
        assert " ".join(page.locator(first).all_inner_texts()) == three


def test_the_equation_plays_unless_the_reader_prefers_less_motion(open_page: Open):
    for motion in (True, False):
        page = open_page("equation", motion=motion).page
        page.locator("#equation-time-play").click()
        page.wait_for_timeout(200)
        assert (0 < float(page.locator("#equation-time").input_value()) < 5) == motion
