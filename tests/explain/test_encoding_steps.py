"""The steps of the encodings: every number, ability, picture and line of code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from orderproof import encodings
from orderproof.blocks import Transformer
from orderproof.positions import arange
from tests.browser import CHROMIUM, WHY_NOT
from tests.explain.conftest import Open
from tests.explain.examples import ENCODINGS, in_torch, laws_in_torch, numbers
from tests.explain.page_actions import (
    ROUNDING,
    abilities,
    choose,
    matrix,
    move,
    number,
    run,
    same,
    same_digits,
    type_words,
    words_of,
)

pytestmark = [pytest.mark.skipif(CHROMIUM is None, reason=WHY_NOT), pytest.mark.slow]

ENCODING_PAGE = Path(__file__).parents[2] / "docs/reference/encodings.md"
STEPS = {"sinusoidal": "sinusoidal", "learned": "learned", "rope": "rotary", "alibi": "alibi", "t5": "t5"}
WORDS = ["the", "cat", "chased", "the", "dog"]


def proved_laws() -> dict[tuple[str, bool], str]:
    """The audited verdicts of two layers, P or R for each law of the table of all encodings, by mask."""
    row = re.compile(r"^\| `(\w+)` \|[^|]*\|[^|]*\|[^|]*\| (\w+) \| (\w+) \|", re.MULTILINE)
    found = row.findall(ENCODING_PAGE.read_text(encoding="utf-8"))
    return {(name, causal): both[causal] for name, *both in found for causal in (False, True)}


@pytest.mark.parametrize(("causal", "layers"), [(False, 1), (False, 2), (True, 1), (True, 2)])
def test_the_table_of_abilities_agrees_with_torch_and_with_proofs(open_page: Open, causal: bool, layers: int):
    page = open_page("positions").page
    choose(page, "positions-causal", causal)
    choose(page, "positions-layers", layers)
    page.evaluate("document.querySelector('#positions details').open = true")
    weights, x, others = page.evaluate(
        "['WEIGHTS', 'PROBE_TOKENS', 'REPLACEMENT_TOKENS'].map(name => window.orderproof[name])"
    )
    head = page.locator("#abilities-table thead th").all_inner_texts()
    assert head[1:3] == ["tells orders apart", "tells a sentence from its reverse"]
    for encoding in ENCODINGS:
        wanted = laws_in_torch(in_torch(weights, encoding, causal=causal, layers=layers), numbers(x), numbers(others))
        able = abilities(page, f"#abilities-table tr[data-encoding={encoding}]")
        assert able == {law: (value > ROUNDING) != (law == "causal") for law, value in wanted.items()}
        for law, value in wanted.items():
            shown = number(page.inner_text(f"#abilities-numbers tr[data-encoding={encoding}] [data-law={law}]"))
            assert shown <= ROUNDING if value <= ROUNDING else shown == pytest.approx(value, rel=0.06)
        if layers == 2:
            laws = ("permutation", "prompt_permutation", "reversal", "causal")
            proved = "".join("P" if able[law] == (law == "causal") else "R" for law in laws)
            assert proved == proved_laws()[encoding, causal]


def test_what_a_model_can_do_is_green_and_what_it_cannot_is_not_red(open_page: Open):
    page = open_page("positions").page
    colour = "part => getComputedStyle(part).color"
    can, cannot = (page.locator(f"#abilities-table .{kind}").first.evaluate(colour) for kind in ("can", "cannot"))
    red, green, _ = (int(value) for value in re.findall(r"\d+", can))
    assert green > 2 * red
    assert len({*re.findall(r"\d+", cannot)}) > 1
    assert max(map(int, re.findall(r"\d+", cannot))) - min(map(int, re.findall(r"\d+", cannot))) < 30  # grey
    assert not re.search(r"HOLDS|FAILS|REFUTED", page.inner_text("#positions"))


@pytest.mark.parametrize("step", STEPS)
def test_each_encoding_is_switched_on_and_tells_the_sentences_apart(open_page: Open, step: str):
    page = open_page(step).page
    x = words_of(page, 8, WORDS)
    weights = page.evaluate("window.orderproof.WEIGHTS")
    for encoding in (STEPS[step], "none"):
        model = in_torch(weights, encoding, causal=False, layers=1)
        first, second = (run(model, x[order]).mean(0, keepdim=True) for order in ([0, 1, 2, 3, 4], [0, 4, 2, 3, 1]))
        assert same_digits(matrix(page, f"#{step}-first"), first)
        assert same_digits(matrix(page, f"#{step}-second"), second)
        on = encoding != "none"
        assert same(page, f"#{step}-result") == (not on)
        told = {"permutation": on, "reversal": on and encoding != "alibi"}
        assert abilities(page, f"#{step}-result") == told
        assert f"is {'on' if on else 'off'}" in page.inner_text(f"#{step}-switch")
        page.locator(f"#{step}-on").uncheck()


def test_the_pictures_are_those_of_orderproofs_encodings(open_page: Open):
    page = open_page("sinusoidal").page
    weights = page.evaluate("window.orderproof.WEIGHTS")
    stripes = encodings.Sinusoidal(48).embed(torch.zeros(1, 36, 48, dtype=torch.float64), arange(36))[0]
    assert same_digits(matrix(page, "#picture-stripes"), stripes[:, :16].T)
    assert same_digits(matrix(page, "#picture-table"), numbers(weights["learned.weight"]))
    ramp = encodings.ALiBi(4).bias(arange(8), arange(8), dtype=torch.float64)[0, 0]
    assert same_digits(matrix(page, "#picture-alibi"), ramp, 2)
    t5 = encodings.T5Bias(4, bidirectional=True).double()
    t5.load_state_dict({"weight": numbers(weights["t5.weight"])})
    with torch.no_grad():
        assert same_digits(matrix(page, "#picture-t5"), t5.bias(arange(8), arange(8), dtype=torch.float64)[0, 0], 2)
    distances = list(range(-300, 301))
    buckets = page.evaluate("all => all.map(window.orderproof.t5Bucket)", distances)
    assert buckets == t5.bucket(torch.tensor(distances)).tolist()


def test_the_score_of_ropes_hands_depends_on_their_distance_only(open_page: Open):
    page = open_page("rope").page
    query, key = (numbers(page.evaluate(f"window.orderproof.ROPE_{name}")) for name in ("QUERY", "KEY"))
    for m, n in ((2, 5), (9, 12), (0, 0), (20, 28)):
        rows = torch.zeros(1, 1, 29, 8, dtype=torch.float64)
        rows[0, 0, m], rows[0, 0, n] = query, key
        q, k = encodings.Rotary(8).rotate(query.expand_as(rows), key.expand_as(rows), arange(29))
        score = page.evaluate("([m, n]) => window.orderproof.ropeScore(m, n)", [m, n])
        assert score == pytest.approx(float(q[0, 0, m] @ k[0, 0, n]) / 8**0.5, abs=1e-12)
    shown = page.inner_text("#rope-score")
    page.locator("#rope-shift").fill("17")
    assert page.inner_text("#rope-score") == shown
    page.locator("#rope-distance").fill("4")
    assert page.inner_text("#rope-score") != shown


@pytest.mark.parametrize("encoding", STEPS.values())
def test_a_sentence_and_its_reverse_are_one_vector_with_alibi_only(open_page: Open, encoding: str):
    page = open_page("reverse").page
    choose(page, "reverse-encoding", encoding)
    type_words(page, "dog bites man today")
    move_free = page.locator("#moves").is_visible()  # this step has one sentence
    x = words_of(page, 8, ["dog", "bites", "man", "today"])
    model = in_torch(page.evaluate("window.orderproof.WEIGHTS"), encoding, causal=False, layers=1)
    assert same_digits(matrix(page, "#reverse-first"), run(model, x).mean(0, keepdim=True))
    assert same_digits(matrix(page, "#reverse-second"), run(model, x.flip(0)).mean(0, keepdim=True))
    assert same(page, "#reverse-result") == (encoding == "alibi")
    assert abilities(page, "#reverse-result") == {"permutation": True, "reversal": encoding != "alibi"}
    if encoding in ("alibi", "t5"):
        before, after = (matrix(page, f"#reverse-bias-{side}") for side in ("before", "after"))
        assert torch.equal(after, before.flip(0, 1))
        assert torch.equal(after, before) == (encoding == "alibi")
    assert not move_free
    type_words(page, "a b a")
    assert page.inner_text("#reverse-result .problem").startswith("This sentence is its own reverse")


def test_swapping_and_the_table_do_not_contradict_each_other_for_alibi(open_page: Open):
    page = open_page("alibi").page
    type_words(page, "dog bites man today")
    assert not same(page, "#alibi-result")
    move(page, "reverse")
    assert same(page, "#alibi-result")
    assert abilities(page, "#alibi-result") == {"permutation": True, "reversal": False}


@pytest.mark.parametrize("step", STEPS)
def test_the_code_of_each_encoding_runs(open_page: Open, step: str):
    page = open_page(step).page
    page.evaluate("step => { document.getElementById(`${step}-code`).parentElement.open = true }", step)
    encoding = STEPS[step]
    added = page.inner_text(f"#{step}-code .code-model .added").removeprefix("+").strip()
    names: dict[str, Any] = {"Transformer": Transformer}
    exec(added, names)
    assert (names["model"].encoding.name, names["model"].stack.causal) == (encoding, False)
    assert len(names["model"].stack.layers) == 2
    inside = page.locator(f"#{step}-code .code-inside span:not(.removed)").all_inner_texts()
    assert_inside_runs([line.lstrip("+").strip() for line in inside], encoding)


def assert_inside_runs(lines: list[str], encoding: str) -> None:
    """The lines of the page do in one head what orderproof's attention does."""
    torch.manual_seed(0)
    x, places = torch.randn(1, 5, 8), arange(5)
    q, k, v = torch.randn(3, 1, 4, 5, 8).unbind()
    names: dict[str, Any] = {
        **vars(encodings), "embed": lambda tokens: tokens, "tokens": x, "positions": places, "width": 8, "length": 8,
        "q": q, "k": k, "d": 8, "heads": 4, "t5": encodings.T5Bias(4, bidirectional=True),
    }  # fmt: skip
    exec("\n".join(lines), names)
    if "x" in names:
        wanted = encodings.get(encoding)(8) if encoding == "sinusoidal" else None
        assert names["x"].shape == x.shape
        assert wanted is None or torch.equal(names["x"], wanted.embed(x, places))
        return
    made = {"rotary": lambda: encodings.Rotary(8), "alibi": lambda: encodings.ALiBi(4), "t5": lambda: names["t5"]}
    wanted = encodings.attention(q, k, v, encoding=made[encoding](), q_positions=places, causal=False)
    torch.testing.assert_close(names["scores"].softmax(-1) @ v, wanted)
