"""From proof to training: which laws of order a run's model obeys, proved before its first step.

A model that is read at its last token alone is blind where `prompt_blind` is proved, one that is read at several tokens
where `order_blind` is. Such a model answers two rows with one bag alike, whatever its weights become: on the question's
test set it cannot score more than the ceiling; and where the question is balanced it scores exactly the ceiling, to the
last item. A study in which it does not has found an error, in the prover or in the lab, and says so.
"""

from __future__ import annotations

from fractions import Fraction

import torch

from orderproof.auditing import audit
from orderproof.errors import OrderproofError
from orderproof.lab.configuration import RunConfig
from orderproof.lab.network import build
from orderproof.lab.question import UNSCORED
from orderproof.lab.result import RunResult

LAWS = ("order_blind", "prompt_blind", "mirror_blind", "causal")


class Contradiction(OrderproofError):
    """A trained model scored what a proof rules out."""


def proved(run: RunConfig) -> tuple[str, ...]:
    """The laws that are proved of the run's model for all weights."""
    model = build(run).eval()
    length = run.tested[0]
    tokens = run.question.draw(length, 2, torch.Generator().manual_seed(0)).tokens
    report = audit(model, laws=LAWS, inputs=(tokens,))
    return tuple(one.law for one in report.findings if one.verdict == "proved" and one.scope.weights == "all")


def blind(run: RunConfig, laws: tuple[str, ...]) -> bool:
    """Whether what was proved makes the model blind to order where the question reads it."""
    if "order_blind" in laws:
        return True
    batch = run.question.draw(run.tested[0], 1, torch.Generator().manual_seed(0))
    asked = (batch.targets[0] != UNSCORED).nonzero().flatten().tolist()
    return "prompt_blind" in laws and asked == [batch.tokens.shape[1] - 1]


def check(run: RunConfig, result: RunResult, laws: tuple[str, ...]) -> None:
    """Hold the scores against what was proved. Raises `Contradiction`."""
    if not blind(run, laws) or run.question.measure == "nats":
        return
    for at in result.lengths:
        ceiling = run.question.ceiling(at.length)
        if ceiling is None or not ceiling.exact or at.right is None:
            continue
        got = Fraction(at.right, at.scored)
        if run.question.balanced and got != ceiling.value:
            told = f"must score exactly {ceiling.value} at length {at.length}, and scored {got}"
        elif run.question.whole_orbits and got > ceiling.value:
            told = f"cannot score more than {ceiling.value} at length {at.length}, and scored {got}"
        else:
            continue
        raise Contradiction(
            f"run {run.id} ({run.encoding}, {run.layers} layers, causal={run.causal}, seed {run.seed}) was proved "
            f"{' and '.join(laws)}; it {told}: an error in the prover or in the lab, please report it"
        )
