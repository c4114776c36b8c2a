"""Proofs before training: the laws proved of a run's model, and the check that its scores agree with them.

If permutation equivariance is proved, two rows with the same bag of tokens get the same answer at every token,
for any weights; if `prompt_permutation` is proved, they get the same answer at the last token. Such a model cannot
score above the ceiling on a test set that contains every row, and on a balanced question it scores exactly the ceiling.
A study in which it does not has found a bug, in the prover or in the lab, and stops with `ProofContradiction`.
"""

from __future__ import annotations

from fractions import Fraction

import torch

from orderproof.auditing import audit
from orderproof.errors import OrderproofError
from orderproof.lab.model import build_model
from orderproof.lab.question import UNSCORED
from orderproof.lab.result import RunResult
from orderproof.lab.run_config import RunConfig
from orderproof.laws.proved.causal import LAW as CAUSAL
from orderproof.laws.proved.permutation import LAW as PERMUTATION
from orderproof.laws.proved.prompt_permutation import LAW as PROMPT_PERMUTATION
from orderproof.laws.proved.reversal import LAW as REVERSAL

INVARIANCES = (PERMUTATION, PROMPT_PERMUTATION, REVERSAL)
"""The laws that state an invariance under reordering the tokens."""
CHECKED_LAWS = (*INVARIANCES, CAUSAL)


class ProofContradiction(OrderproofError):
    """A trained model scored what a proof rules out."""


def prove_laws(run: RunConfig) -> tuple[str, ...]:
    """The names of the laws that are proved of the run's model for all weights, each once."""
    model = build_model(run).eval()
    length = run.effective_test_lengths[0]
    tokens = run.question.sample(length, 2, torch.Generator().manual_seed(0)).tokens
    report = audit(model, laws=[law.name for law in CHECKED_LAWS], inputs=(tokens,))
    proved = (one.law for one in report.findings if one.verdict == "proved" and one.scope.weights == "all")
    return tuple(dict.fromkeys(proved))  # a law that is proved with and without pad tokens has two findings


def proved_invariances(laws: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the laws that state an invariance under reordering the tokens."""
    return tuple(law.name for law in INVARIANCES if law.name in laws)


def is_permutation_invariant(run: RunConfig, laws: tuple[str, ...]) -> bool:
    """True if the proved laws make every scored answer of the run independent of token order."""
    if PERMUTATION.name in laws:
        return True
    batch = run.question.sample(run.effective_test_lengths[0], 1, torch.Generator().manual_seed(0))
    scored = (batch.targets[0] != UNSCORED).nonzero().flatten().tolist()
    return PROMPT_PERMUTATION.name in laws and scored == [batch.tokens.shape[1] - 1]


def check_scores_against_proofs(run: RunConfig, result: RunResult, laws: tuple[str, ...]) -> None:
    """Compare the scores with the proved laws. Raises `ProofContradiction`."""
    if not is_permutation_invariant(run, laws) or run.question.measure == "nats":
        return
    for point in result.lengths:
        ceiling = run.question.ceiling(point.length)
        if ceiling is None or not ceiling.exact or point.right is None:
            continue
        score = Fraction(point.right, point.scored)
        if run.question.balanced and score != ceiling.value:
            problem = f"must score exactly {ceiling.value} at length {point.length}, but scored {score}"
        elif run.question.is_exhaustive(point.length, run.test_rows) and score > ceiling.value:
            problem = f"cannot score more than {ceiling.value} at length {point.length}, but scored {score}"
        else:
            continue
        raise ProofContradiction(
            f"{' and '.join(laws)} proved for run {run.id} ({run.encoding}, {run.layers} layers, causal={run.causal}, "
            f"seed {run.seed}); it {problem}: a bug in the prover or in the lab, please report it"
        )
