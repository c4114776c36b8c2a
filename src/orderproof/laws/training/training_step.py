"""A training step that can be asked: its loss, its logits, and the gradient of the loss at them.

The model is a copy in evaluation mode, so that dropout does not matter, and autocast is off.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from orderproof.errors import OrderproofError, SubjectError, UnsupportedCallError, first_line
from orderproof.laws.training.call_settings import own_gradients, training_mode, without_autocast
from orderproof.laws.training.collation import Collation
from orderproof.laws.training.kept_outputs import KeptOutputs
from orderproof.laws.training.ranks import group_questions
from orderproof.laws.training.rollouts import Rollout
from orderproof.laws.training.scored_labels import ScoredLabel, find_scored_labels
from orderproof.laws.training.training_batch import TrainingBatch
from orderproof.recording.execution import relative_difference
from orderproof.seeded_random import seeded_random

Loss = Callable[[Any, Any], Any]
_NOTHING: AbstractContextManager[Any] = nullcontext()
UNREAD = 1e-6  # relative: an input whose change moves the logits by less is not read


@dataclass(frozen=True)
class Terms:
    """The loss, the logits [row, output, vocabulary] and the gradient of the loss at them."""

    loss: float
    logits: Tensor
    gradient: Tensor


@dataclass(frozen=True)
class TrainingStep:
    """A model, a batch and a loss, in one precision."""

    model: nn.Module
    batch: TrainingBatch
    loss: Loss | None = None
    double: bool = False
    seed: int = 0
    collation: Collation | None = None  # the collator that made the batch, with its samples
    rollout: Rollout | None = None  # the engine that generates what the batch holds
    tries: int = 6  # labels, outputs, documents and rows that are tried at most
    may_be_copied: bool = True
    may_be_proved: bool = True
    is_of_run: bool = False  # the model is that of a run that goes on
    weighs_labels: bool = False  # by preferences or rewards

    def in_float64(self) -> TrainingStep:
        """The same step with a model of float64."""
        return replace(self, model=copy.deepcopy(self.model).double(), double=True)

    def terms(self, batch: TrainingBatch) -> Terms:
        """The terms of a batch. Raises `UnsupportedCallError` if the logits are not seen, `SubjectError`.

        With other labels than the given batch, the layers of the model need not run again: see `KeptOutputs`.
        """
        if not batch.differs_in_labels(self.batch) or "_first_call" not in vars(self):
            return self._terms(batch)
        if self._outputs.is_exact:
            return self._terms(batch, self._outputs.reused())
        found = self._terms(batch)
        if self._outputs.is_exact is None and batch is not self.batch:
            self._outputs.settle(is_exact=self._is_reusable(batch, found))
        return found

    def loss_again(self) -> float:
        """The loss of the given batch in another call, after one with another label. Raises as `terms`."""
        with suppress(OrderproofError):  # a batch without such labels is a matter of the laws
            for row, index in self.batch.included().nonzero()[:1].tolist():
                self.terms(self.batch.with_other_label(row, index))
        return self.terms(self.batch).loss

    def _is_reusable(self, batch: TrainingBatch, expected: Terms) -> bool:
        """True if a call that reuses outputs finds the same terms."""
        try:
            found = self._terms(batch, self._outputs.reused())
        except Exception:  # noqa: BLE001 - the code of the user may need what is not kept
            return False
        same = torch.equal(found.logits, expected.logits) and torch.equal(found.gradient, expected.gradient)
        return same and found.loss == expected.loss

    def _terms(self, batch: TrainingBatch, around: AbstractContextManager[Any] = _NOTHING) -> Terms:
        loss, outputs = self._call(batch, around)
        try:
            gradients: Any = torch.autograd.grad(loss, outputs, allow_unused=True)
        except RuntimeError as error:
            raise SubjectError(
                f"expected a loss before backward, which the audit calls itself; {first_line(error)}"
            ) from error
        if all(each is None for each in gradients):
            raise UnsupportedCallError("its loss is not computed from the logits that the model returns")
        filled = [torch.zeros_like(x) if g is None else g for x, g in zip(outputs, gradients, strict=True)]
        gradient = _joined(filled)
        if not bool(gradient.isfinite().all()):
            raise SubjectError("expected finite gradients; the gradient of the loss at the logits has NaN or infinity")
        return Terms(float(loss.detach()), _joined(outputs).detach(), gradient)

    def logits(self, batch: TrainingBatch) -> Tensor:
        """The logits of a batch [row, output, vocabulary], whatever its loss. Raises `UnsupportedCallError`."""
        return _joined(self._call(batch)[1]).detach()

    def alone(self, row: int, start: int, end: int) -> tuple[TrainingBatch, Tensor]:
        """The tokens from `start` to `end` of a row as a batch, and their logits [output, vocabulary].

        A loss that takes no single row gets the row as often as the batch has rows. Raises `UnsupportedCallError`.
        """
        part, rows = self.batch.part(row, start, end), len(self.batch.tokens)
        try:
            return part, self.logits(part)[0]
        except UnsupportedCallError:
            if rows == 1:
                raise
        part = part.repeated(rows)
        return part, self.logits(part)[0]

    def loss_of(self, batch: TrainingBatch) -> Any:
        """The loss of a batch, called as it is: on the tensors of the batch themselves."""
        values = batch.values
        kind = batch.kind
        return self._loss(dict(values) if kind is dict else kind(values.values() if kind in (tuple, list) else values))

    def training_loss(self, batch: TrainingBatch) -> float:
        """The loss of a batch in training mode."""
        with training_mode(self.model):
            return float(self._call(batch)[0].detach())

    def gradients(
        self, batch: TrainingBatch, around: AbstractContextManager[Any] = _NOTHING
    ) -> dict[str, Tensor | None]:
        """The gradients of the parameters in training mode, by name; with `around`, both passes run in a context.

        Random numbers that the backward pass draws are others than those of the forward pass. Raises `SubjectError`.
        """
        parameters = dict(self.model.named_parameters())
        with seeded_random(self.seed), training_mode(self.model), own_gradients(self.model), around:
            loss, _ = self._call(batch)
            torch.manual_seed(self.seed + 1)
            loss.backward()  # type: ignore[no-untyped-call]
            return {name: x.grad for name, x in parameters.items() if x.requires_grad}

    @property
    def base(self) -> Terms:
        """The terms of the given batch."""
        return self._first_call[0]

    @property
    def asks_for_group(self) -> bool:
        """True if the loss asks for a process group of torch.distributed."""
        return self._first_call[1]

    @cached_property
    def _first_call(self) -> tuple[Terms, bool]:
        with group_questions() as files:
            return self._terms(self.batch, self._outputs.kept()), bool(files)

    @cached_property
    def _outputs(self) -> KeptOutputs:
        return KeptOutputs.of(self.model)

    @cached_property
    def moved(self) -> Terms:
        """The terms with other tokens at the first place of each row and at a scored output: a control of laws."""
        batch = self.batch
        where = torch.zeros_like(batch.real)
        where[torch.arange(len(where)), batch.real.long().argmax(1)] = True
        with suppress(UnsupportedCallError):
            where[self.scored_place] = True
        return self.terms(batch.with_other_tokens(where))

    @cached_property
    def scored_place(self) -> tuple[int, int]:
        """The row and the index of an output that scores a label. Raises `UnsupportedCallError`."""
        length = self.batch.tokens.shape[1]
        found = [(scored.row, k) for scored in self.scored_labels for k in scored.outputs if k < length]
        if not found:
            raise UnsupportedCallError("no output that scores a label is known: see OP702")
        return found[0]

    @cached_property
    def scored_labels(self) -> tuple[ScoredLabel, ...]:
        """Some labels that must be counted, with the outputs that score them. Raises `UnsupportedCallError`."""
        return find_scored_labels(self)

    @cached_property
    def offset(self) -> int:
        """The index of the output that scores a label, less that of the label. Raises `UnsupportedCallError`."""
        outputs = [scored.outputs for scored in self.scored_labels]
        found = {scored.outputs[0] - scored.index for scored in self.scored_labels if len(scored.outputs) == 1}
        if len(found) != 1 or any(len(each) > 1 for each in outputs):
            raise UnsupportedCallError("the output that scores a label is not known: see OP702")
        return found.pop()

    def counted(self, batch: TrainingBatch) -> Tensor:
        """The labels that must be counted and that have an output [row, index of the label]."""
        outputs = torch.arange(batch.tokens.shape[1], device=batch.tokens.device) + self.offset
        return batch.included() & (outputs >= 0) & (outputs < self.base.logits.shape[1])

    def ignores(self, role: str) -> bool:
        """True if the batch has a mask or position ids, whose change changes no logits."""
        given = self.batch.role(role)
        if given is None:
            return False
        other = torch.arange(given.shape[1]).expand_as(given) if role == "positions" else torch.ones_like(given)
        changed = self.logits(self.batch.replaced(role, other.to(given)))
        return relative_difference(self.base.logits, changed) <= UNREAD

    def watched(self, batch: TrainingBatch, around: AbstractContextManager[Any]) -> Tensor:
        """The logits, as in `logits`, of a call of the loss that is made inside a context."""
        return _joined(self._call(batch, around)[1]).detach()

    def _call(
        self, batch: TrainingBatch, around: AbstractContextManager[Any] = _NOTHING
    ) -> tuple[Tensor, list[Tensor]]:
        """The loss and the logits of each call of the model. Raises `SubjectError`, `UnsupportedCallError`."""
        captured: list[Any] = []
        given = batch.given(double=self.double)
        handle = self.model.register_forward_hook(lambda _module, _given, output: captured.append(output))
        try:
            with seeded_random(self.seed), torch.enable_grad(), without_autocast(), around:
                loss = self._loss(given)
        except (OrderproofError, KeyboardInterrupt):
            raise
        except Exception as error:  # the code of the user
            raise UnsupportedCallError(f"the loss raised {first_line(error)}") from error
        finally:
            handle.remove()
        if not isinstance(loss, Tensor) or loss.numel() != 1:
            raise SubjectError(f"expected a loss that is one number; got {_described(loss)}")
        if not loss.requires_grad:
            raise SubjectError("expected a loss with a gradient; got one that is detached, or back-propagated already")
        outputs = [x for x in (_logits(each, batch) for each in captured) if x is not None]
        if not outputs or sum(len(x) for x in outputs) != len(batch.tokens):
            raise UnsupportedCallError(
                "its loss calls no model that returns logits [row, token, vocabulary] of each row"
            )
        return loss.reshape(()), outputs

    def _loss(self, given: Any) -> Any:
        if self.loss is not None:
            return self.loss(self.model, given)
        output = self.model(**given) if isinstance(given, Mapping) else self.model(*given)
        found = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
        if found is None and isinstance(output, tuple):
            found = next((x for x in output if isinstance(x, Tensor) and x.numel() == 1), None)
        if found is None:
            raise SubjectError("the model returns no loss for this batch: expected loss, a function of model and batch")
        return found


def _joined(parts: list[Tensor]) -> Tensor:
    """The rows of micro-batches [row, output, vocabulary]; shorter ones are filled with 0."""
    length = max(part.shape[1] for part in parts)
    return torch.cat([nn.functional.pad(part, (0, 0, 0, length - part.shape[1])) for part in parts])


def _logits(output: Any, batch: TrainingBatch) -> Tensor | None:
    """The logits in the output of a model: the tensor of this name, else the first [row, token, vocabulary]."""
    parts = dict(output) if isinstance(output, Mapping) else {}
    if not parts:
        parts = dict(enumerate(output if isinstance(output, (tuple, list)) else [output]))
    named = [parts["logits"]] if "logits" in parts else list(parts.values())
    for value in named:
        if not isinstance(value, Tensor) or not value.requires_grad or value.dim() not in (2, 3):
            continue
        if value.dim() == 3:
            return value
        if value.shape[0] == batch.tokens.numel():  # a view would not be on the way to the loss
            raise UnsupportedCallError(
                "the model returns logits [row * token, vocabulary]: expected [row, token, vocabulary]"
            )
    return None


def _described(value: object) -> str:
    return f"a tensor {list(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
