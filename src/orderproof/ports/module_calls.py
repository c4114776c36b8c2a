"""Calls of a module with rows of tokens: ids, vectors, or all that its example has for a token."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from orderproof.adapter import ModelAdapter
from orderproof.errors import SubjectError, UnsupportedCallError
from orderproof.models.subject import Subject

MOST_TOKENS = 64  # that are drawn
DRAWS = 32


class ModuleCalls:
    """A module as its adapter calls it.

    Raises:
        SubjectError: Its inputs have no tokens.

    """

    def __init__(self, subject: Subject) -> None:
        adapter = None if subject.build_adapter is None else subject.build_adapter()
        if adapter is None or subject.whole_rows_reason:
            raise SubjectError(f"{subject.name}: expected an input with tokens; {subject.whole_rows_reason or 'none'}")
        self.subject = subject
        self.adapter: ModelAdapter = adapter
        self.takes_mask = "mask" in adapter.supported_inputs

    def of(self, module: nn.Module) -> ModuleCalls:
        """The same calls of a changed copy of the module."""
        changed = copy.copy(self)
        changed.adapter = self.adapter.with_module(module)
        return changed

    def draw(self) -> Tensor:
        """Different tokens of its kind: ids [token], or vectors [token, feature]."""
        length = self.adapter.default_length
        tokens = self.adapter.sample_tokens(1, length, 0)[0]
        for seed in range(1, DRAWS):
            if len(tokens) >= MOST_TOKENS:
                break
            more = self.adapter.sample_tokens(1, length, seed)[0]
            tokens = torch.unique(torch.cat([tokens, more]), dim=0)
        return tokens[:MOST_TOKENS]

    def check_takes(self, tokens: Tensor | None) -> None:
        """Raise `SubjectError` if its tokens are of another kind; None are ids."""
        own = self.adapter.sample_tokens(1, self.adapter.default_length, 0)[0, 0]
        given = torch.tensor(0) if tokens is None else tokens[0]
        if own.shape != given.shape or own.is_floating_point() != given.is_floating_point():
            raise SubjectError(
                f"{self.subject.name}: expected an example input like that of the reference, {_kind(given)} for each "
                f"token; got {_kind(own)}"
            )

    def outputs(self, tokens: Tensor, *, mask: Tensor | None = None) -> Tensor:
        """The numbers of each token [row, token, number]; of an output without tokens one entry.

        Raises `SubjectError`.
        """
        own = self.adapter.sample_tokens(1, 1, 0).dtype
        given = tokens if tokens.is_floating_point() else tokens.to(own)
        try:
            with torch.no_grad():
                output = self.adapter.call(given, mask=mask).output
        except UnsupportedCallError as error:
            raise SubjectError(f"{self.subject.name}: {error}") from error
        pooled = self.adapter.has_pooled_output
        found: Tensor = output.reshape(len(output), 1 if pooled else output.shape[1], -1)
        return found.detach()


def _kind(token: Tensor) -> str:
    """A token in words."""
    numbers = "a number" if token.is_floating_point() else "an id"
    return numbers if token.ndim == 0 else f"{' x '.join(map(str, token.shape))} numbers"
