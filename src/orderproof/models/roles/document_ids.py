"""Inputs that say of each token, or of each pair of tokens, to which packed document it belongs.

Document ids [row, token] are integers that do not decrease along the tokens. A call decides: with the ids of two
documents a replaced token of the first changes no output of some token of the second, and does where all ids are equal;
tokens of one document see each other. A padding mask lacks the last. A common name decides only where calls show
nothing.
A mask [..., token, token] is one of documents by its values: it shows blocks along the diagonal.

In the plain call all tokens belong to one document; the laws of packed documents give two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from orderproof.batch_layout import second_document_start
from orderproof.models.module_calls import Call, ModuleCalls
from orderproof.models.own_errors import raise_own_error
from orderproof.models.roles.mask_calls import MAX_SECONDS, ROUNDING
from orderproof.models.roles.packed_documents import DocumentInput
from orderproof.models.roles.position_argument import PositionArgument
from orderproof.recording.captured_graph import leaves_by_name
from orderproof.recording.restored_state import restored_state
from orderproof.seeded_random import seeded_random
from orderproof.time_limit import TimeLimitExceeded, time_limit

DOCUMENT_NAMES = (
    "document_ids", "document_id", "doc_ids", "doc_id", "documents", "docs", "seq_idx", "seq_ids", "sequence_ids",
    "sequence_id", "sample_ids", "packing_ids", "pack_ids",
)  # fmt: skip
MIN_TOKENS = 4  # of a call that shows whether tokens of two documents see each other
INTEGERS = (torch.int8, torch.int16, torch.int32, torch.int64)


@dataclass(frozen=True)
class DocumentIds(DocumentInput):
    """The document of each token.

    Attributes:
        name: Its name.
        first: The id of the first document.
        dtype: Its dtype.
        has_rows: Its axes are [row, token]; otherwise [token], or [1, token], for all rows.
        rank: The number of its axes.

    """

    name: str
    first: int
    dtype: torch.dtype
    has_rows: bool
    rank: int = 2

    text = "document ids"

    def value(self, ids: Tensor) -> Tensor:
        """The ids [row, token] of documents, from 0 on, as this input takes them."""
        ids = ids if self.has_rows else ids[:1] if self.rank > 1 else ids[0]
        return (ids + self.first).to(self.dtype)

    def for_call(self, rows: int, tokens: int, device: torch.device) -> Tensor:
        """The input of one document."""
        return self.value(torch.zeros(rows, tokens, dtype=torch.int64, device=device))

    def for_documents(self, lengths: Sequence[int], rows: int, device: torch.device) -> Tensor:
        """The input of documents of these lengths, in each row."""
        return self.value(document_numbers(lengths, device).expand(rows, -1))


@dataclass(frozen=True)
class DocumentMask(DocumentInput):
    """A mask [..., token, token] that shows each document itself.

    Attributes:
        name: Its name.
        causal: It shows no later tokens.
        seen: Its value where it shows a token.
        hidden: Its value elsewhere.
        dtype: Its dtype.
        leading: Its axes before the last two, of size 1 but for rows.
        has_rows: The first of them runs over rows.

    """

    name: str
    causal: bool
    seen: float
    hidden: float
    dtype: torch.dtype
    leading: int
    has_rows: bool

    text = "mask of packed documents [token, token]"

    def value(self, bias: Tensor) -> Tensor:
        """A mask [row, 1, token, token] that is added to scores, as this input takes it."""
        seen = bias == 0
        if self.dtype is torch.bool:
            mask = seen if self.seen else ~seen
        else:
            mask = torch.where(seen, self.seen, self.hidden).to(self.dtype)
        mask = mask if self.has_rows else mask[:1]
        return mask if self.leading > 1 else mask[:, 0] if self.leading else mask[0, 0]

    def for_call(self, rows: int, tokens: int, device: torch.device) -> Tensor:
        """The input of one document."""
        return self._within(torch.zeros(tokens, dtype=torch.int64, device=device), rows)

    def for_documents(self, lengths: Sequence[int], rows: int, device: torch.device) -> Tensor:
        """The input of documents of these lengths, in each row."""
        return self._within(document_numbers(lengths, device), rows)

    def _within(self, document: Tensor, rows: int) -> Tensor:
        """The mask for the document of each token."""
        tokens = document.shape[0]
        index = torch.arange(tokens, device=document.device)
        seen = document.unsqueeze(-1) == document
        seen = seen & (index <= index.unsqueeze(-1)) if self.causal else seen
        return self.value(torch.where(seen, 0.0, -1.0).expand(rows, 1, tokens, tokens))


def document_numbers(lengths: Sequence[int], device: torch.device | None = None) -> Tensor:
    """The number of the document of each token [token], for documents of these lengths."""
    return torch.arange(len(lengths), device=device).repeat_interleave(torch.tensor(list(lengths), device=device))


def document_ids(name: str, value: Tensor, rows: int, tokens: int) -> DocumentIds | None:
    """The document ids of which an example may be some; None if it has not their form."""
    shape = tuple(value.shape)
    if value.dtype not in INTEGERS or shape not in ((rows, tokens), (1, tokens), (tokens,)) or tokens < 2:
        return None
    if bool((value.diff(dim=-1) < 0).any()):
        return None
    return DocumentIds(name, max(int(value.min()), 0), value.dtype, shape == (rows, tokens), len(shape))


def document_mask(name: str, value: Tensor, rows: int, tokens: int) -> DocumentMask | None:
    """The mask of packed documents that an example is: two or more blocks, or triangles, along the diagonal."""
    shape = tuple(value.shape)
    if not 2 <= len(shape) <= 4 or shape[-2:] != (tokens, tokens) or tokens < 2:
        return None
    if any(size != 1 for size in shape[1:-2]) or (len(shape) > 2 and shape[0] not in (1, rows)):
        return None
    square = value.detach().reshape(-1, tokens, tokens)[0].double()
    values = sorted(set(square.flatten().tolist()))
    seen, hidden = float(square[0, 0]), float(square[0, -1])
    if len(values) != 2 or seen == hidden:
        return None
    visible = square == seen
    begins = torch.tensor([True, *(not bool(visible[t, t - 1]) for t in range(1, tokens))])
    document = begins.cumsum(0)
    same, index = document.unsqueeze(-1) == document, torch.arange(tokens)
    for causal in (False, True):
        expected = same & (index <= index.unsqueeze(-1)) if causal else same
        if int(document[-1]) > 1 and torch.equal(expected, visible):
            has_rows = len(shape) > 2 and shape[0] == rows
            return DocumentMask(name, causal, seen, hidden, value.dtype, len(shape) - 2, has_rows)
    return None


def separates_documents(module: nn.Module, call: Call, ids: DocumentIds | PositionArgument) -> bool:
    """True if calls show that the ids hide tokens of one document from another, and none within a document.

    ``module`` takes the ids by their name. False too if the calls take longer than `MAX_SECONDS` together.
    """
    calls = ModuleCalls(module, call.examples.name)
    try:
        with time_limit(MAX_SECONDS), torch.no_grad(), restored_state(calls.module, calls.state):
            return _separates(module, call, ids)
    except (TimeLimitExceeded, SystemExit):
        return False
    except Exception as error:  # noqa: BLE001 - the user's forward refuses ids of this form
        raise_own_error(error)
        return False


def _separates(module: nn.Module, call: Call, ids: DocumentIds | PositionArgument) -> bool:
    first = next(place for place, axis in enumerate(call.examples.axes) if axis is not None)
    inputs, others = call.inputs(0), call.inputs(1)
    rows, tokens = inputs[first].shape[:2]
    if tokens < MIN_TOKENS:
        return False
    start, device = second_document_start(tokens), inputs[first].device
    apart, together = (ids.for_documents(each, rows, device) for each in ((start, tokens - start), (tokens,)))

    def outputs(values: Tensor, replaced: int | None = None) -> Tensor:
        given = [x.clone() for x in inputs]
        if replaced is not None:
            given[first][:, replaced] = others[first][:, replaced]
        with seeded_random(0):
            found = leaves_by_name(module(*given, **{ids.name: values})).values()
        kept = [x.double() for x in found if isinstance(x, Tensor) and x.is_floating_point()]
        return torch.cat([x.reshape(rows, tokens, -1) for x in kept if x.shape[:2] == (rows, tokens)], -1)

    def changed(values: Tensor, base: Tensor, replaced: int) -> Tensor:
        """The tokens whose outputs a replaced token changes."""
        difference: Tensor = (outputs(values, replaced) - base).abs().amax(dim=(0, 2))
        return torch.gt(difference, ROUNDING * base.abs().max())

    alone, joint = outputs(apart), outputs(together)
    if not (bool(alone.isfinite().all()) and bool(joint.isfinite().all())):
        return False
    within = [changed(apart, alone, place) for place in (0, start)]
    if not (bool(within[0][1:start].any()) and bool(within[1][start + 1 :].any())):
        return False
    return any(
        bool((changed(together, joint, place) & ~changed(apart, alone, place))[start:].any()) for place in range(start)
    )
