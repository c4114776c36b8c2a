"""Programs by which mutants of rules are noticed, and by no other: each has one use of one side condition."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.moved_programs import Case as MovedCase
from tests.theorems.programs import WIDTH, Case, Program, attend, lower

MASK = -1e9


def centred(x: Tensor) -> Tensor:
    """Every token sees all of its row."""
    return x - x.mean(1, keepdim=True)


def masked(m: Program, x: Tensor, changed: Tensor) -> Tensor:
    """Causal attention after something was added to its scores."""
    scores = m.first(x) @ m.second(x).mT + changed
    return scores.masked_fill(~lower(x), MASK).softmax(-1) @ m.third(x)


# ------------------------------------------------------------- elements that are written, read and joined


def feature_overwritten(m: Program, x: Tensor) -> Tensor:
    first = torch.zeros(*x.shape[:2], 1, dtype=torch.int64)
    return centred(x).scatter(2, first, 0.0)


def written_in_reverse(m: Program, x: Tensor) -> Tensor:
    places = torch.arange(x.shape[1]).flip(0)[None, :, None].expand_as(x)
    return torch.zeros_like(x).scatter(1, places, x)


def table_by_later_tokens(m: Program, x: Tensor) -> Tensor:
    return m.table((x.flip(1)[..., 0] > 0).long())


def token_before_counted_from_the_end(m: Program, x: Tensor) -> Tensor:
    return x + x[:, torch.arange(x.shape[1]) - 1]


def last_token_in_the_third_place(m: Program, x: Tensor) -> Tensor:
    written = x.clone()
    written[:, 2] = x[:, -1]
    written[:, 1] = 0
    return written


def every_second_overwritten(m: Program, x: Tensor) -> Tensor:
    written = centred(x)
    written[:, ::2] = 0
    return written


def last_overwritten(m: Program, x: Tensor) -> Tensor:
    written = x.clone()
    written[:, -1] = 0
    return written


def two_rows(x: Tensor) -> Tensor:
    """A row, and one of which every token sees all tokens, one after the other."""
    return torch.cat([x, centred(x)], 1)


def half_of_the_features(x: Tensor, own: int) -> Tensor:
    """The first features of a token, and others that see all tokens."""
    return torch.cat([x[..., :own], centred(x)[..., own:]], -1)


def groups_of_features(m: Program, x: Tensor) -> Tensor:
    mixed = half_of_the_features(x, 2).reshape(-1, WIDTH)
    return F.group_norm(mixed, 2).view(x.shape)[..., :2]


def first_tokens_only(m: Program, x: Tensor) -> Tensor:
    few = (torch.arange(x.shape[1]) < 3)[:, None]
    return torch.where(few, x, centred(x))


def seen_by_count(m: Program, x: Tensor, keys: Tensor, queries: Tensor) -> Tensor:
    return attend(m, x, keys[None] <= queries[:, None], fill=MASK)


def part_of_a_longer_row(m: Program, x: Tensor) -> Tensor:
    return two_rows(x)[:, -x.shape[1] :]


# ------------------------------------------------------------- whole rows


def kernel_of_the_mean(m: Program, x: Tensor) -> Tensor:
    kernel = m.depthwise.weight * x.mean((0, 1))[:, None, None]
    return F.conv1d(F.pad(x.mT, (2, 0)), kernel, groups=WIDTH).mT


def weight_of_the_first_key(m: Program, x: Tensor) -> Tensor:
    return x * (m.first(x) @ m.second(x).mT).softmax(-1)[..., :1]


def next_tokens_summed(m: Program, x: Tensor) -> Tensor:
    return F.pad(x[:, 1:].cumsum(1), (0, 0, 0, 1))


def right_side_of_all_tokens(m: Program, x: Tensor) -> Tensor:
    system = torch.eye(x.shape[1]) + lower(x).float() * 0.1
    return torch.linalg.solve_triangular(system.expand(x.shape[0], -1, -1), centred(x), upper=False, unitriangular=True)


def system_of_later_tokens(m: Program, x: Tensor) -> Tensor:
    y = x.flip(1)
    system = (y @ y.mT * 0.01).tril(-1)
    return torch.linalg.solve_triangular(system, torch.ones_like(x), upper=False, unitriangular=True)


def divided_by_a_small_diagonal(m: Program, x: Tensor) -> Tensor:
    system = torch.eye(x.shape[1]) * 1e-30
    right = -torch.ones(x.shape[1], x.shape[1])
    return masked(m, x, torch.linalg.solve_triangular(system, right, upper=False))


def norm_with_weights_of_tokens(m: Program, x: Tensor) -> Tensor:
    return F.layer_norm(x, (WIDTH,), x.mean((0, 1)))


def norm_with_large_weights(m: Program, x: Tensor) -> Tensor:
    """A norm whose bias is as large as the mask that it takes away. Rows are mixed: no law is proved with it."""
    n = x.shape[1]
    large = torch.full((1,), -MASK)
    added = F.layer_norm(torch.ones(n, n, 1), (1,), large, large).squeeze(-1).triu(1)
    scores = m.first(x) @ m.second(x).mT + torch.full((n, n), MASK).triu(1)
    return (scores + added).softmax(-1) @ m.third(x) + x.mean(0, keepdim=True)


def statistics_of_the_batch(m: Program, x: Tensor) -> Tensor:
    return F.batch_norm(x.mT, None, None, training=True).mT


# ------------------------------------------------------------- element by element


def chosen_by_later_tokens(m: Program, x: Tensor) -> Tensor:
    return torch.where(x.flip(1) > 0, x, -x)


def product_with_all_tokens(m: Program, x: Tensor) -> Tensor:
    return x * centred(x)


def added_by_a_product(m: Program, x: Tensor) -> Tensor:
    return torch.baddbmm(centred(x), x, m.first.weight.expand(x.shape[0], -1, -1))


def _case(name: str, function: object, *laws: str, least: int = 2) -> Case:
    return Case(name, function, frozenset(laws), least=least)  # type: ignore[arg-type]


SEEN_BY_MUTANTS = [
    _case("feature overwritten", feature_overwritten, "batch"),
    _case("written in reverse", written_in_reverse, "batch"),
    _case("table by later tokens", table_by_later_tokens, "batch"),
    _case("token before, counted from the end", token_before_counted_from_the_end, "batch"),
    _case("last token in the third place", last_token_in_the_third_place, "batch", least=3),
    _case("every second overwritten", every_second_overwritten, "batch", least=3),
    _case("last overwritten", last_overwritten, "causal", "batch"),
    _case("part of a longer row", part_of_a_longer_row, "batch"),
    _case("kernel of the mean", kernel_of_the_mean),
    _case("weight of the first key", weight_of_the_first_key, "batch"),
    _case("next tokens summed", next_tokens_summed, "batch", least=3),
    _case("right side of all tokens", right_side_of_all_tokens, "batch"),
    _case("system of later tokens", system_of_later_tokens, "batch"),
    _case("divided by a small diagonal", divided_by_a_small_diagonal, "batch"),
    _case("norm with weights of tokens", norm_with_weights_of_tokens),
    _case("norm with large weights", norm_with_large_weights),
    _case("statistics of the batch", statistics_of_the_batch),
    _case("every second of two rows", lambda m, x: two_rows(x)[:, ::2], "batch"),
    _case("groups of features", groups_of_features, "batch"),
    _case("norm over tokens and features", lambda m, x: F.layer_norm(x, x.shape[1:]), "batch"),
    _case("first tokens only", first_tokens_only, "batch"),
    _case("product of all tokens", lambda m, x: x @ (centred(x).mT @ centred(x)), "batch"),
    _case("features around", lambda m, x: half_of_the_features(x, 4).roll(2, -1)[..., :2], "batch"),
    _case("features twice", lambda m, x: half_of_the_features(x, 3).repeat_interleave(2, -1)[..., 6:9], "batch"),
    _case(
        "counted in steps of two",
        lambda m, x: seen_by_count(m, x, torch.arange(0, 2 * x.shape[1], 2), torch.arange(0, 2 * x.shape[1], 2) + 1),
        "causal",
        "batch",
    ),
    _case(
        "counted from one",
        lambda m, x: seen_by_count(m, x, torch.arange(1, x.shape[1] + 1), torch.arange(x.shape[1])),
        "batch",
    ),
    _case(
        "mask of booleans in one operator",
        lambda m, x: F.scaled_dot_product_attention(m.first(x), m.second(x), m.third(x), lower(x)),
        "causal",
        "batch",
    ),
    _case(
        "strict mask in reverse",
        lambda m, x: attend(m, x.flip(1), ~lower(x), fill=MASK).flip(1),
        "batch",
    ),
    _case("chosen by later tokens", chosen_by_later_tokens, "batch"),
    _case("product with all tokens", product_with_all_tokens, "batch"),
    _case("added by a product", added_by_a_product, "batch"),
]


def _first_overwritten(m: Program, x: Tensor, p: Tensor) -> Tensor:
    return x.scatter(1, torch.zeros(x.shape[0], 1, WIDTH, dtype=torch.int64), 0.0) + p[..., None]


def _keys_twice(m: Program, x: Tensor, p: Tensor) -> Tensor:
    keys = torch.cat([m.first(x), m.second(x)], 1)
    values = torch.cat([x, m.table.weight[: x.shape[1]].expand(x.shape[0], -1, -1)], 1)
    return (x @ keys.mT).softmax(-1) @ values + p[..., None]


def _cut(m: Program, x: Tensor, p: Tensor) -> Tensor:
    return x + F.pad(x, (0, 0, 0, -(x.shape[1] // 8))).sum(1, keepdim=True)


def _overlapping(m: Program, x: Tensor, p: Tensor) -> Tensor:
    parts = torch.tensor_split(torch.cat([m.table.weight[:5].expand(x.shape[0], -1, -1), x], 1), [3, 2], 1)
    return parts[2][:, 2 : 2 + x.shape[1]] + p[..., None]


def _group_of_all_tokens(m: Program, x: Tensor, p: Tensor) -> Tensor:
    return F.group_norm(x, 1, m.table.weight[: x.shape[1], 0], m.table.weight[: x.shape[1], 1]) + p[..., None]


def _repeated_and_halved(m: Program, x: Tensor, p: Tensor) -> Tensor:
    return x.repeat_interleave(2, 1).view(x.shape[0], 2, *x.shape[1:])[:, 0] + p[..., None]


def _added_to_a_product(m: Program, x: Tensor, p: Tensor) -> Tensor:
    return torch.addmm(m.table.weight[: x.shape[1], :1], x[0], m.first.weight) + x * 0


SEEN_BY_MUTANTS_WHEN_MOVED = [
    MovedCase("first token overwritten", _first_overwritten, equivariant=False),
    MovedCase("keys twice", _keys_twice, equivariant=False),
    MovedCase("padding that cuts tokens", _cut, equivariant=False),
    MovedCase("parts that overlap", _overlapping, equivariant=False),
    MovedCase("group of all tokens", _group_of_all_tokens, equivariant=False),
    MovedCase("repeated and halved", _repeated_and_halved, equivariant=False),
    MovedCase("sum of sums from the start", lambda m, x, p: x + x.cumsum(1).sum(1, keepdim=True), equivariant=False),
    MovedCase("sum of all tokens but the last", lambda m, x, p: x + x[:, :-1].sum(1, keepdim=True), equivariant=False),
    MovedCase("first of merged tokens", lambda m, x, p: x + x.reshape(-1, WIDTH)[:2].mean(0), equivariant=False),
    MovedCase("upsampled tokens", lambda m, x, p: F.interpolate(x.mT, size=4).mT[:, :1] + x, equivariant=False),
    MovedCase("added to a product", _added_to_a_product, equivariant=False),
]
