"""The fused head of TRL, whose models return log-probabilities of labels: a block in which its logits are seen.

    log p(label)  =  log softmax(z / T)[label]      z = hidden @ weight.T + bias, scaled and capped as the model does

In the block the head computes the logits of all labels as one tensor, and the model returns them too. Its
log-probabilities are compared with those of the fused head, once. Labels, their shift and masks stay those of TRL.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from orderproof.errors import UnsupportedCallError

_MODULE, _NAME = "trl.trainer.utils", "_ChunkedLogProbFunction"  # of TRL 1.16
_TOLERANCE = 1e-4  # absolute: of log-probabilities in float32


@contextmanager
def visible_logits(model: nn.Module) -> Iterator[None]:
    """A block in which the model returns the logits of its fused head, if it has one."""
    module = sys.modules.get(_MODULE)
    fused = getattr(module, _NAME, None)
    if fused is None:
        yield
        return
    head = _VisibleHead(fused)
    handles = [
        model.register_forward_pre_hook(head.begin, with_kwargs=True),
        model.register_forward_hook(head.end, always_call=True),
    ]
    setattr(module, _NAME, head)
    try:
        yield
    finally:
        setattr(module, _NAME, fused)
        for handle in handles:
            handle.remove()


class _VisibleHead:
    """A head in place of the fused one."""

    def __init__(self, fused: Any) -> None:
        self.fused, self.rows, self.is_checked = fused, 0, False
        self.logits: Tensor | None = None

    def __deepcopy__(self, _: Any) -> _VisibleHead:
        return self  # the hooks of a copied model are those of the block

    def begin(self, _model: nn.Module, given: Any, named: dict[str, Any]) -> None:
        """Note the number of rows of a call."""
        del given
        labels = named.get("labels")
        self.rows, self.logits = len(labels) if isinstance(labels, Tensor) else 0, None

    def end(self, _model: nn.Module, given: Any, output: Any) -> None:
        """Give the output of a call its logits."""
        del given
        if self.logits is not None and hasattr(output, "log_probs"):
            output["logits"] = self.logits
        self.logits = None

    def apply(self, hidden: Tensor, weight: Tensor, bias: Tensor | None, labels: Tensor, *given: Any) -> Any:
        """The log-probabilities of the labels [label], and what else the fused head returns of them."""
        if not self.rows or len(hidden) % self.rows:  # some labels only
            return self.fused.apply(hidden, weight, bias, labels, *given)
        temperature, _, softcap, scale = given[:4]
        logits = nn.functional.linear(hidden, weight, bias) * scale
        if softcap is not None:
            logits = softcap * (logits / softcap).tanh()
        self.logits = logits.unflatten(0, (self.rows, -1))
        log_probs = (self.logits.flatten(0, 1) / temperature).log_softmax(-1).gather(-1, labels[:, None])[:, 0]
        with torch.no_grad():  # the rest is logged
            expected, *rest = self.fused.apply(hidden, weight, bias, labels, *given)
        if not self.is_checked and float((log_probs.detach() - expected).abs().max()) > _TOLERANCE:
            raise UnsupportedCallError("the fused head of TRL has other log-probabilities than its logits")
        self.is_checked = True
        return (log_probs, *rest)
