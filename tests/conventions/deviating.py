"""Attention functions that an engineer writes, each with one convention of its own, and rotary functions."""

import math

import torch
from torch import Tensor


def attention(
    query, key, value, mask=None, causal=False, scale=None, window=None, soft_cap=None, lengths=None, sinks=None,
    query_lengths=None,
):  # fmt: skip
    """The usual conventions: True is seen, causal is aligned to the last key, a window counts the token itself."""
    return attend(query, key, value, mask, causal, scale, window, soft_cap, lengths, sinks, query_lengths)


def attend(
    query, key, value, mask=None, causal=False, scale=None, window=None, soft_cap=None, lengths=None,
    sinks=None, query_lengths=None, *,
    true_hides=False, added=False, multiplied=False, offset=None, capped_last=False, default=None, narrow=False,
    rows_first=False, window_behind=None, mask_only=False, flag_only=False, zeros=False, floor=None, take_turns=False,
    right=False, heads_of_mask=False, no_sinks=False, whole_masks=False, pads_attend=False,
):  # fmt: skip
    queries, keys = query.shape[2], key.shape[2]
    if key.shape[1] != query.shape[1]:
        times = query.shape[1] // key.shape[1]
        key, value = ((x.repeat(1, times, 1, 1) if take_turns else x.repeat_interleave(times, 1)) for x in (key, value))
    factor = (default or 1 / math.sqrt(query.shape[-1])) if scale is None else scale
    scores = query @ key.mT * factor if narrow else query.float() @ key.float().mT * factor
    if soft_cap and not capped_last:
        scores = soft_cap * torch.tanh(scores / soft_cap)
    least = -math.inf if floor is None else floor
    weight = 1.0
    if mask is not None and not flag_only:
        mask = of_four_axes(mask, queries, rows_first=rows_first, heads_of_mask=heads_of_mask, whole=whole_masks)
        if mask.dtype is torch.bool and not added and not multiplied:
            scores = scores.masked_fill(mask if true_hides else ~mask, least)
        elif multiplied:
            weight = mask
        else:
            scores = scores + mask
    place = torch.arange(keys) - torch.arange(queries)[:, None] - (keys - queries if offset is None else offset)
    hidden = torch.zeros_like(place, dtype=torch.bool)
    if causal and not (mask_only and mask is not None):
        hidden = hidden | (place > 0)
    if window is not None:
        behind = window - 1 if window_behind is None else window + window_behind
        hidden = hidden | (place < -behind) | (place > behind)
    scores = scores.masked_fill(hidden | pads_of(lengths, keys, right=right), least)
    scores = scores.masked_fill(pads_of(None if pads_attend else query_lengths, queries, right=False).mT, least)
    if soft_cap and capped_last:
        scores = soft_cap * torch.tanh(scores / soft_cap)
    scores = with_sinks(scores, None if no_sinks else sinks)
    weights = (scores.softmax(-1)[..., :keys] * weight).to(query.dtype)
    if zeros:
        weights = weights.nan_to_num(0.0)
    return weights @ value


def of_four_axes(mask, queries, *, rows_first, heads_of_mask, whole):
    """The mask with axes that fit [row, head, query, key]."""
    if mask.dim() == 4 and whole and mask.shape[2] != queries:
        raise ValueError("expected a mask of every query")
    if mask.dim() == 2 and rows_first:
        return mask[:, None, None]
    if mask.dim() == 3:
        return mask[None] if heads_of_mask else mask[:, None]
    return mask


def with_sinks(scores, sinks):
    """The scores with those of sinks [head] behind them."""
    if sinks is None:
        return scores
    return torch.cat([scores, sinks[:, None, None].expand(*scores.shape[:-1], 1)], -1)


def pads_of(lengths, keys, *, right):
    """True at pads [row, 1, 1, key]: before the last `lengths` keys of a row if `right`, else after the first."""
    if lengths is None:
        return torch.zeros(1, 1, 1, keys, dtype=torch.bool)
    index = torch.arange(keys)
    return (index < keys - lengths[:, None] if right else index >= lengths[:, None])[:, None, None]


def deviating(**own):
    """The usual function with one deviation."""

    def own_attention(
        query, key, value, mask=None, causal=False, scale=None, window=None, soft_cap=None, lengths=None, sinks=None,
        query_lengths=None,
    ):  # fmt: skip
        return attend(query, key, value, mask, causal, scale, window, soft_cap, lengths, sinks, query_lengths, **own)

    return own_attention


