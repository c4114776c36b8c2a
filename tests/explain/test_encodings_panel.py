"""The panel of encodings: every number of its table, and every line of its code."""

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
from tests.explain.page_actions import ROUNDING, choose, number

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=WHY_NOT)

README = Path(__file__).parents[2] / "README.md"


def readme_fingerprints() -> dict[tuple[str, int, str], list[bool]]:
    """The proved table of the README: whether each of the four laws holds."""
    row = re.compile(
        r"^\| (bidirectional|causal), (\d) layers? \| ([^|]+) \| (\w+) \| (\w+) \| (\w+) \| (\w+) \|$", re.MULTILINE
    )
    found = row.findall(README.read_text(encoding="utf-8"))
    return {
        (mask, int(layers), name.split(",")[0].strip()): [verdict == "proved" for verdict in verdicts]
        for mask, layers, name, *verdicts in found
    }


@pytest.mark.parametrize(("causal", "layers"), [(False, 1), (False, 2), (True, 1), (True, 2)])
def test_the_table_of_abilities_agrees_with_torch_and_with_proofs(open_page: Open, causal: bool, layers: int):
    page = open_page().page
    choose(page, "encodings", causal=causal, layers=layers)
    weights, x, others = page.evaluate(
        "['WEIGHTS', 'PROBE_TOKENS', 'REPLACEMENT_TOKENS'].map(name => window.orderproof[name])"
    )
    proved = readme_fingerprints()
    compared = 0
    for encoding in ENCODINGS:
        wanted = laws_in_torch(in_torch(weights, encoding, causal=causal, layers=layers), numbers(x), numbers(others))
        script = "cells => cells.map(c => [c.dataset.law, ...[...c.children].map(part => part.innerText)])"
        cells = page.locator(f"tr[data-encoding={encoding}] td").evaluate_all(script)
        assert [cell[0] for cell in cells] == list(wanted)
        holds = []
        for (law, verdict, size), value in zip(cells, wanted.values(), strict=True):
            holds.append((verdict == "yes") == (law == "causal"))
            shown = number(size)
            assert shown <= ROUNDING if value <= ROUNDING else shown == pytest.approx(value, rel=0.06)
        key = ("causal" if causal else "bidirectional", layers, encoding)
        if key in proved:
            compared += 1
            assert holds == proved[key], key
    assert compared == {(False, 1): 0, (False, 2): 6, (True, 1): 1, (True, 2): 6}[causal, layers]


def test_the_highlights_have_their_numbers(open_page: Open):
    page = open_page().page
    words = re.compile(r"(yes|no)\s+([\d.e+-]*\d)")
    (orders, _), (reverse, rounding) = words.findall(page.inner_text("#alibi-reversal"))
    assert (orders, reverse) == ("yes", "no")
    assert float(rounding) <= ROUNDING
    (one, rounding), (two, size) = words.findall(page.inner_text("#nope-layers"))
    assert (one, two) == ("no", "yes")
    assert float(rounding) <= ROUNDING < float(size)


@pytest.mark.parametrize("encoding", [name for name in ENCODINGS if name != "none"])
def test_the_code_of_each_encoding_runs(open_page: Open, encoding: str):
    page = open_page().page
    choose(page, "encodings", encoding=encoding, causal=True, layers=2)
    added = page.inner_text("#code-model .added").removeprefix("+").strip()
    names: dict[str, Any] = {"Transformer": Transformer}
    exec(added, names)
    assert (names["model"].encoding.name, names["model"].stack.causal) == (encoding, True)
    assert len(names["model"].stack.layers) == 2
    lines = [line.lstrip("+").strip() for line in page.locator("#code-inside span:not(.removed)").all_inner_texts()]
    assert_inside_runs(lines, encoding)


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
