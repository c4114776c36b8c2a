"""Models that try to pass for what they are not: each breaks its law and is not proved, its honest twin is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from orderproof import laws
from orderproof.auditing.completion import certificate
from orderproof.auditing.examine import Examination
from orderproof.auditing.verdict import prove_law
from orderproof.prover.recheck import recheck
from orderproof.record import Finding
from orderproof.subjects import Subject, from_module
from tests.prover.walking import TOKENS, WIDTH

Function = Callable[..., Tensor]


class Plain(nn.Module):
    """A function of x [batch, token, width] as a module."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


class Padded(Plain):
    """A function of x and a mask that is 1 at the real tokens."""

    def forward(self, x: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        mask = torch.ones(x.shape[:2], dtype=torch.long) if attention_mask is None else attention_mask
        return self.function(x, mask)


class Placed(Plain):
    """A function of x and position ids."""

    def forward(self, x: Tensor, position_ids: Tensor | None = None) -> Tensor:
        return self.function(x, torch.arange(x.shape[1]).unsqueeze(0) if position_ids is None else position_ids)


@dataclass(frozen=True)
class Attack:
    """A function that breaks a law, and one like it that obeys it."""

    name: str
    law: str
    broken: Function
    honest: Function
    batch: int = 2


CALLED: dict[str, type[Plain]] = {"padding": Padded, "packing": Placed, "position_labelled": Placed}


def subject_of(attack: Attack, function: Function) -> Subject:
    torch.manual_seed(0)
    module = CALLED.get(attack.law, Plain)(function)
    return from_module(module, (torch.zeros(attack.batch, TOKENS, WIDTH),), token_axis=1, length=TOKENS)


def finding(attack: Attack, function: Function) -> Finding:
    (found,) = prove_law(Examination(subject_of(attack, function), TOKENS), laws.get(attack.law))
    return found


def beside(x: Tensor, entry: Tensor) -> Tensor:
    """The tokens behind one more entry in each row."""
    return torch.cat([entry.expand(x.shape[0], 1, -1), x], 1)


def scores(x: Tensor) -> Tensor:
    return x @ x.transpose(1, 2)


def attend(x: Tensor, hidden: Tensor | None = None) -> Tensor:
    """Self-attention without weights, in which some tokens do not see some."""
    s = scores(x) if hidden is None else scores(x).masked_fill(hidden, -torch.inf)
    return s.softmax(-1) @ x


def added(x: Tensor, bias: Tensor) -> Tensor:
    """Self-attention with something added to its scores."""
    return (scores(x) + bias).softmax(-1) @ x


def keys(mask: Tensor) -> Tensor:
    """Pads, as keys that no token sees."""
    return (mask == 0)[:, None, :]


def low(mask: Tensor) -> Tensor:
    """The most negative number where the mask is 0."""
    return (1 - mask) * torch.finfo(torch.float32).min


def seen(x: Tensor, mask: Tensor) -> Tensor:
    """Torch's attention under a mask of what is seen, or to be added."""
    return F.scaled_dot_product_attention(x, x, x, attn_mask=mask)


def sink(x: Tensor, mask: Tensor, entry: Tensor) -> Tensor:
    """Attention that hides pads, with one more score in each line."""
    s = scores(x).masked_fill(keys(mask), -torch.inf)
    return torch.cat([s, entry.expand(x.shape[0], x.shape[1], 1)], -1).softmax(-1)[..., :-1] @ x


def conv(x: Tensor) -> Tensor:
    """A window of three tokens."""
    return F.conv1d(F.pad(x.transpose(1, 2), (1, 1)), torch.ones(WIDTH, WIDTH, 3)).transpose(1, 2)


def apart(p: Tensor) -> Tensor:
    """Tokens of different documents: a document starts where the positions do."""
    document = (p == 0).cumsum(-1)
    return document[..., :, None] != document[..., None, :]


def rows_of(x: Tensor, p: Tensor) -> Tensor:
    """The tokens at these places."""
    return x.gather(1, p[..., None].expand(x.shape))


def written(x: Tensor, row: Tensor) -> Tensor:
    """The running sum before and after a write to a view of what is summed, and their difference."""
    held = x.clone()
    before = held.cumsum(1)
    held.view(-1, WIDTH).view(2, TOKENS, WIDTH)[:, 0].add_(row)
    return before + held.cumsum(1)


def rare(x: Tensor) -> Tensor:
    """What no random token shows."""
    return (x - 50).relu()


def unless_zero(x: Tensor, zero: Tensor) -> Tensor:
    """The mean of everything, but where something is zero, as it is said to be."""
    return x + torch.where(zero == 0, 0.0, x.mean((1, 2))[:, None, None])


def pooled(x: Tensor, ahead: int) -> Tensor:
    """Means over a token, the one before it and some ahead, divided by minus three."""
    held = F.pad(x[:, None], (0, 0, 1, ahead))
    return F.avg_pool2d(held, (2 + ahead, 1), stride=1, divisor_override=-3)[:, 0]


ATTACKS = [
    # ------------------------------------------------------------ batch: which entry of the output is whose
    Attack("rows_averaged", "batch", lambda x: x.mean(0, keepdim=True), lambda x: x.mean(1, keepdim=True)),
    Attack("everything_averaged", "batch", lambda x: x.mean((0, 1), keepdim=True)[0], lambda x: x.mean(1)),
    Attack("rows_exchanged", "batch", lambda x: x.mean(1).flip(0), lambda x: x.mean(1).flip(1)),
    Attack("everything_in_one", "batch", lambda x: x.mean((0, 1)).expand(2, -1), lambda x: x.amax(1)),
    Attack("one_number", "batch", lambda x: x.mean(), lambda x: x.mean((1, 2))),
    Attack(
        "rows_averaged_before_the_tokens",
        "batch",
        lambda x: beside(x, x.mean((0, 1))),
        lambda x: beside(x, x.mean(1, keepdim=True)),
    ),
    Attack(
        "rows_averaged_behind_the_tokens",
        "batch",
        lambda x: beside(x, x.mean((0, 1))).flip(1),
        lambda x: beside(x, x.mean(1, keepdim=True)).flip(1),
    ),
    Attack("middle_row_of_three", "batch", lambda x: x + x[1:2], lambda x: x + x.mean(1, keepdim=True), batch=3),
    Attack(
        "rows_averaged_by_twos",
        "batch",
        lambda x: x.view(2, 2, TOKENS, WIDTH).mean(1),
        lambda x: x.view(2, 2, TOKENS, WIDTH).mean(3).view(4, TOKENS),
        batch=4,
    ),
    Attack(
        "rows_and_tokens_together",
        "batch",
        lambda x: attend(x.reshape(1, -1, WIDTH)).view_as(x),
        lambda x: x.reshape(-1, WIDTH).relu().view_as(x),
    ),
    # ------------------------------------------------------------ padding: the mask used for something else
    Attack(
        "pads_read_at_real_tokens",
        "padding",
        lambda x, m: x.mean(1, keepdim=True) * m[..., None],
        lambda x, m: attend(x, keys(m)) * m[..., None],
    ),
    Attack(
        "sum_of_the_pads",
        "padding",
        lambda x, m: (x * (1 - m)[..., None]).sum(1, keepdim=True).expand(x.shape),
        lambda x, m: (x * m[..., None]).sum(1, keepdim=True).expand(x.shape),
    ),
    Attack(
        "mean_over_pads",
        "padding",
        lambda x, m: attend(x, keys(m)) + x.mean(1, keepdim=True),
        lambda x, m: attend(x, keys(m)) + (x * m[..., None]).sum(1, keepdim=True) / m.sum(1)[:, None, None],
    ),
    Attack(
        "scores_times_mask",
        "padding",
        lambda x, m: (scores(x) * m[:, None]).softmax(-1) @ x,
        lambda x, m: added(x, low(m)[:, None]),
    ),
    Attack(
        "mask_of_minus_10000",
        "padding",
        lambda x, m: added(x, (1 - m)[:, None] * -1e4),
        lambda x, m: added(x, 2 * low(m)[:, None]),
    ),
    Attack(
        "mask_of_the_queries_twice",
        "padding",
        lambda x, m: added(x, low(m)[:, :, None] + low(m)[:, :, None]),
        lambda x, m: added(x, low(m)[:, None] + low(m)[:, None]),
    ),
    Attack("mask_upside_down", "padding", lambda x, m: attend(x, ~keys(m)), lambda x, m: attend(x, keys(m))),
    Attack(
        "rows_wholly_hidden_and_looked_at",
        "padding",
        lambda x, m: attend(attend(x, keys(m) | keys(m).mT).nan_to_num() + x, keys(m[:1]).expand(2, -1, -1)),
        lambda x, m: attend(attend(x, keys(m)) + x, keys(m)),
    ),
    Attack(
        "pads_that_are_no_number",
        "padding",
        lambda x, m: attend(attend(x, keys(m) | keys(m).mT), keys(m)),
        lambda x, m: seen(seen(x, ~(keys(m) | keys(m).mT)), ~keys(m).expand(-1, TOKENS, -1)),
    ),
    Attack(
        "torch_with_a_mask_of_queries",
        "padding",
        lambda x, m: seen(x, (m != 0)[:, :, None].expand(-1, -1, TOKENS)),
        lambda x, m: seen(x, (m != 0)[:, None].expand(-1, TOKENS, -1)),
    ),
    Attack(
        "mask_of_ones_and_zeros_added",
        "padding",
        lambda x, m: seen(x, m.to(x.dtype)[:, None].expand(-1, TOKENS, -1)),
        lambda x, m: seen(x, low(m).to(x.dtype)[:, None].expand(-1, TOKENS, -1)),
    ),
    Attack(
        "largest_of_the_pads_too",
        "padding",
        lambda x, m: x + x.masked_fill((m != 0)[..., None], -torch.inf).amax(1, keepdim=True),
        lambda x, m: x + x.masked_fill((m == 0)[..., None], -torch.inf).amax(1, keepdim=True),
    ),
    Attack("mask_of_the_first_row", "padding", lambda x, m: attend(x, keys(m[:1])), lambda x, m: attend(x, keys(m))),
    Attack(
        "tokens_backwards", "padding", lambda x, m: attend(x, keys(m)).flip(1), lambda x, m: attend(x, keys(m)).flip(2)
    ),
    Attack("window_over_pads", "padding", lambda x, m: conv(x), lambda x, m: conv(x * m[..., None])),
    Attack(
        "sink_of_pads",
        "padding",
        lambda x, m: sink(x, m, x.mean((1, 2), keepdim=True)),
        lambda x, m: sink(x, m, torch.zeros(1)),
    ),
    Attack(
        "pads_sorted_to_the_end",
        "padding",
        lambda x, m: rows_of(x, m.argsort(1, descending=True)),
        lambda x, m: attend(x[:, torch.arange(TOKENS)], keys(m)),
    ),
    Attack(
        "rows_and_tokens_together",
        "padding",
        lambda x, m: attend(x.reshape(1, -1, WIDTH)).view_as(x),
        lambda x, m: attend(x.reshape(1, -1, WIDTH), (m == 0).reshape(1, 1, -1)).view_as(x),
    ),
    # ------------------------------------------------------------ packing
    Attack(
        "mean_of_both",
        "packing",
        lambda x, p: attend(x, apart(p)) + x.mean(1, keepdim=True),
        lambda x, p: attend(x, apart(p)),
    ),
    Attack(
        "positions_as_places",
        "packing",
        lambda x, p: attend(x, apart(p)) + rows_of(x, p),
        lambda x, p: attend(x, apart(p)) + x[:, torch.arange(TOKENS)],
    ),
    Attack(
        "positions_compared_across_documents",
        "packing",
        lambda x, p: attend(x, p[..., :, None] < p[..., None, :]),
        lambda x, p: attend(x, apart(p) | (p[..., :, None] < p[..., None, :])),
    ),
    Attack(
        "running_sum",
        "packing",
        lambda x, p: attend(x, apart(p)) + x.cumsum(1),
        lambda x, p: attend(x, apart(p)) + x.cumsum(2),
    ),
    # ------------------------------------------------------------ position_labelled
    Attack(
        "positions_as_places",
        "position_labelled",
        lambda x, p: attend(rows_of(x, p)),
        lambda x, p: attend(x + F.embedding(p, torch.eye(9)[:, :WIDTH])),
    ),
    Attack(
        "sorted_by_position",
        "position_labelled",
        lambda x, p: attend(rows_of(x, p.argsort(1))),
        lambda x, p: attend(x, p[..., :, None] < p[..., None, :]),
    ),
    Attack(
        "distance_from_the_place",
        "position_labelled",
        lambda x, p: added(x, -(p[..., None] - torch.arange(TOKENS)).abs().to(x.dtype)),
        lambda x, p: added(x, -(p[..., None] - p[..., None, :]).abs().to(x.dtype)),
    ),
    Attack(
        "running_sum_of_positions",
        "position_labelled",
        lambda x, p: attend(x + p.cumsum(1)[..., None]),
        lambda x, p: attend(x + p.sum(1)[:, None, None]),
    ),
    Attack(
        "first_token_before_the_others",
        "position_labelled",
        lambda x, p: beside(attend(x), x[:, :1]),
        lambda x, p: beside(attend(x), x.amax(1, keepdim=True)),
    ),
    # ------------------------------------------------------------ steps that are shared, views and writes
    Attack(
        "two_constants_of_one_shape",
        "causal",
        lambda x: attend(
            attend(x, torch.ones(TOKENS, TOKENS).triu(1).bool()), torch.ones(TOKENS, TOKENS).triu(2).bool()
        ),
        lambda x: attend(
            attend(x, torch.ones(TOKENS, TOKENS).triu(1).bool()), torch.ones(TOKENS, TOKENS).triu(1).bool()
        ),
    ),
    Attack("same_step_after_a_write", "causal", lambda x: written(x, x[:, -1]), lambda x: written(x, x[:, 0])),
    Attack(
        "windows_of_border_alone",
        "causal",
        lambda x: unless_zero(x, F.max_pool1d(x[..., :2], 2, stride=1, padding=1, dilation=3) * torch.zeros(1)),
        lambda x: unless_zero(x, F.max_pool1d(x[..., :2], 2, stride=1) * torch.zeros(1)),
    ),
    Attack(
        "largest_of_one_entry",
        "causal",
        lambda x: unless_zero(x, torch.ones(x.shape).scatter(-1, x[..., :1].topk(1)[1], 0.0)),
        lambda x: unless_zero(x, torch.ones(x.shape).scatter(-1, x.topk(WIDTH)[1], 0.0)),
    ),
    # ------------------------------------------------------------ windows, and memory behind a slice
    Attack("windows_divided_by_a_negative_number", "causal", lambda x: pooled(x, 1), lambda x: pooled(x, 0)),
    Attack(
        "memory_behind_a_slice",
        "causal",
        lambda x: x + rare(x.contiguous()[:, :1].as_strided((2, 1, WIDTH), x.stride(), (TOKENS - 1) * WIDTH)),
        lambda x: x + rare(x[:, :1]),
    ),
    Attack(
        "memory_that_grew",
        "causal",
        lambda x: x + torch.ops.aten.resize(x.new_zeros(WIDTH), [TOKENS * WIDTH]).view(TOKENS, WIDTH),
        lambda x: x + x.new_zeros(TOKENS * WIDTH).view(TOKENS, WIDTH),
    ),
]


def named(attack: Attack) -> str:
    return f"{attack.name}-{attack.law}"


@pytest.mark.parametrize("attack", ATTACKS, ids=named)
def test_model_that_breaks_its_law_is_not_proved(attack: Attack) -> None:
    found = finding(attack, attack.broken)
    assert found.verdict in ("refuted", "undecided"), found.reason
    assert "error in the prover" not in found.reason


@pytest.mark.parametrize("attack", ATTACKS, ids=named)
def test_its_honest_twin_is_proved(attack: Attack) -> None:
    found = finding(attack, attack.honest)
    assert found.verdict == "proved", found.reason
    assert found.deviation.float64 is not None
    assert found.deviation.float64 < 1e-12


SOON = ("first_token_before_the_others", "middle_row_of_three")


@pytest.mark.parametrize(
    "attack",
    [pytest.param(a, id=named(a), marks=() if a.name in SOON else pytest.mark.slow) for a in ATTACKS],
)
def test_certificates_of_its_honest_twin_hold(attack: Attack) -> None:
    """Of every relation of the law: of a middle row replaced too, and of a twin that does not read its positions."""
    law = laws.get(attack.law)
    exam = Examination(subject_of(attack, attack.honest), TOKENS).called(law.settings[0])
    assert isinstance(exam, Examination)
    for relation in law.relations(attack.batch):
        for output in exam.output_dims:
            made = certificate(exam, relation, output)
            assert made is not None
            assert recheck(made).law == law.name


def test_output_whose_rows_are_not_those_of_the_batch_has_no_witness() -> None:
    attack = Attack("merged", "batch", lambda x: x.reshape(-1, WIDTH), lambda x: x)
    assert finding(attack, attack.broken).verdict == "undecided"
