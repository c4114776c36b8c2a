"""The first row of the default call with padding, its mask and its position ids."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from orderproof.laws.measured.cached_calls import CachedCalls

PADS_AMONG = (2, 0, 3, 1)  # of the rows of a batch of several lengths
ROW_AMONG = 2  # the one of them that is compared


class PaddedBatch(NamedTuple):
    """Padded tokens [row, token, ...] and their mask; position ids are among the arguments if the model takes them."""

    tokens: Tensor
    mask: Tensor
    unpadded_row: Tensor  # the first row without padding: [1, token, ...]
    call_arguments: dict[str, Tensor]  # the mask and the position ids, as arguments of a call


def padded_batch(calls: CachedCalls, *, left: int, right: int = 0, alone: bool) -> PaddedBatch:
    """The first row with padding, shortened if a table ends; unless `alone`, with a second row without padding."""
    count, pads = calls.default_length, left + right
    longest = calls.adapter.max_positions
    if longest is not None and count + pads > longest:
        count = longest - pads
    row = calls.default_tokens[:1, :count]
    filler = pad_tokens(calls, pads)
    tokens = torch.cat([filler[:, :left], row, filler[:, left:]], dim=1)
    place = torch.arange(count + pads)
    mask = ((place >= left) & (place < left + count)).unsqueeze(0)
    if not alone:
        tokens = torch.cat([tokens, calls.sample_tokens(count + pads, rows=1, other=4)])
        mask = torch.cat([mask, torch.ones_like(mask)])
    return PaddedBatch(tokens, mask, row, mask_arguments(calls, mask))


def batch_of_lengths(calls: CachedCalls, *, left: bool) -> PaddedBatch:
    """The first row with padding on one side as row `ROW_AMONG`, among rows of other lengths.

    It is neither the first nor the last row, of which alone a model may read the length. Neither the order of all rows
    by their length nor the reverse is its own inverse there, so another row comes back where a model sorts its rows and
    does not undo that.
    """
    pads = PADS_AMONG[ROW_AMONG]
    row = padded_batch(calls, left=pads if left else 0, right=0 if left else pads, alone=True)
    count = row.mask.shape[1]
    place, others = torch.arange(count), torch.tensor(PADS_AMONG).clamp(max=count - 1).unsqueeze(-1)
    mask = place >= others if left else place < count - others
    tokens = calls.sample_tokens(count, rows=len(mask), other=4)
    tokens[~mask] = pad_tokens(calls, count, rows=len(mask))[~mask]
    tokens[ROW_AMONG] = row.tokens[0]
    return PaddedBatch(tokens, mask, row.unpadded_row, mask_arguments(calls, mask))


def pad_tokens(calls: CachedCalls, count: int, *, rows: int = 1) -> Tensor:
    """Pads [row, token, ...]: the token id of pads, or any tokens if there is none."""
    filler = calls.sample_tokens(count, rows=rows, other=3)
    if calls.adapter.pad_token_id is None or filler.is_floating_point():
        return filler
    return torch.full_like(filler, calls.adapter.pad_token_id)


def mask_arguments(calls: CachedCalls, mask: Tensor) -> dict[str, Tensor]:
    """The mask [row, token] of a call, and its position ids if the model takes some."""
    if "positions" not in calls.adapter.supported_inputs:
        return {"mask": mask}
    return {"mask": mask, "positions": calls.adapter.first_position_id + (mask.long().cumsum(1) - 1).clamp(min=0)}
