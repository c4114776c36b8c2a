"""How the tests act on the page and read its numbers."""

from __future__ import annotations

from typing import Any

import torch
from playwright.sync_api import Page

from orderproof.blocks import Transformer
from tests.explain.examples import numbers

ROUNDING = 1e-12


def number(text: str) -> float:
    return float(text.replace("−", "-").replace("-∞", "-inf"))


def shown(page: Page, selector: str) -> list[float]:
    return [number(text) for text in page.locator(selector).all_inner_texts()]


def matrix(page: Page, selector: str) -> torch.Tensor:
    return torch.tensor([[number(text) for text in row] for row in texts(page, f"{selector} tbody tr")])


def texts(page: Page, selector: str) -> list[list[str]]:
    """The texts of the cells of each row, in one call to the browser."""
    script = "rows => rows.map(row => [...row.querySelectorAll('td')].map(cell => cell.innerText))"
    return page.locator(selector).evaluate_all(script)


def choose(page: Page, panel: str, **choices: Any) -> None:
    for name, value in choices.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        page.locator(f"#{panel}-settings input[name='{panel}-{name}'][value='{text}']").check()


def type_words(page: Page, text: str) -> None:
    page.locator("#typed").fill(text)


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
