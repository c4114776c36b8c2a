"""Claim 8: a mean-pooled model without positions is a bag of words.

    mean(f(P X)) = mean(P f(X)) = mean(f(X))

The rows of the output are permuted, and a mean does not mind. So a sentence's vector depends on which words stand in it
and how often, and on nothing else: n different words have n! orders and one vector. This is shown on a real model too:
the bundled all-MiniLM-L6-v2 was trained with learned positions. In its recorded graph the place at which order enters
is found, its position table is made the same for every token, and the graph that is left is proved order-blind for
every value of every parameter.
Source: Zaheer et al. 2017, "Deep Sets", arXiv:1703.06114, theorem 2; Reimers and Gurevych 2019, "Sentence-BERT",
arXiv:1908.10084, section 3 (the mean).
"""

from __future__ import annotations

from functools import partial
from itertools import permutations

import torch
from torch import Tensor, nn

from orderproof.claims.bench import Bench
from orderproof.claims.by_law import ByLaw
from orderproof.claims.by_numbers import REAL, apart, judged, made_in_float64
from orderproof.claims.claim import Claim, Ground, Make, Outcome
from orderproof.claims.models import WIDTH, reader, reader_with_positions, seeded, vectors
from orderproof.record import Swap, SwapRow
from orderproof.report import words
from orderproof.subjects import Subject, bundled


class Convolved(nn.Module):
    """A convolution over neighbours: order enters by an operator, which nothing can make uniform."""

    def __init__(self) -> None:
        super().__init__()
        self.neighbours = nn.Conv1d(WIDTH, WIDTH, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        """Mix each row with its neighbours."""
        mixed: Tensor = self.neighbours(x.transpose(1, 2)).transpose(1, 2)
        return mixed


def trained() -> Subject:
    """The bundled all-MiniLM-L6-v2, a trained sentence encoder."""
    return bundled()


def convolution() -> tuple[nn.Module, Tensor]:
    """A convolution in place of the trained model."""
    return seeded(Convolved), vectors()


@torch.no_grad()
def one_mean_for_every_order(make: Make, bench: Bench) -> Outcome:
    """Whether all orders of four words have one mean; every order is run."""
    module, _ = made_in_float64(make)
    orders = torch.tensor(list(permutations(range(4))))
    means = module(orders)["mean"]
    kinds: list[Tensor] = []
    for each in means:
        if all(apart(kind, each) > REAL for kind in kinds):
            kinds.append(each)
    gap = max(apart(means[0], each) for each in means)
    told = f"{len(orders)} orders of 4 words give {words.count(len(kinds), 'mean')}"
    return judged(gap, (f"{told}, at most {words.size(gap)} apart",))


def proved_without_positions(make: Make, bench: Bench) -> Outcome:
    """Whether the graph with its order-carrying constants made uniform is proved order-blind."""
    finding = bench.finding(make, "order_blind")
    done = finding.completion
    if done is None or done.verdict != "proved" or done.proof is None:
        reason = finding.reason or (done.reason if done else "")
        return Outcome(found="undecided", method="law", law=words.name(finding), evidence=(reason,))
    entry = finding.entries[0]
    scope = words.verdict_of("proved", done.scope).partition(" ")[2]
    lines = (
        f"order enters at {entry.operator} ({entry.source}), from {entry.origin}, and nowhere else",
        f"with it made the same for every token: {scope}, {words.count(done.proof.steps, 'step')}",
    )
    return Outcome(
        found="proved", method="law", law=words.name(finding), evidence=lines, lemmas=done.proof.lemmas,
        deviation=done.deviation,
    )  # fmt: skip


def two_sentences(condition: str, make: Make, bench: Bench) -> Outcome:
    """Whether two sentences of the same words have the same vector, with positions or without."""
    swap = bench.swap(make)
    if swap is None:
        text = "the model reads no text, or not all of its order can be taken out of its graph"
        return Outcome(found="undecided", method="numbers", evidence=(text,))
    single, double = (_row(swap, condition, dtype) for dtype in ("float32", "float64"))
    gaps = ", ".join(f"{row.dtype} {words.size(row.largest_difference)}" for row in (single, double))
    lines = (
        f"'{swap.first}' and '{swap.second}', {condition}",
        f"cosine {words.cosine(double.cosine)}; largest difference: {gaps}",
    )
    return judged(double.largest_difference, lines)


def _row(swap: Swap, condition: str, dtype: str) -> SwapRow:
    return next(row for row in swap.rows if (row.condition, row.dtype) == (condition, dtype))


CLAIM = Claim(
    number=8,
    name="bag_of_words",
    statement="A mean-pooled model without positions is a bag of words.",
    documented="proved",
    exact=(
        "The mean over the outputs of layers without positions is the same for every order of the words, for "
        "every weight. Of the trained model this is true once its one position table is made the same for every "
        "token; as it is, with its positions, it gives two sentences of the same words different vectors."
    ),
    conditions=(
        "no positions and no causal mask; a mean over all tokens (a sum or a maximum would do as well)",
        "a bag keeps how often a word occurs: it is a multiset, not a set",
        "the trained model: its graph at the recorded length, its position table made uniform in the graph",
    ),
    source="Zaheer et al. 2017, arXiv:1703.06114, theorem 2",
    grounds=(
        Ground(
            what="permute the words, and the mean of the output stays the same", subject=reader,
            test=ByLaw("order_blind", "mean"), expected="holds", asserted="holds", broken=reader_with_positions,
        ),
        Ground(
            what="all 24 orders of four words have one mean", subject=reader, test=one_mean_for_every_order,
            expected="holds", broken=reader_with_positions,
        ),
        Ground(
            what="all 24 orders of four words have one mean", subject=reader_with_positions,
            test=one_mean_for_every_order, expected="fails", broken=reader,
        ),
        Ground(
            what="without its positions the trained model is order-blind", subject=trained,
            test=proved_without_positions, expected="holds", asserted="holds", broken=convolution,
        ),
        Ground(
            what="without its positions, two sentences of the same words have the same vector", subject=trained,
            test=partial(two_sentences, "without positions"), expected="holds", broken=convolution,
        ),
        Ground(
            what="with its positions, two sentences of the same words have the same vector", subject=trained,
            test=partial(two_sentences, "with positions"), expected="fails", broken=convolution,
        ),
    ),
)  # fmt: skip