DEVIATIONS = {
    "true_hides": ({"true_hides": True}, {"boolean_mask": "True is hidden"}),
    "booleans_added": ({"added": True}, {"boolean_mask": "True is added to the score"}),
    "mask_multiplied": (
        {"multiplied": True},
        {"boolean_mask": "True is multiplied after the softmax", "integer_mask": "1 is multiplied after the softmax"},
    ),
    "causal_to_the_first_key": ({"offset": 0}, {"causal_fewer_queries": "aligned to the first key"}),
    "cap_after_the_mask": ({"capped_last": True}, {"soft_cap": "after the mask, which it undoes"}),
    "no_scale": ({"default": 1.0}, {"default_scale": "1"}),
    "scale_by_width": ({"default": 1 / 8}, {"default_scale": "1 / width"}),
    "scale_of_its_own": ({"default": 0.5}, {"default_scale": "0.5 at width 8"}),
    "narrow_scores": ({"narrow": True}, {"narrow_scores": "rounded to bfloat16 before the softmax"}),
    "mask_of_rows": ({"rows_first": True}, {"mask_of_two_axes": "[row, key]"}),
    "mask_of_heads": ({"heads_of_mask": True}, {"mask_of_three_axes": "[head, query, key]"}),
    "window_without_itself": (
        {"window_behind": 0},
        {"window": "itself, 2 before and 0 after (causal); itself, 2 before and 2 after (both sides)"},
    ),
    "window_too_wide": (
        {"window_behind": 1},
        {"window": "itself, 3 before and 0 after (causal); itself, 3 before and 3 after (both sides)"},
    ),
    "mask_replaces_causal": ({"mask_only": True}, {"mask_and_causal": "only the mask holds"}),
    "causal_replaces_mask": ({"flag_only": True}, {"boolean_mask": "True is ignored"}),
    "masked_rows_are_zeros": ({"zeros": True}, {"masked_row": "zeros"}),
    "masked_rows_are_means": ({"floor": -1e4}, {"masked_row": "the mean of all values"}),
    "sinks_left_out": ({"no_sinks": True}, {"sinks": "ignored"}),
    "masks_of_every_query": ({"whole_masks": True}, {"mask_of_four_axes": "refused"}),
    "queries_of_pads_attend": ({"pads_attend": True}, {"query_lengths": "what others give"}),
    "heads_in_turns": ({"take_turns": True}, {"grouped_heads": "in turns"}),
    "pads_on_the_left": ({"right": True}, {"lengths": "the last keys; queries of pads give what others give"}),
}


def tokens_before_heads(q, k, v, attention_mask=None):
    """The usual function with heads behind tokens; a mask of floating point is added."""
    return attend(*(x.transpose(1, 2) for x in (q, k, v)), attention_mask).transpose(1, 2)


def without_heads(q, k, v, is_causal=False):
    """Attention of one head [row, token, width], which returns its weights too."""
    _row, _token, _width = q.shape
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if is_causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:]).triu(1).bool(), -math.inf)
    weights = scores.softmax(-1)
    return weights @ v, weights


def sums(q, k, v):
    """No attention: sums of values."""
    return q * 0 + v.sum(-2, keepdim=True) + k * 0


def refuses(q, k, v, mask=None, causal=False):
    """Attention that refuses masks in a loop without an end, and causal flags by an error."""
    if causal:
        raise NotImplementedError("causal attention")
    return attend(q, k, v)


def rotate(x: Tensor, positions: Tensor, *, halves=True, sign=1.0, base=10_000.0, part=None, narrow=False):
    """A rotation; the first `part` elements are turned."""
    width = part or x.shape[-1]
    turned, rest = x[..., :width], x[..., width:]
    kind = x.dtype if narrow else torch.float32
    speeds = base ** (-torch.arange(0, width, 2, dtype=torch.float32) / width)
    angles = positions.to(kind)[..., None] * speeds.to(kind)
    while angles.dim() < x.dim():
        angles = angles.unsqueeze(-3)
    cos, sin = angles.cos().to(x.dtype), sign * angles.sin().to(x.dtype)
    if halves:
        a, b = turned.chunk(2, -1)
        found = torch.cat([a * cos - b * sin, b * cos + a * sin], -1)
    else:
        a, b = turned[..., ::2], turned[..., 1::2]
        found = torch.stack([a * cos - b * sin, b * cos + a * sin], -1).flatten(-2)
    return torch.cat([found, rest], -1)


ROTATIONS = {
    "neighbours": ({"halves": False}, {"pairs": "neighbours"}),
    "backwards": ({"sign": -1.0}, {"direction": "from the second element to the first"}),
    "another_base": ({"base": 500_000.0}, {"rotary_base": "5e+05"}),
    "a_part": ({"part": 4}, {"rotated_part": "the first 4 of 8 elements"}),
    "narrow": ({"narrow": True}, {"narrow_angles": "positions are rounded to bfloat16"}),
}


TABLE = torch.randn(16, 8, generator=torch.Generator().manual_seed(0))


def clamped(positions):
    return TABLE[positions.clamp(0, 15)]


def repeated(positions):
    return TABLE[positions % 16]


def cut(position_ids):
    return TABLE[position_ids.long()]


def of_rows(pos):
    """Positions [row, token]; pads have zeros."""
    _rows, _tokens = pos.shape
    return torch.where(pos[..., None] < 0, 0.0, TABLE[pos.clamp(min=0)])


TABLES = {
    "clamped": (clamped, {"after_the_end": "that of the last position", "before_the_start": "that of position 0"}),
    "repeated": (repeated, {"after_the_end": "that of position 0", "before_the_start": "that of the last position"}),
    "cut": (cut, {"after_the_end": "refused", "between_two": "rounded down, in silence"}),
    "of_rows": (of_rows, {"before_the_start": "zeros", "between_two": "refused"}),
}


def rotate_from(x, offset=0):
    """A rotation whose positions count from an offset; heads are behind tokens."""
    return rotate(x.transpose(1, 2), torch.arange(offset, offset + x.shape[1])).transpose(1, 2)
