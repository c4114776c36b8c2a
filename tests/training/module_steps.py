"""Training steps of a module that computes its loss itself: one planted fault each, and correct ones."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from tests.training.loop_steps import Small, left, packed, padded, pair

Step = tuple[Any, ...]


class Model(nn.Module):
    """A model that returns logits and a loss; `fault` names a line that is wrong."""

    def __init__(self, fault: str = "", **options: Any) -> None:
        super().__init__()
        self.body, self.fault = Small(**options), fault

    def forward(
        self,
        input_ids: Tensor,
        labels: Tensor,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        if self.fault == "positions":
            logits = self.body(input_ids)  # fault
        else:
            logits = self.body(input_ids, attention_mask, position_ids)
        return logits, self.loss(logits, labels)

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        if self.fault == "not shifted":
            return F.cross_entropy(logits.flatten(0, 1), labels.flatten())  # fault
        if self.fault == "pads":
            return F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].clamp(min=0).flatten())  # fault
        terms = F.cross_entropy(logits[:, :-1].transpose(1, 2), labels[:, 1:], reduction="none")
        counts = (labels[:, 1:] != -100).sum(1)
        if self.fault == "rows":
            return (terms.sum(1) / counts).mean()  # fault
        return terms.sum() / counts.sum()


# ---------------------------------------------------------------- correct


def good_padded() -> Step:
    return Model(), padded()


def good_packed() -> Step:
    return Model(), packed()


def good_left() -> Step:
    return Model(counts_pads=False), left()


def good_pair() -> Step:
    return Model(), {"input_ids": pair()[0], "labels": pair()[0]}


# ---------------------------------------------------------------- faults


def later_token() -> Step:
    """OP701: the mask shows one token too many."""
    return Model(ahead=1), padded()


def shifted_twice() -> Step:
    """OP702: the batch has shifted labels."""
    tokens = pair()[0]
    return Model(), {"input_ids": tokens[:, :-1], "labels": tokens[:, 1:]}  # fault


def not_shifted() -> Step:
    """OP702: the module does not shift."""
    return Model("not shifted"), padded()


def ignored_labels_counted() -> Step:
    """OP703: labels of -100 become the label 0."""
    return Model("pads"), {**padded(), "labels": padded()["labels"]}


def boundaries_counted() -> Step:
    """OP703: the first token of each packed document has a label."""
    batch = packed()
    batch["labels"] = batch["input_ids"]  # fault
    return Model(), batch


def positions_dropped() -> Step:
    """OP704: the module does not pass position ids on."""
    return Model("positions"), packed()


def pads_count_as_positions() -> Step:
    """OP705: positions count the pads on the left."""
    return Model(), left()


def rows_averaged() -> Step:
    """OP706: a mean over rows of means over labels."""
    return Model("rows"), padded()
