"""Remedies that several measured laws share, by the kind of the operator at which two calls first differ."""

from __future__ import annotations

from orderproof.laws.mixing_kinds import (
    ATTENTION,
    CHOICE,
    CONVOLUTION,
    POOLING,
    POSITIONS,
    RECURRENCE,
    RUNNING_SUM,
    STATISTIC,
)
from orderproof.records.audit import Remedy

ON_A_CACHE = {  # a call goes on where the calls before it ended
    ATTENTION: Remedy(
        text="Let a token of a call see every cached key and the keys of the call up to itself: align the causal mask "
        "to the end of the keys, and drop keys of a window after the call.",
        diff="-mask = torch.ones(n, total).tril()\n+mask = torch.ones(n, total).tril(total - n)",
    ),
    POSITIONS: Remedy(
        text="Count positions on from the length of the cache.",
        diff="-position_ids = torch.arange(n)\n+position_ids = past_key_values.get_seq_length() + torch.arange(n)",
    ),
    CONVOLUTION: Remedy(
        text="Keep the last kernel_size - 1 inputs of this convolution in the cache, and let a call start with them.",
        diff="-y = conv(pad(x, (kernel_size - 1, 0)))\n+y = conv(torch.cat([cache.inputs, x], -1))",
    ),
    RECURRENCE: Remedy(
        text="Start this recurrence from the state in the cache, not from zero, and let a step for one token compute "
        "what the scan over several computes.",
        diff="-state = scan(x, initial_state=None)\n+state = scan(x, initial_state=cache.state)",
    ),
    RUNNING_SUM: Remedy(
        text="Keep the last value of this running sum in the cache, and let a call go on from it.",
        diff="-total = x.cumsum(1)\n+total = cache.total + x.cumsum(1)",
    ),
    STATISTIC: Remedy(
        text="Take this statistic from the token alone, or keep in the cache what it has summed up: in a call on a "
        "cache it sees fewer tokens."
    ),
    POOLING: Remedy(text="Keep the inputs that a window still needs in the cache, and pool a call together with them."),
    CHOICE: Remedy(
        text="Choose for each token from that token alone: in a call on a cache others compete with it.",
    ),
}
OF_PADDED_ROWS = {  # the other rows, and pads, change nothing
    CONVOLUTION: Remedy(
        text="Set pads to zero before this convolution, in the first call and in each later one.",
        diff="-y = conv(x)\n+y = conv(x * attention_mask[:, None, :])",
    ),
    RECURRENCE: Remedy(
        text="Keep pads out of the state of this recurrence, in the first call and in each later one.",
        diff="-state = step(state, x[:, t])\n"
        "+state = torch.where(attention_mask[:, t, None].bool(), step(state, x[:, t]), state)",
    ),
    RUNNING_SUM: Remedy(
        text="Count within a row, and leave pads out of this running sum.",
        diff="-queue = chosen.reshape(batch * tokens, -1).cumsum(0)\n"
        "+queue = (chosen * attention_mask[..., None]).cumsum(1)",
    ),
    STATISTIC: Remedy(
        text="Take this statistic within a row, and over its real tokens only.",
        diff="-mean = x.mean((0, 1))\n+mean = (x * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)",
    ),
    POOLING: Remedy(text="Pool within a row, and over its real tokens only."),
    CHOICE: Remedy(
        text="Choose within a row, and leave pads out: no row may use up the capacity that another needs.",
        diff="-scores.topk(k)\n+scores.masked_fill(attention_mask == 0, -torch.inf).topk(k)",
    ),
}
