"""OP709 rollout_logprobs: the loss gives generated tokens the log-probabilities with which they were generated.

    log p_loss(x_t | x_<t)   in the batch, padded or packed   =   log p_engine(x_t | x_<t)   as it generates

for every labelled token t of a completion. Their ratios weigh and clip the terms of policy gradients: on new rollouts
they must be 1. The distribution of the loss is that of its logits, divided by the temperature that the gradient shows:
for a term log softmax(z / T)[y] the entries of other tokens are as exp(z / T). No engine generates labels after the end
of a completion.
Source: Yao et al. 2025, "Your Efficient RL Framework Secretly Brings You Off-Policy RL Training"; broken by a
temperature or a cut of the logits in one of both, by position ids that count pads, and by packed documents that see
each other.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import torch

from orderproof.errors import UnsupportedCallError
from orderproof.laws.training.rollouts import Document, Rollout
from orderproof.laws.training.training_law import Blame, TermComparison, TokenOfBatch, TrainingLaw
from orderproof.laws.training.training_step import Terms, TrainingStep

Values = Sequence[Sequence[float]]  # the log-probability of each generated token of each document

DOCUMENTS_TRIED = 4
PORT_EQUAL = 1e-4  # relative: log-probabilities of an engine in float32 that differ by less are equal
LARGEST_REST = 1e-2  # of the logarithms of a gradient, from a line: what is left of another term than a cross-entropy
LEAST_ENTRY = 1e-4  # of the largest entry of a gradient: smaller ones say nothing of the temperature
AFTER_END = "Set the labels after the end of each completion to -100: an engine generates nothing after it."
IN_BATCH = (
    "Let tokens in the batch have the logits that their documents have alone: pass attention_mask and position_ids "
    "(see OP704 and OP705)."
)
IN_LOSS = "Divide the logits of the loss by the temperature of the rollouts, and by no other."


class RolloutLogprobs(TrainingLaw):
    """The law of this module."""

    def inapplicable_reason(self, step: TrainingStep) -> str | None:
        if step.rollout is None:
            return "no engine of rollouts is given: --rollout generate"
        return "a run is not compared with an engine" if step.is_of_run else None

    def comparisons(self, step: TrainingStep) -> Iterator[TermComparison]:
        engine = step.rollout
        assert engine is not None
        documents = _documents(step)
        in_loss = _of_loss(step, documents, _temperature(step))
        generated = engine.log_probabilities(step.model, documents)
        end = _after_end(step)
        if end is not None:
            yield end
        difference, (k, t) = _difference(in_loss, generated)
        if not engine.is_exact and difference <= PORT_EQUAL:
            difference = 0.0
        found, remedy, blame = "", "", Blame.TERMS
        document = documents[k]
        place = document.start + document.prompt + t
        batch, row = step.batch, document.row
        calls = (
            TokenOfBatch(batch, row, place),
            TokenOfBatch(batch.with_other_label(row, place - batch.shift), row, place),
        )
        if difference > 0:
            text, remedy, in_batch = _cause(step, engine, documents, in_loss, generated, difference)
            found = (
                f"token {place} of row {row} has log-probability {in_loss[k][t]:.4g} in the loss and "
                f"{generated[k][t]:.4g} by {engine.name}{text}"
            )
            if in_batch:
                part, _ = step.alone(row, document.start, document.start + len(document.tokens))
                output = place + step.offset - batch.shift
                is_unread = step.ignores("positions") or step.ignores("mask")
                blame = Blame.MODEL_CALL if is_unread else Blame.OPERATOR
                calls = TokenOfBatch(part, 0, output - document.start), TokenOfBatch(batch, row, output)
        yield TermComparison(
            f"the log-probabilities of {len(documents)} completions by {engine.name}", difference,
            _control(in_loss), found=found, remedy=remedy, blame=blame, calls=calls,
        )  # fmt: skip


def _documents(step: TrainingStep) -> list[Document]:
    """Some documents with labels that are counted; the tokens before the first of them are the prompt."""
    batch, counted = step.batch, step.counted(step.batch)
    found = []
    for row, numbers in enumerate(batch.documents.tolist()):
        for number in sorted(set(numbers) - {-1}):
            places = [k for k, x in enumerate(numbers) if x == number]
            start, end = places[0], places[-1] + 1
            targets = [k + batch.shift for k in counted[row].nonzero().flatten().tolist()]
            labelled = [k for k in targets if start < k < end]
            if labelled and labelled[0] > start:
                tokens = tuple(batch.tokens[row, start:end].tolist())
                found.append(Document(row, start, tokens[: labelled[-1] + 1 - start], labelled[0] - start))
    if not found:
        raise UnsupportedCallError("no document of its batch has a label that is counted after a first token")
    return found[:DOCUMENTS_TRIED]


def _of_loss(step: TrainingStep, documents: Sequence[Document], temperature: float, *, alone: bool = False) -> Values:
    """The log-probabilities of the generated tokens in the loss of the batch, or of each document alone."""
    found, shift = [], step.batch.shift
    for row, start, tokens, prompt in documents:
        logits, at, first = step.base.logits, row, start
        if alone:
            logits, at, first = step.alone(row, start, start + len(tokens))[1][None], 0, 0
        outputs = torch.arange(first + prompt, first + len(tokens)) + step.offset - shift
        own = (logits[at, outputs].double() / temperature).log_softmax(-1)
        found.append([float(x) for x in own[torch.arange(len(outputs)), list(tokens[prompt:])]])
    return found


def _temperature(step: TrainingStep) -> float:
    """The number that the loss divides the logits by before it takes their softmax, as its gradients show; else 1."""
    values = [
        _slope(step.base, s.row, s.outputs[0], int(step.batch.labels[s.row, s.index])) for s in step.scored_labels
    ]
    known = [x for x in values if x is not None]
    if len(known) < len(values) or max(known) - min(known) > LARGEST_REST * max(known):
        return 1.0
    slope = sum(known) / len(known)
    return 1.0 if abs(slope - 1) < 1e-4 else 1 / slope


def _slope(terms: Terms, row: int, output: int, label: int) -> float | None:
    """The slope of the logarithm of a gradient over the logits, but for the label; None if they are no line."""
    logits, gradient = terms.logits[row, output].double(), terms.gradient[row, output].double().abs()
    is_used = gradient > LEAST_ENTRY * gradient.max()
    is_used[label] = False
    if int(is_used.sum()) < 3:
        return None
    x, y = logits[is_used], gradient[is_used].log()
    x, y = x - x.mean(), y - y.mean()
    slope = float((x * y).sum() / (x * x).sum())
    rest = float((y - slope * x).abs().max())
    return slope if slope > 0 and rest <= LARGEST_REST * max(float(y.abs().max()), 1e-9) else None


def _difference(one: Values, other: Values) -> tuple[float, tuple[int, int]]:
    """The largest difference relative to the largest value, and the first token with 1 % of it at least."""
    scale = max((abs(x) for row in one for x in row), default=1.0)
    apart = {
        (k, t): min(abs(a - b) / scale, 1.0) if math.isfinite(b) else 1.0
        for k, (first, second) in enumerate(zip(one, other, strict=True))
        for t, (a, b) in enumerate(zip(first, second, strict=True))
    }
    largest = max(apart.values())
    return largest, next(place for place, x in apart.items() if x >= largest / 100)


def _control(values: Values) -> float:
    """How far log-probabilities would be apart if each were that of the token before."""
    every = [x for row in values for x in row]
    if len(every) < 2:
        return 1.0
    scale = max(map(abs, every))
    return max(abs(a - b) for a, b in itertools.pairwise(every)) / scale if scale else 0.0


def _cause(
    step: TrainingStep, engine: Rollout, documents: Sequence[Document], in_loss: Values,
    generated: Values, difference: float,
) -> tuple[str, str, bool]:  # fmt: skip
    """The setting that explains a difference in words, the remedy, and whether it is in the batch."""
    least = max(difference / 100, PORT_EQUAL if not step.double else 1e-6)
    temperature = _temperature(step)
    alone = _of_loss(step, documents, temperature, alone=True)
    if _difference(alone, generated)[0] <= least:
        return ", and alone it has that of the engine", IN_BATCH, True
    if temperature != 1.0:
        plain = _of_loss(step, documents, 1.0)
        if _difference(plain, generated)[0] <= least:
            return f": the loss divides the logits by {temperature:.3g}, and the engine does not", IN_LOSS, False
    for setting in engine.settings(step.model):
        try:
            other = setting.engine.log_probabilities(step.model, documents)
        except UnsupportedCallError:
            continue  # a setting that the model does not take explains nothing
        if _difference(in_loss, other)[0] <= least:
            return f": {setting.text}", setting.remedy, False
    return ", for no setting that was tried", "", False


def _after_end(step: TrainingStep) -> TermComparison | None:
    """Labels that are counted after a token that ends a text and is counted too; None if there is no such token."""
    ends = getattr(getattr(step.model, "generation_config", None), "eos_token_id", None)
    if ends is None:
        return None
    batch, counted = step.batch, step.counted(step.batch)
    is_end = torch.isin(batch.labels, torch.tensor(ends if isinstance(ends, list) else [ends])) & counted
    after = torch.zeros_like(counted)
    after[:, 1:] = is_end[:, :-1] & counted[:, 1:]
    if not bool(is_end.any()):
        return None
    row, index = after.nonzero()[0].tolist() if bool(after.any()) else is_end.nonzero()[0].tolist()
    return TermComparison(
        "the labels after the ends of completions", float(bool(after.any())), 1.0, remedy=AFTER_END, blame=Blame.TERMS,
        found=f"labels after the end of a completion are counted: {int(after.sum())}, as that of token "
        f"{index + batch.shift} in row {row}", made=batch.labels,
    )  # fmt: skip


LAW = RolloutLogprobs(
    code="OP709",
    name="rollout_logprobs",
    statement="The loss gives generated tokens the log-probabilities with which an engine generates them.",
    trait="has the log-probabilities of its rollouts in the loss",
    expectation={"training step": "holds"},
    may_lack=True,
    remedy="Compare the engine with the model by orderproof audit --against ENGINE.",
)
