"""Claim 5: the scores of *cat* are the same set in both sentences, and so it gets the same representation.

In "the cat chased the dog" and "the dog chased the cat" the word *cat* asks the same words, in another order:

    S' = P S P^T       its row of scores moves to another row, and holds the same numbers in other columns
    z = sum_n softmax_n(s) v_n       each number comes with the value of its own word, so the sum is the same

"The same set" alone is not enough: the same numbers with their values exchanged give another sum. What matters is that
each score stays with its word. So the representation of *cat* after any number of layers is the same in both sentences,
and a model that has only this cannot tell who chased whom.
Source: Vaswani et al. 2017, "Attention Is All You Need", arXiv:1706.03762, section 3.5; elementary.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from orderproof.claims.bench import Bench
from orderproof.claims.by_law import ByLaw
from orderproof.claims.by_numbers import apart, judged, made_in_float64
from orderproof.claims.claim import Claim, Ground, Make, Outcome
from orderproof.claims.models import (
    WORDS,
    AttentionSteps,
    Numbered,
    numbered_steps,
    reader,
    reader_with_positions,
    seeded,
    sentences,
    steps,
    vectors,
)  # fmt: skip
from orderproof.report import words

CAT = WORDS.index("cat")


class OneAttention(nn.Module):
    """Four words as vectors, and one attention over a sentence of them, step by step."""

    def __init__(self, *, numbered: bool = False) -> None:
        super().__init__()
        self.words = nn.Embedding(len(WORDS), vectors().shape[-1])
        steps = AttentionSteps()
        self.steps: nn.Module = Numbered(steps) if numbered else steps

    def forward(self, tokens: Tensor) -> dict[str, Tensor]:
        """The scores of every word with every word."""
        return {"S": self.steps(self.words(tokens))["S"]}


class Mispaired(nn.Module):
    """A sum of values weighted by the softmax of scores, both given: [score, value] in each row of the input."""

    def forward(self, x: Tensor) -> Tensor:
        """The weighted sum."""
        return torch.softmax(x[..., 0], -1) @ x[..., 1]


def scores() -> tuple[nn.Module, Tensor]:
    """One attention over words, without positions: its scores."""
    return seeded(OneAttention), sentences()


def scores_with_positions() -> tuple[nn.Module, Tensor]:
    """One attention over words, the number of its place added to each word's vector: its scores."""
    return seeded(lambda: OneAttention(numbered=True)), sentences()


def scores_alone() -> tuple[Tensor, Tensor]:
    """Two scores and two values; the scores stay and the values are exchanged."""
    return torch.tensor([[1.0, 1.0], [2.0, 0.0]]), torch.tensor([[1.0, 0.0], [2.0, 1.0]])


def scores_with_their_values() -> tuple[Tensor, Tensor]:
    """Two scores and two values, exchanged together."""
    return torch.tensor([[1.0, 1.0], [2.0, 0.0]]), torch.tensor([[2.0, 0.0], [1.0, 1.0]])


@torch.no_grad()
def same_scores_of_cat(make: Make, bench: Bench) -> Outcome:
    """Whether the scores of *cat*, sorted, are the same numbers in both sentences."""
    module, tokens = made_in_float64(make)
    rows = [row[tuple(line).index(CAT)] for row, line in zip(module(tokens)["S"], tokens.tolist(), strict=True)]
    first, second = (row.sort().values for row in rows)
    lines = tuple(
        f"{' '.join(WORDS[w] for w in line)}: " + " ".join(f"{float(s):.4f}" for s in row)
        for line, row in zip(tokens.tolist(), rows, strict=True)
    )
    gap = apart(first, second)
    return judged(gap, (*lines, f"sorted, they differ by {words.size(gap)}"))


@torch.no_grad()
def same_vector_of_cat(make: Make, bench: Bench) -> Outcome:
    """Whether *cat* has the same vector in both sentences."""
    module, tokens = made_in_float64(make)
    first, second = (row[line.index(CAT)] for row, line in zip(module(tokens)["words"], tokens.tolist(), strict=True))
    gap = apart(first, second)
    return judged(gap, (f"the two vectors of cat differ by {words.size(gap)}",))


def same_sum(make: Make, bench: Bench) -> Outcome:
    """Whether two lists of [score, value] with the same scores give the same weighted sum."""
    pairs = [x.double() for x in make()]
    sums = [Mispaired()(x) for x in pairs]
    lines = [
        f"scores {x[:, 0].tolist()}, values {x[:, 1].tolist()}: {float(y):.4f}"
        for x, y in zip(pairs, sums, strict=True)
    ]
    return judged(apart(*sums), tuple(lines))


CLAIM = Claim(
    number=5,
    name="same_scores",
    statement=(
        "The attention scores for cat are the same set in 'the cat chased the dog' and 'the dog chased the cat', "
        "so cat gets the same representation."
    ),
    documented="proved",
    exact=(
        "Without positions the scores of a word are the same numbers, in another order, and each comes with the "
        "same word's value; so the word's vector is the same, after every number of layers. The same set of "
        "scores alone would not be enough: with other values beside them the sum is another."
    ),
    conditions=(
        "no positions and no causal mask",
        "the sentences hold the same words, each as often",
        "for every weight; equal over the real numbers, in floating point up to rounding",
    ),
    source="Vaswani et al. 2017, arXiv:1706.03762, section 3.5",
    grounds=(
        Ground(
            what="permute the words, and rows and columns of the scores are permuted alike: S' = P S P^T",
            subject=steps, test=ByLaw("order_blind", "S"), expected="holds", asserted="holds", broken=numbered_steps,
        ),
        Ground(
            what="permute the words, and each keeps its vector",
            subject=reader, test=ByLaw("order_blind", "words"), expected="holds", asserted="holds",
            broken=reader_with_positions,
        ),
        Ground(
            what="in the two sentences the scores of cat are the same numbers", subject=scores, test=same_scores_of_cat,
            expected="holds", broken=scores_with_positions,
        ),
        Ground(
            what="in the two sentences cat has the same vector", subject=reader, test=same_vector_of_cat,
            expected="holds", broken=reader_with_positions,
        ),
        Ground(
            what="the same set of scores gives the same weighted sum, whatever the values beside them",
            subject=scores_alone, test=same_sum, expected="fails", broken=scores_with_their_values,
        ),
    ),
)  # fmt: skip
