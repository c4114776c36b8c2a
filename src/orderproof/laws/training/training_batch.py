"""A batch of a training step: which of its tensors are tokens, labels, masks and positions, and changed copies of it.

A batch is a mapping of tensors with the names that transformers and most loops use, or a pair (tokens, labels). Labels
are the tokens of the batch, either at their own index or moved to the index before (*shifted by the collator*); the
values decide which.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from orderproof.errors import SubjectError, UnsupportedCallError

IGNORED = -100  # the label that the losses of torch and transformers leave out
LEAST_MATCH = 0.9  # of the labels that are tokens of the batch
NAMES = {
    "tokens": ("input_ids", "tokens", "inputs", "idx", "x"),
    "labels": ("labels", "targets", "target", "label", "y"),
    "mask": ("attention_mask",),
    "positions": ("position_ids", "positions"),
    "documents": ("document_ids", "seq_idx", "segment_ids"),
}
SEQUENCE_STARTS = ("cu_seq_lens_q", "cu_seq_lens_k", "cu_seqlens")
_LONGEST = ("max_length_q", "max_length_k", "max_seqlen")


@dataclass(frozen=True)
class TrainingBatch:
    """The values of a batch by name, and the names of those with a role."""

    values: Mapping[Any, Any]
    roles: Mapping[str, Any]  # role -> key
    kind: type

    @classmethod
    def of(cls, given: Any, *, labelled: bool = True) -> TrainingBatch:
        """The batch of a mapping or a pair, with labels unless it is not `labelled`. Raises `SubjectError`."""
        if isinstance(given, (tuple, list)) and len(given) == 2:
            values: dict[Any, Any] = dict(enumerate(given))
            roles: dict[str, Any] = {"tokens": 0, "labels": 1}
        elif isinstance(given, Mapping):
            values, roles = dict(given), cls.roles_of(given)
        else:
            raise SubjectError(f"expected a batch as a dict of tensors or (tokens, labels); got {type(given).__name__}")
        found = cls(values, roles, type(given))
        found._check(("tokens", "labels") if labelled or "labels" in roles else ("tokens",))
        return found

    @staticmethod
    def roles_of(given: Any) -> dict[str, Any]:
        """The name of the tensor with each role in a mapping; empty for anything else."""
        values = given if isinstance(given, Mapping) else {}
        return {role: name for role, names in NAMES.items() for name in names[::-1] if _is_tensor(values, name)}

    def _check(self, needed: tuple[str, ...]) -> None:
        for role in needed:
            if role not in self.roles:
                names = ", ".join(map(str, self.values)) or "nothing"
                raise SubjectError(f"expected {role} in the batch, named {' or '.join(NAMES[role])}; got {names}")
            value = self.values[self.roles[role]]
            if not isinstance(value, Tensor) or value.is_floating_point() or value.dim() != 2:
                raise SubjectError(f"expected {role} as integers [row, token] in the batch; got {_described(value)}")
        if "labels" in needed and self.tokens.shape != self.labels.shape:
            shapes = f"{list(self.tokens.shape)} and {list(self.labels.shape)}"
            raise SubjectError(f"expected tokens and labels of one shape [row, token] in the batch; got {shapes}")

    def role(self, role: str) -> Tensor | None:
        """The tensor with a role, if the batch has one of the shape [row, token]."""
        value = self.values.get(self.roles.get(role))
        return value if isinstance(value, Tensor) and value.shape == self.tokens.shape else None

    @property
    def tokens(self) -> Tensor:
        """The tokens [row, token]."""
        return self.values[self.roles["tokens"]]  # type: ignore[no-any-return]

    @property
    def labels(self) -> Tensor:
        """The labels [row, token]."""
        return self.values[self.roles["labels"]]  # type: ignore[no-any-return]

    @cached_property
    def real(self) -> Tensor:
        """True for tokens that are no pads [row, token]."""
        mask = self.role("mask")
        return torch.ones_like(self.tokens, dtype=torch.bool) if mask is None else mask > 0

    @cached_property
    def documents(self) -> Tensor:
        """The number of the document of each token, -1 of a pad [row, token]."""
        stated, positions, mask = self.role("documents"), self.role("positions"), self.role("mask")
        starts = torch.zeros_like(self.real)
        if stated is not None:
            starts[:, 1:] = stated[:, 1:] != stated[:, :-1]
        elif positions is not None:
            starts[:, 1:] = positions[:, 1:] != positions[:, :-1] + 1
        elif mask is not None:
            starts[:, 1:] = mask[:, 1:] != mask[:, :-1]
        starts[:, 1:] &= self.real[:, 1:] & self.real[:, :-1]
        return torch.where(self.real, starts.cumsum(1), -1)

    @cached_property
    def shift(self) -> int:
        """The distance from a label to its token: 0, or 1 if the collator moved it. Raises `UnsupportedCallError`."""
        counted = (self.labels != IGNORED) & self.real
        shares = []
        for shift in (0, 1):
            length = self.tokens.shape[1] - shift
            among, same = counted[:, :length], (self.labels[:, :length] == self.tokens[:, shift:])
            shares.append(float(same[among].double().mean()) if bool(among.any()) else 0.0)
        if max(shares) < LEAST_MATCH:
            raise UnsupportedCallError(
                "its labels are not the next tokens of its batch, at their index or the one before"
            )
        if min(shares) >= LEAST_MATCH:
            raise UnsupportedCallError(
                "its tokens repeat, so their shift against the labels is not known: use another batch"
            )
        return shares.index(max(shares))

    def excluded(self) -> dict[str, Tensor]:
        """The labels that must add no term, by their kind [row, index of the label]. Each is in one kind."""
        target_real, same_document, first = self._at_targets()
        left_out = self.labels == IGNORED
        kinds = {
            "pads": ~target_real,
            "first tokens of documents": ~same_document,
            "labels of -100": left_out,
        }
        seen, found = first.clone(), {}
        for kind, where in kinds.items():
            found[kind] = where & ~seen
            seen |= where
        return found

    def included(self) -> Tensor:
        """The labels that must be counted [row, index of the label]."""
        target_real, same_document, first = self._at_targets()
        return target_real & same_document & ~first & (self.labels != IGNORED)

    def _at_targets(self) -> tuple[Tensor, Tensor, Tensor]:
        """Of each label: both its token and the one before are no pads; are of one document; it has none before."""
        documents = torch.nn.functional.pad(self.documents, (1, 1), value=-2)  # [row, token + 1]
        ahead, length = self.shift, self.tokens.shape[1]
        target, before = documents[:, 1 + ahead :][:, :length], documents[:, ahead:][:, :length]
        beyond = target == -2  # the token after the last one is not in the batch
        real = (target != -1) & (before != -1)
        return real, (target == before) | beyond | (before < 0) | (target < 0), before == -2

    def replaced(self, role: str, value: Tensor) -> TrainingBatch:
        """The batch with another tensor in a role."""
        return replace(self, values={**self.values, self.roles[role]: value})

    def differs_in_labels(self, other: TrainingBatch) -> bool:
        """True if another batch has the very values of this one, but for labels, and leaves out the same ones."""
        own, labels = self.values, self.roles.get("labels")
        if own.keys() != other.values.keys() or any(own[k] is not other.values[k] for k in own if k != labels):
            return False
        return labels is None or torch.equal(self.labels == IGNORED, other.labels == IGNORED)

    def with_other_tokens(self, where: Tensor) -> TrainingBatch:
        """The batch with other tokens of its own at some places, and the same labels. Raises `UnsupportedCallError`."""
        used = torch.unique(self.tokens[self.real])
        if len(used) < 2:
            raise UnsupportedCallError("all tokens of the batch are equal: use another batch")
        following = used[(torch.searchsorted(used, self.tokens.contiguous()) + 1) % len(used)]
        return self.replaced("tokens", torch.where(where, following, self.tokens))

    def with_other_label(self, row: int, index: int) -> TrainingBatch:
        """The batch with another token of its own as one label."""
        labels = self.labels.clone()
        others = torch.unique(self.tokens[self.real])
        others = others[others != labels[row, index]]
        labels[row, index] = others[0] if len(others) else (0 if int(labels[row, index]) else 1)
        return self.replaced("labels", labels)

    def part(self, row: int, start: int, end: int) -> TrainingBatch:
        """The tokens from `start` to `end` of a row as a batch. Raises `UnsupportedCallError`."""
        return replace(self, values={k: self._cut(k, v, row, start, end) for k, v in self.values.items()})

    def repeated(self, rows: int) -> TrainingBatch:
        """A batch of one row with this row several times."""
        one = {k: v for k, v in self.values.items() if isinstance(v, Tensor) and v.dim() and len(v) == 1}
        return replace(self, values={**self.values, **{k: v.expand(rows, *v.shape[1:]) for k, v in one.items()}})

    def _cut(self, name: Any, value: Any, row: int, start: int, end: int) -> Any:
        rows, length = self.tokens.shape
        if name in _LONGEST:
            return end - start
        if not isinstance(value, Tensor):
            return value
        if name in SEQUENCE_STARTS:
            return value.new_tensor([0, end - start])
        if value.shape[:2] == (rows, length):
            return value[row : row + 1, start:end]
        if value.dim() == 4 and value.shape[0] == rows and value.shape[-2:] == (length, length):
            return value[row : row + 1, :, start:end, start:end]
        if value.shape == (rows,):
            return value[row : row + 1]
        raise UnsupportedCallError(
            f"a part of {name!r} {list(value.shape)} is not known: expected tensors [row, token]"
        )

    def given(self, *, double: bool = False) -> Any:
        """The batch as the loss takes it, of copied tensors."""
        values = {k: _copied(v, double=double) for k, v in self.values.items()}
        if self.kind is dict:
            return values
        return self.kind(values.values() if issubclass(self.kind, (tuple, list)) else values)


def _is_tensor(values: Mapping[Any, Any], name: str) -> bool:
    return name in values and isinstance(values[name], Tensor)


def _copied(value: Any, *, double: bool) -> Any:
    if not isinstance(value, Tensor):
        return value
    return value.detach().double() if double and value.is_floating_point() else value.detach().clone()


def _described(value: object) -> str:
    return f"{value.dtype} {list(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
