"""Models without positions never score above the ceiling on a test set with every row."""

from __future__ import annotations

import pytest
import torch

from orderproof.blocks.transformer import Transformer
from orderproof.lab.question import UNSCORED
from orderproof.lab.registry import make_question

STEPS = 100


def best_score(name: str, settings: dict, length: int, *, layers: int, causal: bool) -> tuple[float, float]:
    """The best score of a model without positions at any step of its training on every row, and the ceiling."""
    question = make_question(name, settings)
    rows = question.test_batch(length, 10_000, torch.Generator())
    assert len(rows.tokens) == len(list(question.enumerate_rows(length)))
    model = Transformer(16, 2, layers, encoding="none", causal=causal, vocabulary=question.vocabulary).double()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    scored = rows.targets != UNSCORED
    history = []
    for _ in range(STEPS):
        scores = model(rows.tokens)
        right = scores.argmax(-1) == rows.targets
        whole = question.measure == "exact_match"
        history.append(float(((right | ~scored).all(1) if whole else right[scored]).double().mean()))
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(scores.transpose(1, 2), rows.targets, ignore_index=UNSCORED).backward()
        optimizer.step()
    ceiling = question.ceiling(length)
    assert ceiling is not None
    return max(history), float(ceiling.value)


@pytest.mark.parametrize(
    ("name", "settings", "length"),
    [("even_pairs", {}, 5), ("reverse_string", {}, 5), ("bucket_sort", {"letters": 3}, 3)],
)
def test_an_encoder_without_positions_reaches_and_does_not_exceed_the_ceiling(name, settings, length):
    found, ceiling = best_score(name, settings, length, layers=2, causal=False)
    assert found == pytest.approx(ceiling, abs=1e-12)


def test_one_decoder_layer_stays_below_the_ceiling_and_two_exceed_it():
    settings = {"letters": 2}
    one, ceiling = best_score("copy", settings, 3, layers=1, causal=True)
    two, _ = best_score("copy", settings, 3, layers=2, causal=True)
    assert one <= ceiling < two


def test_an_invariant_model_with_any_weights_scores_exactly_the_ceiling_of_a_balanced_question():
    question = make_question("who_did_what", {"nouns": 4, "verbs": 2})
    rows = question.test_batch(6, 1, torch.Generator())
    for seed in range(5):
        torch.manual_seed(seed)
        model = Transformer(16, 2, 2, encoding="none", causal=False, vocabulary=question.vocabulary).double()
        answers = model(rows.tokens)[:, -1, :2].argmax(-1)
        assert float((answers == rows.targets[:, -1]).double().mean()) == 0.5
