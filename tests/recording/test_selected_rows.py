"""Experts that get the rows which a mask selects are proved from every row; rows that meet are refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from orderproof import audit
from orderproof.errors import CaptureError
from orderproof.recording.capture import capture
from orderproof.recording.selected_rows import OF_EVERY_ROW, called, every_row
from tests.pairs import one_in

WIDTH, EXPERTS = 8, 3


class Experts(nn.Module):
    """A mixture of experts whose rows are dispatched by a function."""

    def __init__(self, dispatch: Callable[[Experts, Tensor, Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.gate = nn.Linear(WIDTH, EXPERTS)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.SiLU(), nn.LayerNorm(WIDTH)) for _ in range(EXPERTS)
        )
        self.dispatch = dispatch

    def forward(self, x: Tensor) -> Tensor:
        rows = x.view(-1, WIDTH)
        weights, chosen = self.gate(rows).softmax(-1).topk(2, dim=-1)
        return self.dispatch(self, rows, weights, chosen).view(x.shape)


def _where(m: Experts, x: Tensor, weights: Tensor, chosen: Tensor) -> Tensor:
    y = torch.zeros_like(x)
    for i, expert in enumerate(m.experts):
        row, k = torch.where(chosen == i)
        y[row] += expert(x[row]) * weights[row, k, None]
    return y


def _none_is_left_out(m: Experts, x: Tensor, weights: Tensor, chosen: Tensor) -> Tensor:
    y = torch.zeros_like(x)
    counts = torch.bincount(chosen.flatten(), minlength=EXPERTS).tolist()
    for i, expert in enumerate(m.experts):
        if counts[i] == 0:
            continue
        row, k = (chosen == i).nonzero(as_tuple=True)
        if row.numel() == 0 or row.shape[0] == 0 or len(row) == 0:
            continue
        y.index_add_(0, row, expert(x[row]) * weights[row, k].unsqueeze(-1))
    return y


def _mask(m: Experts, x: Tensor, weights: Tensor, chosen: Tensor) -> Tensor:
    y = torch.zeros_like(x)
    for i, expert in enumerate(m.experts):
        given = (chosen == i).any(-1)
        if given.any():
            y[given] += expert(x[given]) * (weights * (chosen == i)).sum(-1)[given][:, None]
    return y


def _experts_with_rows(m: Experts, x: Tensor, weights: Tensor, chosen: Tensor) -> Tensor:
    y = torch.zeros_like(x)
    given = nn.functional.one_hot(chosen, EXPERTS).permute(2, 1, 0)
    for place in given.sum((-1, -2)).gt(0).nonzero():
        k, row = torch.where(given[place[0]])
        y.index_add_(0, row, m.experts[place[0]](x.index_select(0, row)) * weights[row, k, None])
    return y


def _one_axis(m: Experts, x: Tensor, weights: Tensor, chosen: Tensor) -> Tensor:
    y = x.clone()
    row = (weights[:, 0] > 0.4).nonzero().squeeze(1)
    y[row] = m.experts[0](x[row])
    return y


def _two_halves(m: Experts, x: Tensor, weights: Tensor, chosen: Tensor) -> Tensor:
    given = weights[:, 0] > 0.4
    y = x.clone()
    y[~given] = m.experts[0](x[~given])
    return y.masked_scatter(given.unsqueeze(-1), m.experts[1](y[given]))


def _computed_twice(m: Experts, x: Tensor, weights: Tensor, chosen: Tensor) -> Tensor:
    y = torch.zeros_like(x)
    for i, expert in enumerate(m.experts):
        y[(chosen == i).any(-1)] += expert(x[(chosen == i).any(-1)])
    return y


def _of_all_rows(m: Experts, x: Tensor, weights: Tensor, chosen: Tensor) -> Tensor:
    del weights, chosen
    hidden = m.gate(x).amax(-1) > 0
    return x.masked_fill(hidden[:, None], 0).masked_fill(~hidden[:, None], 1)


DISPATCHED = [_where, _none_is_left_out, _mask, _experts_with_rows, _one_axis, _two_halves, _computed_twice]


def _mean_of_rows(m: Experts, x: Tensor, weights: Tensor, chosen: Tensor) -> Tensor:
    row, _ = torch.where(chosen == 0)
    return x.index_add(0, row, x[row] - x[row].mean(0))


def _first_rows(m: Experts, x: Tensor, weights: Tensor, chosen: Tensor) -> Tensor:
    row, _ = torch.where(chosen == 0)
    return x.index_add(0, row[:2], x[row[:2]])


def _attended(m: Experts, x: Tensor, weights: Tensor, chosen: Tensor) -> Tensor:
    given = (chosen == 0).any(-1)
    y, rows = x.clone(), x[given]
    y[given] = (rows @ rows.T).softmax(-1) @ rows
    return y


def _running_sum(m: Experts, x: Tensor, weights: Tensor, chosen: Tensor) -> Tensor:
    given = (chosen == 0).any(-1)
    y = x.clone()
    y[given] = x[given].cumsum(0)
    return y


def _shifted(m: Experts, x: Tensor, weights: Tensor, chosen: Tensor) -> Tensor:
    given = (chosen == 0).any(-1)
    y = x.clone()
    y[given] = x.roll(1, 0)[given].flip(0)
    return y


def _other_rows(m: Experts, x: Tensor, weights: Tensor, chosen: Tensor) -> Tensor:
    one, other = (chosen == 0).any(-1), (chosen != 0).all(-1)
    y = x.clone()
    y[other] = x[one][: int(other.sum())]
    return y


def _number_of_rows(m: Experts, x: Tensor, weights: Tensor, chosen: Tensor) -> Tensor:
    row, _ = torch.where(chosen == 0)
    return x.index_add(0, row, x[row]) / row.numel()


def _counted(m: Experts, x: Tensor, weights: Tensor, chosen: Tensor) -> Tensor:
    counts = torch.bincount(chosen.flatten(), minlength=EXPERTS).tolist()
    return x * sum(counts)


def _asks_only(m: Experts, x: Tensor, weights: Tensor, chosen: Tensor) -> Tensor:
    return x.flip(0) if (m.gate(x) > 9).any() else x


def _few_rows_are_left_out(m: Experts, x: Tensor, weights: Tensor, chosen: Tensor) -> Tensor:
    row, _ = torch.where(chosen == 0)
    return x.index_add(0, row, x[row]) if len(row) > 1 else x


def _given_back(m: Experts, x: Tensor, weights: Tensor, chosen: Tensor) -> Tensor:
    return x[(chosen == 0).any(-1)]


def _asks_of_other_rows(m: Experts, x: Tensor, weights: Tensor, chosen: Tensor) -> Tensor:
    return x + len(x[(chosen == 0).any(-1)] > 0)


def _pairs(m: Experts, x: Tensor, weights: Tensor, chosen: Tensor) -> Tensor:
    given = (chosen == 0).any(-1)
    y, rows = x.clone(), x[given]
    y[given] = rows.expand(rows.shape[0], rows.shape[0], WIDTH).sum(1)
    return y


def _bit_of_number(m: Experts, x: Tensor, weights: Tensor, chosen: Tensor) -> Tensor:
    row, _ = torch.where(chosen == 0)
    return x.index_add(0, row, x[row]) * (row.shape[0] & 1)


def _as_many_as_rows(m: Experts, x: Tensor, weights: Tensor, chosen: Tensor) -> Tensor:
    row, _ = torch.where(chosen == 0)
    return x.index_add(0, row, x[row]) + m.gate.weight[: row.shape[0]].sum()


def _sums_of_weights(m: Experts, x: Tensor, weights: Tensor, chosen: Tensor) -> Tensor:
    sums = torch.bincount(chosen.flatten(), weights=weights.flatten() - 0.5, minlength=EXPERTS)
    row, _ = torch.where(chosen == 0)
    return x.index_add(0, row, x[row]) if sums[0] > 0 else x


def _counts_experts(m: Experts, x: Tensor, weights: Tensor, chosen: Tensor) -> Tensor:
    y, count = torch.zeros_like(x), 0
    for place in nn.functional.one_hot(chosen, EXPERTS).sum((0, 1)).gt(0).nonzero():
        row, _ = torch.where(chosen == place[0])
        y.index_add_(0, row, m.experts[place[0]](x[row]))
        count += 1
    return y / count


def _scales_all_rows(m: Experts, x: Tensor, weights: Tensor, chosen: Tensor) -> Tensor:
    y, given = x.clone(), m.gate(x).amax(-1) > 0.7
    if given.any():
        y[given] = m.experts[0](x[given])
        y = y * 2
    return y


def _divides_by_experts_with_rows(m: Experts, x: Tensor, weights: Tensor, chosen: Tensor) -> Tensor:
    y = torch.zeros_like(x)
    counts = torch.bincount(chosen.flatten(), minlength=EXPERTS).tolist()
    used = [i for i in range(EXPERTS) if counts[i] > 0]
    for i in used:
        row, k = torch.where(chosen == i)
        y[row] += m.experts[i](x[row]) * weights[row, k, None] / len(used)
    return y


def _has_another_way(m: Experts, x: Tensor, weights: Tensor, chosen: Tensor) -> Tensor:
    y = torch.zeros_like(x)
    counts = torch.bincount(chosen.flatten(), minlength=EXPERTS)
    for i, expert in enumerate(m.experts):
        if counts[i] == 0:
            y = y + 1
        row, k = torch.where(chosen == i)
        y.index_add_(0, row, expert(x[row]) * weights[row, k, None])
    return y


MEET = [
    _mean_of_rows, _first_rows, _attended, _running_sum, _shifted, _other_rows, _counted, _asks_only,
    _few_rows_are_left_out, _given_back, _asks_of_other_rows, _number_of_rows,
    _pairs, _bit_of_number, _as_many_as_rows,
]  # fmt: skip


@pytest.mark.parametrize("dispatch", DISPATCHED, ids=lambda f: f.__name__)
def test_every_row_gives_what_the_selected_rows_give(dispatch: Callable[..., Tensor]) -> None:
    module = Experts(dispatch).eval()
    for seed in range(5):
        x = torch.randn(2, 3, WIDTH, generator=torch.Generator().manual_seed(seed))
        with torch.no_grad():
            plain = module(x)
            with every_row():
                assert torch.allclose(called(module, (x,)), plain, atol=1e-6)


@pytest.mark.parametrize("dispatch", one_in(2, DISPATCHED), ids=lambda f: f.__name__)
def test_experts_are_proved_for_every_length(dispatch: Callable[..., Tensor]) -> None:
    report = audit(Experts(dispatch), inputs=torch.randn(2, 7, WIDTH), laws=["permutation", "batch"])
    found = {finding.law: finding for finding in report.findings}
    assert {law: f.theorem is not None and f.theorem.proved for law, f in found.items()} == {
        "permutation": True, "batch": True,
    }  # fmt: skip
    assert any(OF_EVERY_ROW in text for text in found["batch"].scope.assumptions)


@pytest.mark.parametrize("dispatch", MEET, ids=lambda f: f.__name__)
def test_selected_rows_that_meet_are_refused(dispatch: Callable[..., Tensor]) -> None:
    module = Experts(dispatch).eval()
    with torch.no_grad(), every_row(), pytest.raises((CaptureError, TypeError)):
        called(module, (torch.randn(2, 7, WIDTH),))


BESIDES = [_sums_of_weights, _counts_experts, _scales_all_rows, _divides_by_experts_with_rows, _has_another_way]


@pytest.mark.parametrize("dispatch", BESIDES, ids=lambda f: f.__name__)
def test_what_is_done_besides_where_no_row_is_selected_is_refused(dispatch: Callable[..., Tensor]) -> None:
    with pytest.raises(CaptureError):
        capture(Experts(dispatch).eval(), (torch.randn(2, 7, WIDTH),))


class LastOfEachRow(nn.Module):
    """Vectors [row, token, width] to those of the last selected token of each row."""

    def forward(self, x: Tensor) -> Tensor:
        row, token = torch.where(x[..., 0] > 0)
        last = torch.zeros_like(x[:, 0])
        last[row] = x[row, token]
        return last


def test_of_several_writes_to_a_row_the_last_counts() -> None:
    x = torch.randn(2, 7, WIDTH)
    with every_row():
        assert torch.equal(called(LastOfEachRow(), (x,)), LastOfEachRow()(x))


def test_a_call_without_a_selection_is_as_it_was() -> None:
    module = Experts(_of_all_rows).eval()
    x = torch.randn(2, 7, WIDTH)
    with torch.no_grad(), every_row():
        inside = called(module, (x,))
    with torch.no_grad():
        assert torch.equal(inside, module(x))
