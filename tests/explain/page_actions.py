"""How the tests act on the page and read its numbers."""

from __future__ import annotations

from typing import Any

import torch
from playwright.sync_api import Page

from orderproof.blocks import Transformer
from tests.explain.examples import numbers

ROUNDING = 1e-12
STEPS = (
    "sentences", "tokens", "asks", "qkv", "attention", "equation", "rows", "norm", "mean", "positions", "sinusoidal",
    "learned", "rope", "alibi", "t5", "break", "reverse", "mask", "next-word", "minilm", "heads", "lab", "theorem",
    "model", "claims", "end",
)  # fmt: skip


def number(text: str) -> float:
    return float(text.replace("−", "-").replace("hidden by the mask", "-inf"))


def matrix(page: Page, selector: str) -> torch.Tensor:
    """The numbers of a matrix, as hover and focus show them."""
    script = "rows => rows.map(row => [...row.querySelectorAll('td')].map(cell => cell.ariaLabel))"
    rows = page.locator(f"{selector} tbody tr").evaluate_all(script)
    return numbers([[number(label.rsplit(": ", 1)[1]) for label in row] for row in rows])


def go(page: Page, step: str) -> None:
    page.evaluate("step => { location.hash = step }", step)
    wait_for_step(page, step)


def wait_for_step(page: Page, step: str) -> None:
    # The page forbids `eval`, which `wait_for_function` needs if it has to wait.
    page.locator(f"#{step}:not([hidden])").wait_for(state="attached")


def choose(page: Page, name: str, value: Any) -> None:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    page.locator(f"#{name} input[value='{text}']").check()


def type_words(page: Page, text: str) -> None:
    page.evaluate("document.getElementById('other-words').open = true")
    page.locator("#typed").fill(text)


def move(page: Page, button: str) -> None:
    page.locator("#moves").get_by_role("button", name=button, exact=True).click()


def scrub(page: Page, slider: str, time: float) -> None:
    """Set a slider as a reader does."""
    page.locator(f"#{slider}").fill(str(time))


def abilities(page: Page, selector: str) -> dict[str, bool]:
    """What the page says that a model can do, by law."""
    script = "all => all.map(part => [part.dataset.law, part.querySelector('.can, .cannot').className])"
    return {law: kind == "can" for law, kind in page.locator(f"{selector} [data-law]").evaluate_all(script)}


def same(page: Page, selector: str) -> bool:
    """Whether a step says that two vectors are the same."""
    return page.locator(f"{selector} .comparison").get_attribute("data-same") == "true"


def words_of(page: Page, width: int, words: list[str]) -> torch.Tensor:
    script = "([words, width]) => words.map(word => window.orderproof.wordVector(word, width))"
    return numbers(page.evaluate(script, [words, width]))


def same_digits(found: list[float] | torch.Tensor, wanted: torch.Tensor, digits: int = 3) -> bool:
    found = torch.as_tensor(found, dtype=torch.float64)
    same = (found == wanted) | ((found - wanted).abs() <= 0.5 * 10**-digits + 1e-9)  # minus infinity is itself
    return found.shape == wanted.shape and bool(same.all())


def run(model: Transformer, x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return model(x[None])[0]
