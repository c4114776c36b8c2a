"""Axes of modules that take one number of tokens: from paths of the graph that keep the index of a token."""

import pytest
import torch
from torch import nn

from orderproof.auditing.api import audit_context
from orderproof.models import from_module

INPUTS = torch.randn(2, 7, 16)


class Fixed(nn.Module):
    """Adds a table of seven positions, and then does what a function says."""

    def __init__(self, then):
        super().__init__()
        self.positions = nn.Parameter(torch.randn(7, 16))
        self.over_tokens = nn.Linear(7, 7)
        self.to_slots = nn.Linear(7, 8)
        self.features = nn.Linear(16, 16)
        self.queries = nn.Parameter(torch.randn(8, 16))
        self.start = nn.Parameter(torch.randn(1, 1, 16))
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)
        self.then = then

    def forward(self, x):
        return self.then(self, x + self.positions)


def mixed(m, x):
    return m.over_tokens(x.transpose(1, 2)).transpose(1, 2)


def attended(m, q, x):
    return m.attention(q, x, x, need_weights=False)[0]


KNOWN = {
    "a residual mixer": (lambda m, x: x + mixed(m, x), "[batch, token, 16]"),
    "a gate over tokens": (lambda m, x: x * mixed(m, x).sigmoid(), "[batch, token, 16]"),
    "merged and split again": (lambda m, x: m.features(x.reshape(-1, 16)).view(2, 7, 16), "[batch, token, 16]"),
    "heads": (lambda m, x: attended(m, x, x), "[batch, token, 16]"),
    "an entry before": (lambda m, x: torch.cat([m.start.expand(2, -1, -1), x], 1), "[batch, 1+token, 16]"),
    "the same cut off": (lambda m, x: torch.cat([m.start.expand(2, -1, -1), x], 1)[:, 1:], "[batch, token, 16]"),
    "a mean": (lambda m, x: x.mean(1), "[batch, 16]"),
    "the first token": (lambda m, x: m.features(x[:, 0]), "[batch, 16]"),
    "learned queries": (lambda m, x: attended(m, m.queries.expand(2, -1, -1), x), "[batch, 8, 16]"),
    "fewer entries than tokens": (
        lambda m, x: nn.functional.linear(x.transpose(1, 2), m.queries[:4, :7]),
        "[batch, 16, 4]",
    ),
    "scores": (lambda m, x: (x @ x.mT).softmax(-1), "[batch, token, token]"),
}
UNKNOWN = {
    "a mixer": mixed,
    "a pooling matrix": lambda m, x: m.to_slots(x.transpose(1, 2)).transpose(1, 2),
    "a matrix on the left": lambda m, x: m.over_tokens.weight @ x,
    "a loop over tokens": lambda m, x: torch.cat([m.features(x[:, k])[:, None] for k in range(7)], 1),
    "flattened": lambda m, x: (x.flatten(1) @ torch.ones(112, 7))[..., None],
}


def axes_of(then):
    subject = from_module(Fixed(then), INPUTS, token_axis=1)
    assert subject.max_length == 7
    return audit_context(subject).output_axes["output"]


@pytest.mark.parametrize("name", KNOWN)
def test_axes_that_paths_lead_to_are_known(name):
    then, text = KNOWN[name]
    assert axes_of(then).text == f"{text}, from the graph"


@pytest.mark.parametrize("name", UNKNOWN)
def test_axes_behind_a_matrix_over_tokens_are_unknown(name):
    assert "a call with 8 tokens failed" in axes_of(UNKNOWN[name]).unknown_tokens
