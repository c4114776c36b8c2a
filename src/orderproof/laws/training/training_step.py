"""A training step that can be asked: its loss, its logits, and the gradient of the loss at them.

The model is a copy in evaluation mode, so that dropout does not matter, and autocast is off.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from orderproof.errors import OrderproofError, SubjectError, UnsupportedCallError, first_line
from orderproof.laws.training.call_settings import own_gradients, training_mode, without_autocast
from orderproof.laws.training.collation import Collation
from orderproof.laws.training.ranks import group_questions
from orderproof.laws.training.rollouts import Rollout
from orderproof.laws.training.training_batch import TrainingBatch
from orderproof.recording.execution import relative_difference
from orderproof.seeded_random import seeded_random

Loss = Callable[[Any, Any], Any]
_NOTHING: AbstractContextManager[Any] = nullcontext()
COUNTED = 1e-3  # of the largest change of a gradient: an output that changes by more scores the label
UNCOUNTED = 1e-6  # of the largest gradient: a label whose change moves it by less is not counted

UNREAD = 1e-6  # relative: an input whose change moves the logits by less is not read


@dataclass(frozen=True)
class Terms:
    """The loss, the logits [row, output, vocabulary] and the gradient of the loss at them."""

    loss: float
    logits: Tensor
    gradient: Tensor


@dataclass(frozen=True)
class ScoredLabel:
    """A label, the outputs of its row whose gradient it changes, and by how much."""

    row: int
    index: int
    outputs: tuple[int, ...]
    change: float  # relative to the largest gradient


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

    def in_float64(self) -> TrainingStep:
        """The same step with a model of float64."""
        return replace(self, model=copy.deepcopy(self.model).double(), double=True)

    def terms(self, batch: TrainingBatch) -> Terms:
        """The terms of a batch. Raises `UnsupportedCallError` if the logits are not seen, `SubjectError`."""
        loss, outputs = self._call(batch)
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
            return self.terms(self.batch), bool(files)

    @cached_property
    def scored_labels(self) -> tuple[ScoredLabel, ...]:
        """Some labels that must be counted, with the outputs that score them. Raises `UnsupportedCallError`."""
        places = self.batch.included().nonzero().tolist()
        if not places:
            raise UnsupportedCallError("its batch has no label that must be counted")
        count = min(self.tries, len(places))
        chosen = [places[round(k * (len(places) - 1) / max(count - 1, 1))] for k in range(count)]
        return tuple(scored for group in _apart(chosen) for scored in self._scored_together(group))

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

    def _scored_together(self, places: list[tuple[int, int]]) -> list[ScoredLabel]:
        """The outputs of labels in different rows and at different places, changed at once; else one by one."""
        found = self._scored(places)
        offsets = {x.outputs[0] - x.index for x in found if len(x.outputs) == 1}
        if len(places) > 1 and (len(offsets) != 1 or any(len(x.outputs) != 1 for x in found)):
            return [self._scored([place])[0] for place in places]
        return found

    def _scored(self, places: list[tuple[int, int]]) -> list[ScoredLabel]:
        """The outputs of some labels of different rows, all of which are changed."""
        batch = self.batch
        for row, index in places:
            batch = batch.with_other_label(row, index)
        change = (self.terms(batch).gradient - self.base.gradient).abs().amax(-1)
        largest, found = float(self.base.gradient.abs().max()), []
        for row, index in places:
            own = change if len(places) == 1 else change[row : row + 1]
            if float(own.max()) <= UNCOUNTED * largest:
                found.append(ScoredLabel(row, index, (), 0.0))
                continue
            counted = own > COUNTED * own.max()
            if int(counted.sum()) > 2 + int((self.base.gradient.abs().amax(-1) > 0).sum()) // 2:
                raise UnsupportedCallError(
                    "one label changes most gradients, as weights of classes do: its terms are not apart"
                )
            outputs = tuple(counted[row if len(places) == 1 else 0].nonzero().flatten().tolist())
            found.append(ScoredLabel(row, index, outputs, float(own.max()) / largest))
        return found

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


def _apart(places: Sequence[Sequence[int]]) -> list[list[tuple[int, int]]]:
    """Groups of places [row, index] of different rows and indices, in order."""
    groups: list[list[tuple[int, int]]] = []
    for row, index in places:
        fitting = (group for group in groups if all(row != r and index != i for r, i in group))
        group = next(fitting, None)
        if group is None:
            groups.append([(row, index)])
        else:
            group.append((row, index))
    return groups


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
