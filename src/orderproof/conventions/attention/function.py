"""An attention function in one form: queries, keys and values [row, head, token, width], and named options.

The weights of attention are read off the output: values are unit vectors, so that entry k of an output is the weight of
key k. Queries and keys are zeros where no others are given, so that all visible keys have the same weight.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from orderproof.errors import UnsupportedCallError
from orderproof.records.conventions import FunctionKind

WIDTH = 8  # of queries, keys and values; no question has more keys
OPTIONS = (
    "mask", "causal", "scale", "window", "soft_cap", "lengths", "sinks",
    "query_lengths",  # of rows, apart from those of keys
    "past",  # keys and values of earlier calls
    "grouped",  # fewer heads of keys
    "scores",  # queries and keys other than zeros
    "gradients",  # a call for which they are asked may take another path
)  # fmt: skip


@dataclass(frozen=True)
class AttentionFunction:
    """A function that attends.

    Attributes:
        name: Its name.
        version: The version of its library, or the file of the user's function.
        layout: The axes of its queries, in words.
        takes: The options that it takes, of `OPTIONS`.
        attend: (query, key, value, options) -> output, all [row, head, token, width].

    """

    name: str
    version: str
    layout: str
    takes: frozenset[str]
    attend: Callable[..., Tensor]

    kind: ClassVar[FunctionKind] = "attention"

    def weights(
        self,
        queries: int,
        keys: int,
        *,
        rows: int = 1,
        heads: int = 1,
        dtype: torch.dtype = torch.float32,
        query: Tensor | None = None,
        key: Tensor | None = None,
        **options: Any,
    ) -> Tensor:
        """The weights [row, head, query, key]. Raises what the function raises, and `UnsupportedCallError`."""
        shape = (rows, heads)
        query = torch.zeros(*shape, queries, WIDTH) if query is None else query.expand(*shape, queries, WIDTH)
        key = torch.zeros(*shape, keys, WIDTH) if key is None else key.expand(*shape, keys, WIDTH)
        value = torch.eye(keys, WIDTH).expand(*shape, keys, WIDTH)
        tensors = [x.to(dtype).contiguous() for x in (query, key, value)]
        found = self.attend(*tensors, **options)
        if found.shape != (rows, heads, queries, WIDTH):
            expected = [rows, heads, queries, WIDTH]
            raise UnsupportedCallError(f"expected an output of shape {expected}; got {[*found.shape]}")
        return found.detach()[..., :keys].float()

    def masked_weights(self, mask: Tensor, **options: Any) -> Tensor:
        """The weights [query, key] under a mask [query, key], given in the first form that the function takes.

        Raises what the function raises for the last form.
        """
        queries, keys = mask.shape
        forms = [mask[None, None], mask, mask[None]]
        if bool((mask == mask[:1]).all()):
            forms.append(mask[:1])  # [row, key]
        for form in forms[:-1]:
            try:
                return self.weights(queries, keys, mask=form, **options)[0, 0]
            except Exception:  # noqa: BLE001 - the user's function: it may refuse a form in any way
                continue
        return self.weights(queries, keys, mask=forms[-1], **options)[0, 0]
