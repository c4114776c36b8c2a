"""Real models without positions: what is blind never scores above the ceiling, on a test set of every row."""

from __future__ import annotations

import pytest
import torch

from orderproof.blocks.transformer import Transformer
from orderproof.lab.asking import make
from orderproof.lab.question import UNSCORED

STEPS = 100


def best(name: str, settings: dict, length: int, *, layers: int, causal: bool) -> tuple[float, float]:
    """The best score of a model without positions at any step of its training on every row, and the ceiling."""
    question = make(name, settings)
    rows = question.test(length, 10_000, torch.Generator())
    assert len(rows.tokens) == len(list(question.everything(length)))
    model = Transformer(16, 2, layers, encoding="none", causal=causal, vocabulary=question.vocabulary).double()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    scored = rows.targets != UNSCORED
    found = []
    for _ in range(STEPS):
        said = model(rows.tokens)
        right = said.argmax(-1) == rows.targets
        whole = question.measure == "exact_match"
        found.append(float(((right | ~scored).all(1) if whole else right[scored]).double().mean()))
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(said.transpose(1, 2), rows.targets, ignore_index=UNSCORED).backward()
        optimizer.step()
    ceiling = question.ceiling(length)
    assert ceiling is not None
    return max(found), float(ceiling.value)


@pytest.mark.parametrize(
    ("name", "settings", "length"),
    [("even_pairs", {}, 5), ("reverse_string", {}, 5), ("bucket_sort", {"letters": 3}, 3)],
)
def test_an_encoder_without_positions_reaches_the_ceiling_and_no_more(name, settings, length):
    found, ceiling = best(name, settings, length, layers=2, causal=False)
    assert found == pytest.approx(ceiling, abs=1e-12)


def test_one_layer_of_a_decoder_stays_below_and_two_do_not():
    settings = {"letters": 2}
    one, ceiling = best("copy", settings, 3, layers=1, causal=True)
    two, _ = best("copy", settings, 3, layers=2, causal=True)
    assert one <= ceiling < two


def test_on_a_balanced_test_set_a_blind_model_scores_exactly_the_ceiling_whatever_its_weights():
    question = make("who_did_what", {"nouns": 4, "verbs": 2})
    rows = question.test(6, 1, torch.Generator())
    for seed in range(5):
        torch.manual_seed(seed)
        model = Transformer(16, 2, 2, encoding="none", causal=False, vocabulary=question.vocabulary).double()
        said = model(rows.tokens)[:, -1, :2].argmax(-1)
        assert float((said == rows.targets[:, -1]).double().mean()) == 0.5
