"""Small decoders for the step `#next-word` of `orderproof explain`: `explain/static/next_token.json`.

    python tools/next_token.py           train them and write the file (a minute)

Each sentence is "the A chased the B so the B ran". A decoder learns to give the next word after every
word. After "so the" the answer depends on the order of A and B.
"""

from __future__ import annotations

import itertools
import json
from typing import Any

import torch
from torch import Tensor, nn

from orderproof.blocks import Transformer
from orderproof.explain.page import STATIC
from orderproof.report.file_output import write_file

COMMAND = "python tools/next_token.py"
TARGET = STATIC / "next_token.json"
ANIMALS, VERBS = ("cat", "dog", "fox", "owl", "mouse"), ("chased", "saw", "bit")
VOCABULARY = ("the", "so", "ran", *ANIMALS, *VERBS)
WIDTH, HEADS, HIDDEN, LENGTH = 8, 4, 16, 8
KINDS = (("sinusoidal", 1), ("none", 1), ("none", 2))  # encoding, layers
STEPS, RATE = 3000, 0.01
DIGITS = 4


class NextToken(nn.Module):
    """tokens [batch, token] -> logits [batch, token, word]."""

    def __init__(self, encoding: str, layers: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(VOCABULARY), WIDTH)
        self.decoder = Transformer(WIDTH, HEADS, layers, encoding=encoding, causal=True, length=LENGTH, hidden=HIDDEN)
        self.unembedding = nn.Linear(WIDTH, len(VOCABULARY), bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        logits: Tensor = self.unembedding(self.decoder(self.embedding(tokens)))
        return logits


def sentences() -> Tensor:
    """Every sentence as numbers of words [sentence, 9]."""
    made = [
        ("the", a, verb, "the", b, "so", "the", b, "ran")
        for (a, b), verb in itertools.product(itertools.permutations(ANIMALS, 2), VERBS)
    ]
    return torch.tensor([[VOCABULARY.index(word) for word in words] for words in made])


def trained(encoding: str, layers: int) -> tuple[NextToken, float]:
    """A decoder after training on all sentences, and its loss [nats per word]."""
    torch.manual_seed(0)
    model, words = NextToken(encoding, layers), sentences()
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    for _ in range(STEPS):
        loss = nn.functional.cross_entropy(model(words[:, :-1]).flatten(0, 1), words[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model, float(loss.detach())


def results() -> dict[str, Any]:
    """The content of the file."""
    models = []
    for encoding, layers in KINDS:
        model, loss = trained(encoding, layers)
        weights = {name: rounded(value) for name, value in model.state_dict().items() if "encoding" not in name}
        models.append({"encoding": encoding, "layers": layers, "loss": round(loss, DIGITS), "weights": weights})
        print(f"{encoding}, layers {layers}: loss {loss:.4f}")
    return {"command": COMMAND, "vocabulary": VOCABULARY, "animals": ANIMALS, "verbs": VERBS, "models": models}


def rounded(values: Tensor) -> Any:
    return json.loads(json.dumps(values.tolist()), parse_float=lambda text: round(float(text), DIGITS))


if __name__ == "__main__":
    write_file(json.dumps(results(), separators=(",", ":")) + "\n", TARGET)
    print(f"written: {TARGET.name}")
