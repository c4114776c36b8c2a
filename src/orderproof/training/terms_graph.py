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

from orderproof.auditing.api import audit_context
from orderproof.auditing.decide.relation import ProofOptions
from orderproof.auditing.decide.theorem_certificates import with_rechecked_theorems
from orderproof.auditing.decide.theorems import prove_theorems, theorem_of_the_program, without_theorem
from orderproof.auditing.decide.verdict import prove_law
from orderproof.auditing.explain.findings import finding_of
from orderproof.errors import UnsupportedCallError
from orderproof.laws import ProvedLaw, find_proved_law
from orderproof.laws.training import TrainingBatch, TrainingStep
from orderproof.models.axes import OutputAxes, TokenRun
from orderproof.models.plain_module import from_module
from orderproof.models.process_state import preserved_settings
from orderproof.models.sample import BATCH_SIZE, Sample, seeded_generator, token_labels
from orderproof.models.settings import DEFAULT_SETTING
from orderproof.models.subject import (
    MIN_DEFAULT_LENGTH,
    Subject,
    count_parameters,
    prime_length,
    tensor_sizes,
)
from orderproof.recording.owned_state import shared_walks
from orderproof.records.audit import Finding, Scope, Theorem

CLAIM = "proved of the cross-entropies of the loss for every label, in rows without pads and packed documents"
SHORT = 12  # [tokens] of the rows that the terms are recorded with
OUTPUT = "output"  # the name of the only output of a module
AXES = OutputAxes((BATCH_SIZE, SHORT, 1), row=0, tokens=(TokenRun(1),), source="as stated")
_TOLERANCE = 1e-5  # relative: the outputs that the cross-entropy gets are those of the model


def prove_terms(step: TrainingStep, finding: Finding, law: str) -> Finding:
    """A finding that holds by measurement, with a proof of the law for the terms if there is one.

    A theorem for every length is looked for first without masks: models of transformers look into them. It is proved
    on few tokens, and the measurement is that of calls which have to agree with it. Where there is none, a proof is
    looked for at one length.
    """
    every = tuple(step.batch.roles)
    for roles in dict.fromkeys((("tokens", "labels"), every)):
        if (theorem := _theorem(step, finding, find_proved_law(law), roles)) is not None:
            return _proved(step, finding, theorem, roles)
    found = _proof_at_one_length(step, find_proved_law(law), every)
    return finding if found is None else _proved(step, finding, found, every)


def _proved(step: TrainingStep, finding: Finding, proof: Finding, roles: Sequence[str]) -> Finding:
    left_out = [str(key) for role, key in step.batch.roles.items() if role not in roles]
    claim = f"{CLAIM}, called without {', '.join(left_out)}" if left_out else CLAIM
    scope = proof.scope.model_copy(update={"assumptions": (claim, *proof.scope.assumptions)})
    return finding.model_copy(
        update={"verdict": "proved", "scope": scope, "proof": proof.proof, "theorem": proof.theorem, "reason": ""}
    )


def _theorem(step: TrainingStep, finding: Finding, law: ProvedLaw, roles: Sequence[str]) -> Finding | None:
    """A finding with the theorem for a batch of tensors with these roles, which the recheck accepts; None without."""
    try:
        terms = _Terms(step, roles, SHORT)
        terms.check()
        context = audit_context(terms.subject())
        calls = context.open_calls

        def theorem() -> Theorem:
            found = prove_theorems(calls, law, DEFAULT_SETTING)[OUTPUT]
            has_axes = calls.has_axes(DEFAULT_SETTING, OUTPUT, AXES)
            return found if has_axes or not found.proved else without_theorem("its output has other axes")

        with preserved_settings("terms"), shared_walks():
            found = theorem_of_the_program(context, calls, DEFAULT_SETTING, theorem)
            scope = Scope(length=context.length)
            of_terms = finding_of(law, "proved", "", expected="holds", scope=scope, output=OUTPUT, theorem=found)
            of_terms = with_rechecked_theorems(context, DEFAULT_SETTING, of_terms, always=True)
    except Exception:  # noqa: BLE001 - the code of the user may fail in any way without a mask
        return None
    return of_terms if of_terms.theorem is not None and of_terms.theorem.proved else None


def _proof_at_one_length(step: TrainingStep, law: ProvedLaw, roles: Sequence[str]) -> Finding | None:
    """The proof at one length; None if there is none."""
    try:
        terms = _Terms(step, roles, step.batch.tokens.shape[1])
        terms.check()
        context = audit_context(from_module(terms, terms.example, name="terms"))
        with preserved_settings("terms"), shared_walks():
            (found,) = prove_law(context, law, ProofOptions(other_calls=False, search_witness=False))
    except Exception:  # noqa: BLE001 - as above
        return None
    return found if found.verdict == "proved" else None


class _Seen(BaseException):  # the code of the user must not catch it
    def __init__(self, logits: Any) -> None:
        super().__init__()
        self.logits = logits


class _Terms(nn.Module):
    """The term of each output for every label [row, output, label], 0 for outputs without a term."""

    def __init__(self, step: TrainingStep, roles: Sequence[str], length: int) -> None:
        super().__init__()
        self.model, self.step, self.roles, self.length = step.model, step, roles, length

    @property
    def example(self) -> Tensor:
        """Two rows of tokens: a loss that takes them one by one must not look like one that takes all."""
        rows = self.step.batch.tokens[:2, : self.length]
        return rows if len(rows) == 2 else torch.cat([rows, rows.roll(1, 1)])

    def subject(self) -> Subject:
        """The subject of the terms, whose axes are known."""
        length = prime_length(MIN_DEFAULT_LENGTH, tensor_sizes(self) | {BATCH_SIZE})
        return Subject(
            name="terms", model_kind="causal_lm", module=self, token_axes=(1,), parameter_count=count_parameters(self),
            layer_count=None, default_length=length, max_length=None, device="cpu", draw=self._drawn,
            output_axes={OUTPUT: AXES},
        )  # fmt: skip

    def _drawn(self, length: int, seed: int) -> Sample:
        """Two rows of tokens of the batch, drawn."""
        used = torch.unique(self.step.batch.tokens[self.step.batch.real])
        places = torch.randint(len(used), (BATCH_SIZE, length), generator=seeded_generator(seed))
        return Sample((used[places.to(used.device)],), token_labels(length))

    def forward(self, tokens: Tensor) -> Tensor:
        logits = self._logits(tokens)
        terms = -logits.log_softmax(-1)
        return functional.pad(terms, (0, 0, 0, tokens.shape[1] - terms.shape[1]))

    def check(self) -> None:
        """Raises `UnsupportedCallError` unless the loss has one cross-entropy, which gets the logits of the model."""
        tokens = self.example
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
