"""One pass over the right row tells what a decoder would write by itself."""

from __future__ import annotations

import pytest
import torch

from orderproof.blocks.transformer import Transformer
from orderproof.lab.question import UNSCORED
from orderproof.lab.registry import make_question
from orderproof.lab.transcription_question import TranscriptionQuestion


def small_question(name: str) -> TranscriptionQuestion:
    found = make_question(name, {"letters": 3})
    assert isinstance(found, TranscriptionQuestion)
    return found


def in_one_pass(model: Transformer, batch) -> torch.Tensor:
    predicted = model(batch.tokens).argmax(-1)
    return ((predicted == batch.targets) | (batch.targets == UNSCORED)).all(1)


def greedily(model: Transformer, batch, length: int) -> torch.Tensor:
    """Whether greedy decoding, with the model's own tokens as prefix, produces the targets."""
    row = batch.tokens[:, : length + 1]  # x and SEP
    for _ in range(length + 1):
        row = torch.cat([row, model(row)[:, -1].argmax(-1, keepdim=True)], dim=1)
    return (row[:, length + 1 :] == batch.targets[:, length:]).all(1)


@pytest.mark.parametrize("name", ["copy", "reverse"])
def test_exact_match_in_one_pass_is_equivalent_to_greedy_decoding(name):
    question, length = small_question(name), 4
    model = Transformer(16, 2, 2, encoding="rotary", causal=True, vocabulary=question.vocabulary)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    generator = torch.Generator().manual_seed(0)
    test = question.test_batch(length, 81, generator)
    rates = []
    for step in range(41):
        if step % 4 == 0:
            with torch.no_grad():
                once, alone = in_one_pass(model, test), greedily(model, test, length)
            assert torch.equal(once, alone)
            rates.append(float(once.double().mean()))
        batch = question.sample(length, 32, generator)
        loss = torch.nn.functional.cross_entropy(
            model(batch.tokens).transpose(1, 2), batch.targets, ignore_index=UNSCORED
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert any(0 < rate < 1 for rate in rates), f"{rates}: nothing between all and none was compared"


def test_a_row_is_the_string_the_separator_and_the_answer():
    batch = small_question("reverse").build(torch.tensor([[0, 1, 2]]), 3)
    assert batch.tokens.tolist() == [[0, 1, 2, 3, 2, 1, 0]]
    assert batch.targets.tolist() == [[UNSCORED] * 3 + [2, 1, 0, 4]]


def test_a_repeated_letter():
    batch = make_question("copy", {"same": True}).sample(5, 50, torch.Generator().manual_seed(0))
    assert bool((batch.tokens[:, :5] == batch.tokens[:, :1]).all())
    assert len(batch.tokens[:, 0].unique()) > 10


def test_writing_in_ascending_order_attains_the_ceiling():
    question, length = small_question("copy"), 4
    for row in question.test_batch(length, 81, torch.Generator()).tokens.tolist():
        bag, written = sorted(row[:length]), []
        for _ in range(length):
            last = written[-1] if written else -1
            seen = [bag.count(letter) + written.count(letter) for letter in range(3)]
            before = len(written) - sum(seen[:last]) // 2 if written else 0
            again = written and before < seen[last] - before
            written.append(last if again else next(v for v in range(last + 1, 3) if seen[v]))
        assert written == bag
