"""The cross-entropies of a loss as a module of tokens, whose order is proved as that of any other module.

    tokens [row, token]  ->  -log softmax(z) [row, output, label]     the term of each output for every label

The loss is called with the tokens as labels, up to its cross-entropy, which gets the logits z. The term of a label is
one entry of the output, so what is proved of the output holds for every label. The module has no input but the tokens:
masks are 1, and position ids those of one document. The claim is about rows without pads and packed documents. A model
of transformers looks into a mask that it is given; where no theorem is found with one, the loss is called without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from orderproof.auditing.api import audit_context, report_on_law
from orderproof.errors import UnsupportedCallError
from orderproof.laws.training import TrainingBatch, TrainingStep
from orderproof.models.plain_module import from_module
from orderproof.records.audit import Finding

CLAIM = "proved of the cross-entropies of the loss for every label, in rows without pads and packed documents"
_TOLERANCE = 1e-5  # relative: the outputs that the cross-entropy gets are those of the model


def prove_terms(step: TrainingStep, finding: Finding, law: str) -> Finding:
    """A finding that holds by measurement, with a proof of the law for the terms if there is one."""
    claim, best = CLAIM, None
    for roles in (tuple(step.batch.roles), ("tokens", "labels")):
        found = _proof(step, law, roles)
        if best is not None and (found is None or not _for_every_length(found)):
            continue
        left_out = [str(key) for role, key in step.batch.roles.items() if role not in roles]
        claim, best = f"{CLAIM}, called without {', '.join(left_out)}" if left_out else CLAIM, found
        if best is not None and _for_every_length(best):
            break
    if best is None:
        return finding
    scope = best.scope.model_copy(update={"assumptions": (claim, *best.scope.assumptions)})
    return finding.model_copy(
        update={"verdict": "proved", "scope": scope, "proof": best.proof, "theorem": best.theorem, "reason": ""}
    )


def _for_every_length(found: Finding) -> bool:
    return found.theorem is not None and found.theorem.proved


def _proof(step: TrainingStep, law: str, roles: Sequence[str]) -> Finding | None:
    """The proof for a batch of tensors with these roles; None if there is none."""
    try:
        terms = _Terms(step, roles)
        terms.check()
        report = report_on_law(audit_context(from_module(terms, _example(step), name="terms")), law)
    except Exception:  # noqa: BLE001 - the code of the user may fail in any way without a mask
        return None
    (found,) = report.findings
    return found if found.verdict == "proved" else None


def _example(step: TrainingStep) -> Tensor:
    """Two rows of tokens: a loss that takes them one by one must not look like one that takes all."""
    rows = step.batch.tokens[:2]
    return rows if len(rows) == 2 else torch.cat([rows, rows.roll(1, 1)])


class _Seen(BaseException):  # the code of the user must not catch it
    def __init__(self, logits: Any) -> None:
        super().__init__()
        self.logits = logits


class _Terms(nn.Module):
    """The term of each output for every label [row, output, label], 0 for outputs without a term."""

    def __init__(self, step: TrainingStep, roles: Sequence[str]) -> None:
        super().__init__()
        self.model, self.step, self.roles = step.model, step, roles

    def forward(self, tokens: Tensor) -> Tensor:
        logits = self._logits(tokens)
        terms = -logits.log_softmax(-1)
        return functional.pad(terms, (0, 0, 0, tokens.shape[1] - terms.shape[1]))

    def check(self) -> None:
        """Raises `UnsupportedCallError` unless the loss has one cross-entropy, which gets the logits of the model."""
        tokens = _example(self.step)
        with torch.no_grad():
            logits = self._logits(tokens)
        real, calls = functional.cross_entropy, list[Any]()

        def noted(*given: Any, **options: Any) -> Any:
            calls.append(given)
            return real(*given, **options)

        with _cross_entropy_is(noted):
            expected = self.step.logits(_plain_batch(self.step.batch, tokens, self.roles))[:, : logits.shape[1]]
        if len(calls) != 1:
            raise UnsupportedCallError(f"its loss has {len(calls)} cross-entropies")
        if logits.shape != expected.shape or not torch.allclose(logits, expected, rtol=_TOLERANCE, atol=_TOLERANCE):
            raise UnsupportedCallError("its cross-entropy gets other logits than those of the model")

    def _logits(self, tokens: Tensor) -> Tensor:
        """The logits that the first cross-entropy of the loss gets [row, output, label]."""
        try:
            with _cross_entropy_is(_stop):
                self.step.loss_of(_plain_batch(self.step.batch, tokens, self.roles))
        except _Seen as seen:
            logits = seen.logits
        else:
            raise UnsupportedCallError("its loss has no cross-entropy of torch")
        rows, length = tokens.shape
        if logits.dim() == 3:
            logits = logits.transpose(1, 2)
        elif logits.shape[0] in (rows * length, rows * (length - 1)):
            logits = logits.unflatten(0, (rows, -1))
        if logits.dim() != 3 or logits.shape[0] != rows:
            raise UnsupportedCallError("its first cross-entropy is not that of all rows")
        found: Tensor = logits
        return found


@contextmanager
def _cross_entropy_is(function: Callable[..., Any]) -> Iterator[None]:
    """A block in which another function is torch's cross-entropy."""
    before = functional.cross_entropy
    functional.cross_entropy = function
    try:
        yield
    finally:
        functional.cross_entropy = before


def _stop(logits: Any, *_: Any, **__: Any) -> Any:
    raise _Seen(logits)


def _plain_batch(batch: TrainingBatch, tokens: Tensor, roles: Sequence[str]) -> TrainingBatch:
    """A batch of these tokens without pads and documents. Raises `UnsupportedCallError`."""
    made = {"tokens": tokens, "labels": tokens, "mask": torch.ones_like(tokens), "documents": torch.zeros_like(tokens)}
    made["positions"] = torch.arange(tokens.shape[1]).expand(tokens.shape)
    known = {key: role for role, key in batch.roles.items() if batch.role(role) is not None}
    if unknown := [str(name) for name in batch.values if name not in known]:
        raise UnsupportedCallError(f"its batch has {', '.join(unknown)}")
    values = {name: made[role] for name, role in known.items() if role in roles}
    return TrainingBatch(values, {known[name]: name for name in values}, batch.kind)
