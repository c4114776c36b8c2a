"""Claim 5: the attention scores of *cat* are the same set in both sentences, and so is its representation.

In "the cat chased the dog" and "the dog chased the cat", the word *cat* attends to the same words in another order:

    S' = P S P^T       its row of scores moves to another row, with the same numbers in other columns
    z = sum_n softmax_n(s) v_n       each score multiplies the value of the same word, so the sum is the same

"The same set" alone is not sufficient: the same scores with swapped values have another sum. Each score must keep its
value. So the representation of *cat* is the same in both sentences after any number of layers, and the model cannot
tell who chased whom.
Source: Vaswani et al. 2017, "Attention Is All You Need", arXiv:1706.03762, section 3.5; elementary.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from orderproof.claims.audit_cache import AuditCache, SubjectFactory
from orderproof.claims.claim import CheckOutcome, Claim, ClaimCheck
from orderproof.claims.law_check import LawCheck
from orderproof.claims.numeric_check import build_subject_float64, classify_difference, max_relative_difference
from orderproof.claims.small_models import (
    WORDS,
    AttentionSteps,
    WithRowNumbers,
    attention_steps,
    attention_steps_with_row_numbers,
    mean_pooled_encoder,
    mean_pooled_encoder_with_positions,
    random_vectors,
    seeded,
    sentences,
)
from orderproof.laws.proved.permutation import LAW as PERMUTATION
from orderproof.report import phrases

CAT = WORDS.index("cat")


class OneAttention(nn.Module):
    """Word embeddings and one attention over a sentence."""

    def __init__(self, *, with_row_numbers: bool = False) -> None:
        super().__init__()
        self.words = nn.Embedding(len(WORDS), random_vectors().shape[-1])
        steps = AttentionSteps()
        self.steps: nn.Module = WithRowNumbers(steps) if with_row_numbers else steps

    def forward(self, tokens: Tensor) -> dict[str, Tensor]:
        """The attention scores between all words."""
        return {"S": self.steps(self.words(tokens))["S"]}


class WeightedSum(nn.Module):
    """A sum of values weighted by the softmax of scores; each input row is [score, value]."""

    def forward(self, x: Tensor) -> Tensor:
        """The weighted sum."""
        return torch.softmax(x[..., 0], -1) @ x[..., 1]


def scores() -> tuple[nn.Module, Tensor]:
    """The scores of one attention over words, without positions."""
    return seeded(OneAttention), sentences()


def scores_with_positions() -> tuple[nn.Module, Tensor]:
    """The scores of one attention over words, with row numbers added to the embeddings."""
    return seeded(lambda: OneAttention(with_row_numbers=True)), sentences()


def scores_with_swapped_values() -> tuple[Tensor, Tensor]:
    """Two scores and two values; the values are swapped, the scores are not."""
    return torch.tensor([[1.0, 1.0], [2.0, 0.0]]), torch.tensor([[1.0, 0.0], [2.0, 1.0]])


def scores_with_their_values() -> tuple[Tensor, Tensor]:
    """Two scores and two values, swapped together."""
    return torch.tensor([[1.0, 1.0], [2.0, 0.0]]), torch.tensor([[2.0, 0.0], [1.0, 1.0]])


@torch.no_grad()
def same_scores_of_cat(make_subject: SubjectFactory, audits: AuditCache) -> CheckOutcome:
    """Check that the sorted scores of *cat* are equal in both sentences."""
    module, tokens = build_subject_float64(make_subject)
    rows = [row[tuple(line).index(CAT)] for row, line in zip(module(tokens)["S"], tokens.tolist(), strict=True)]
    first, second = (row.sort().values for row in rows)
    lines = tuple(
        f"{' '.join(WORDS[w] for w in line)}: " + " ".join(f"{float(s):.4f}" for s in row)
        for line, row in zip(tokens.tolist(), rows, strict=True)
    )
    difference = max_relative_difference(first, second)
    return classify_difference(difference, (*lines, f"sorted, they differ by {phrases.format_difference(difference)}"))


@torch.no_grad()
def same_vector_of_cat(make_subject: SubjectFactory, audits: AuditCache) -> CheckOutcome:
    """Check that the output at *cat* is the same in both sentences."""
    module, tokens = build_subject_float64(make_subject)
    first, second = (row[line.index(CAT)] for row, line in zip(module(tokens)["words"], tokens.tolist(), strict=True))
    difference = max_relative_difference(first, second)
    text = f"the two vectors of cat differ by {phrases.format_difference(difference)}"
    return classify_difference(difference, (text,))


def same_sum(make_subject: SubjectFactory, audits: AuditCache) -> CheckOutcome:
    """Check that two lists of [score, value] with the same scores have the same weighted sum."""
    pairs = [x.double() for x in make_subject()]
    sums = [WeightedSum()(x) for x in pairs]
    lines = [
        f"scores {x[:, 0].tolist()}, values {x[:, 1].tolist()}: {float(y):.4f}"
        for x, y in zip(pairs, sums, strict=True)
    ]
    return classify_difference(max_relative_difference(*sums), tuple(lines))


CLAIM = Claim(
    number=5,
    name="same_scores",
    statement=(
        "The attention scores for cat are the same set in 'the cat chased the dog' and 'the dog chased the cat', "
        "so cat gets the same representation."
    ),
    expected_verdict="proved",
    exact_statement=(
        "Without positions, the scores of a word are the same numbers in another order, each with the value of the "
        "same word, so the vector of the word is the same after any number of layers. The same set of scores alone is "
        "not sufficient: with swapped values the sum differs."
    ),
    conditions=(
        "no positions and no causal mask",
        "the sentences have the same words, each equally often",
        "for every weight; equal in real arithmetic, in floating point up to rounding",
    ),
    source="Vaswani et al. 2017, arXiv:1706.03762, section 3.5",
    theorems=(
        "argument.attention.scores_perm",
        "argument.attention.attention_equivariant",
    ),
    checks=(
        ClaimCheck(
            statement="permuting the words permutes rows and columns of the scores: S' = P S P^T",
            make_subject=attention_steps,
            method=LawCheck(PERMUTATION, "S"),
            expected="holds",
            asserted_by_claim="holds",
            negative_control=attention_steps_with_row_numbers,
        ),
        ClaimCheck(
            statement="permuting the words leaves the vector of each word unchanged",
            make_subject=mean_pooled_encoder,
            method=LawCheck(PERMUTATION, "words"),
            expected="holds",
            asserted_by_claim="holds",
            negative_control=mean_pooled_encoder_with_positions,
        ),
        ClaimCheck(
            statement="the scores of cat are the same numbers in both sentences",
            make_subject=scores,
            method=same_scores_of_cat,
            expected="holds",
            negative_control=scores_with_positions,
        ),
        ClaimCheck(
            statement="cat has the same vector in both sentences",
            make_subject=mean_pooled_encoder,
            method=same_vector_of_cat,
            expected="holds",
            negative_control=mean_pooled_encoder_with_positions,
        ),
        ClaimCheck(
            statement="the same set of scores gives the same weighted sum for any values",
            make_subject=scores_with_swapped_values,
            method=same_sum,
            expected="fails",
            negative_control=scores_with_their_values,
        ),
    ),
)
