"""Claim 8: a mean-pooled model without positions is a bag of words.

    mean(f(P X)) = mean(P f(X)) = mean(f(X))

The output rows are permuted and their mean does not change, so the vector of a sentence depends only on the counts of
its words: n different words have n! orders and one vector. This is also checked on a trained model: the bundled
all-MiniLM-L6-v2 has learned positions. The operator at which order enters is located in its recorded graph, its
position table is made uniform, and the resulting graph is proved permutation-invariant for all parameter values.
Source: Zaheer et al. 2017, "Deep Sets", arXiv:1703.06114, theorem 2; Reimers and Gurevych 2019, "Sentence-BERT",
arXiv:1908.10084, section 3 (the mean).
"""

from __future__ import annotations

from functools import partial
from itertools import permutations

import torch
from torch import Tensor, nn

from orderproof.claims.audit_cache import AuditCache, SubjectFactory
from orderproof.claims.claim import CheckOutcome, Claim, ClaimCheck
from orderproof.claims.law_check import LawCheck
from orderproof.claims.numeric_check import (
    REFUTATION_TOLERANCE,
    build_subject_float64,
    classify_difference,
    max_relative_difference,
)
from orderproof.claims.small_models import (
    WIDTH,
    mean_pooled_encoder,
    mean_pooled_encoder_with_positions,
    random_vectors,
    seeded,
)
from orderproof.laws.proved.permutation import LAW as PERMUTATION
from orderproof.models import Subject, bundled
from orderproof.records.audit import SentenceDistance, SentencePair
from orderproof.report import phrases


class ConvolutionMixer(nn.Module):
    """A convolution over neighbours: order enters through an operator, not through a constant."""

    def __init__(self) -> None:
        super().__init__()
        self.neighbours = nn.Conv1d(WIDTH, WIDTH, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        """Convolve over the tokens."""
        output: Tensor = self.neighbours(x.transpose(1, 2)).transpose(1, 2)
        return output


def bundled_sentence_encoder() -> Subject:
    """The bundled all-MiniLM-L6-v2, a trained sentence encoder."""
    return bundled()


def convolution() -> tuple[nn.Module, Tensor]:
    """A convolution instead of the trained model."""
    return seeded(ConvolutionMixer), random_vectors()


@torch.no_grad()
def mean_is_order_invariant(make_subject: SubjectFactory, audits: AuditCache) -> CheckOutcome:
    """Check that all permutations of four words have the same mean, by running each of them."""
    module, _ = build_subject_float64(make_subject)
    orders = torch.tensor(list(permutations(range(4))))
    means = module(orders)["mean"]
    distinct: list[Tensor] = []
    for mean in means:
        if all(max_relative_difference(other, mean) > REFUTATION_TOLERANCE for other in distinct):
            distinct.append(mean)
    difference = max(max_relative_difference(means[0], mean) for mean in means)
    count = f"{len(orders)} permutations of 4 words give {phrases.pluralize(len(distinct), 'mean')}"
    return classify_difference(difference, (f"{count}, largest difference {phrases.format_difference(difference)}",))


def proved_without_positions(make_subject: SubjectFactory, audits: AuditCache) -> CheckOutcome:
    """Check that the graph is proved permutation-invariant after its position table is made uniform."""
    finding = audits.finding(make_subject, PERMUTATION.name)
    completion = finding.completion
    if completion is None or completion.verdict != "proved" or completion.proof is None:
        reason = finding.reason or (completion.reason if completion else "")
        return CheckOutcome(verdict="undecided", method="law", law=phrases.law_title(finding), evidence=(reason,))
    entry = finding.entries[0]
    scope = phrases.verdict_text("proved", completion.scope).partition(" ")[2]
    lines = (
        f"order enters only at {entry.operator} ({entry.source}), from {entry.origin}",
        f"with a uniform position table: {scope}, {phrases.pluralize(completion.proof.step_count, 'step')}",
    )
    return CheckOutcome(
        verdict="proved", method="law", law=phrases.law_title(finding), evidence=lines,
        lemmas=completion.proof.lemma_counts, deviation=completion.deviation,
    )  # fmt: skip


def same_sentence_vector(condition: str, make_subject: SubjectFactory, audits: AuditCache) -> CheckOutcome:
    """Check that two sentences with the same words have the same vector, with or without positions."""
    pair = audits.sentence_pair(make_subject)
    if pair is None:
        text = "the model does not read text, or its positions cannot be removed from its graph"
        return CheckOutcome(verdict="undecided", method="numbers", evidence=(text,))
    single, double = (_distance(pair, condition, dtype) for dtype in ("float32", "float64"))
    differences = ", ".join(
        f"{row.dtype} {phrases.format_difference(row.max_abs_difference)}" for row in (single, double)
    )
    lines = (
        f"'{pair.first}' and '{pair.second}', {condition}",
        f"cosine {phrases.cosine(double.cosine)}; largest difference: {differences}",
    )
    return classify_difference(double.max_abs_difference, lines)


def _distance(pair: SentencePair, condition: str, dtype: str) -> SentenceDistance:
    return next(row for row in pair.distances if (row.condition, row.dtype) == (condition, dtype))


CLAIM = Claim(
    number=8,
    name="bag_of_words",
    statement="A mean-pooled model without positions is a bag of words.",
    expected_verdict="proved",
    exact_statement=(
        "The mean over the outputs of layers without positions is the same for every order of the words, for every "
        "weight. For the trained model this holds once its position table is made uniform; with its positions, two "
        "sentences with the same words have different vectors."
    ),
    conditions=(
        "no positions and no causal mask; a mean over all tokens (or a sum or a maximum)",
        "a bag includes the count of each word: it is a multiset, not a set",
        "the trained model: its graph at the recorded length, with its position table made uniform",
    ),
    source="Zaheer et al. 2017, arXiv:1703.06114, theorem 2",
    theorems=(
        "argument.bag_of_words.mean_invariant",
        "argument.bag_of_words.transformer_bag_of_words",
    ),
    checks=(
        ClaimCheck(
            statement="permuting the words leaves the mean of the output unchanged",
            make_subject=mean_pooled_encoder,
            method=LawCheck(PERMUTATION, "mean"),
            expected="holds",
            asserted_by_claim="holds",
            negative_control=mean_pooled_encoder_with_positions,
        ),
        ClaimCheck(
            statement="all 24 permutations of four words have one mean",
            make_subject=mean_pooled_encoder,
            method=mean_is_order_invariant,
            expected="holds",
            negative_control=mean_pooled_encoder_with_positions,
        ),
        ClaimCheck(
            statement="all 24 permutations of four words have one mean",
            make_subject=mean_pooled_encoder_with_positions,
            method=mean_is_order_invariant,
            expected="fails",
            negative_control=mean_pooled_encoder,
        ),
        ClaimCheck(
            statement="without its positions, the trained model is permutation-invariant",
            make_subject=bundled_sentence_encoder,
            method=proved_without_positions,
            expected="holds",
            asserted_by_claim="holds",
            negative_control=convolution,
        ),
        ClaimCheck(
            statement="without its positions, two sentences with the same words have the same vector",
            make_subject=bundled_sentence_encoder,
            method=partial(same_sentence_vector, "without positions"),
            expected="holds",
            negative_control=convolution,
        ),
        ClaimCheck(
            statement="with its positions, two sentences with the same words have the same vector",
            make_subject=bundled_sentence_encoder,
            method=partial(same_sentence_vector, "with positions"),
            expected="fails",
            negative_control=convolution,
        ),
    ),
)
