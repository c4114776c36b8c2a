"""Recurrent layers of torch, their cells in loops, and first and last states."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.theorems.unseen.claims import WIDTH, Corpus, Parts, later

HALF = WIDTH // 2


class Recurrent(Parts):
    """Layers and cells with a state."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.deep = nn.LSTM(WIDTH, WIDTH, batch_first=True), nn.LSTM(WIDTH, WIDTH, 2, batch_first=True)
        self.rnn = nn.RNN(WIDTH, WIDTH, nonlinearity="relu", batch_first=True)
        self.both = nn.GRU(WIDTH, HALF, batch_first=True, bidirectional=True)
        self.both_lstm = nn.LSTM(WIDTH, HALF, batch_first=True, bidirectional=True)
        self.time_first = nn.GRU(WIDTH, WIDTH)
        self.projected = nn.LSTM(WIDTH, 2 * WIDTH, proj_size=WIDTH, batch_first=True)
        self.memory, self.simple = nn.LSTMCell(WIDTH, WIDTH), nn.RNNCell(WIDTH, WIDTH)


UNSEEN = Corpus(Recurrent)


@UNSEEN.add(causal=True, batch=True)
def lstm_layer_with_a_residual(m: Recurrent, x: Tensor) -> Tensor:
    y, _ = m.lstm(m.norm(x))
    return x + m.o(y)


@UNSEEN.add(causal=True, batch=True)
def lstm_with_a_learned_first_state(m: Recurrent, x: Tensor) -> Tensor:
    first = m.latents[:2].unsqueeze(1).expand(-1, x.shape[0], -1)
    return m.lstm(x, (first[:1].contiguous(), first[1:].contiguous()))[0]


@UNSEEN.add(causal=False, batch=True)
def lstm_that_starts_from_the_mean_token(m: Recurrent, x: Tensor) -> Tensor:
    h = m.o(x.mean(dim=1))
    y, _ = m.lstm(x, (h[None], torch.zeros_like(h)[None]))
    return y


@UNSEEN.add(causal=True, batch=True, permutation=False)
def gru_that_starts_from_the_first_token(m: Recurrent, x: Tensor) -> Tensor:
    return m.gru(x, torch.tanh(m.o(x[:, 0])).unsqueeze(0))[0]


@UNSEEN.add(causal=True, batch=True)
def two_lstm_layers_stacked(m: Recurrent, x: Tensor) -> Tensor:
    m.deep.flatten_parameters()
    return m.norm(m.deep(x)[0] + x)


@UNSEEN.add(causal=False, batch=True)
def gru_layer_of_both_directions(m: Recurrent, x: Tensor) -> Tensor:
    return F.layer_norm(m.both(x)[0], (WIDTH,))


@UNSEEN.add(causal=True, batch=True)
def first_half_of_both_directions(m: Recurrent, x: Tensor) -> Tensor:
    forward, _ = m.both_lstm(x)[0].chunk(2, dim=-1)
    return torch.cat([forward, x[..., HALF:]], dim=-1)


@UNSEEN.add(causal=True, batch=False)
def rows_taken_for_steps(m: Recurrent, x: Tensor) -> Tensor:
    return x + m.time_first(x)[0]  # a layer without batch_first


@UNSEEN.add(causal=True, batch=True)
def steps_moved_to_the_first_axis(m: Recurrent, x: Tensor) -> Tensor:
    y, _ = m.time_first(x.transpose(0, 1))
    return x + y.transpose(0, 1)


@UNSEEN.add(causal=True, batch=True)
def layer_of_rectified_units(m: Recurrent, x: Tensor) -> Tensor:
    return m.down(m.up(m.rnn(x)[0]).relu())


@UNSEEN.add(causal=True, batch=True)
def lstm_with_projected_outputs(m: Recurrent, x: Tensor) -> Tensor:
    y, (h, c) = m.projected(x)
    assert h.shape[-1] < c.shape[-1]
    return m.gate(x).sigmoid() * y


@UNSEEN.add(causal=False, batch=True)
def last_state_added_to_all_tokens(m: Recurrent, x: Tensor) -> Tensor:
    _, (h, _) = m.lstm(x)
    return x + m.v(h[-1])[:, None]


@UNSEEN.add(batch=True, permutation=False)
def last_states_of_both_directions(m: Recurrent, x: Tensor) -> Tensor:
    _, h = m.both(x)
    return m.o(torch.cat([h[-2], h[-1]], dim=1))


@UNSEEN.add(batch=False, permutation=False)
def last_states_viewed_as_rows(m: Recurrent, x: Tensor) -> Tensor:
    _, h = m.both(x)
    return m.o(h.view(x.shape[0], -1))  # the first axis is that of directions


@UNSEEN.add(causal=True, batch=True)
def lstm_cell_in_a_loop(m: Recurrent, x: Tensor) -> Tensor:
    h = c = torch.zeros(x.size(0), WIDTH, dtype=x.dtype)
    out = []
    for t in range(x.size(1)):
        h, c = m.memory(x[:, t], (h, c))
        out.append(h)
    return torch.stack(out, dim=1)


@UNSEEN.add(causal=True, batch=True)
def states_that_mostly_change(m: Recurrent, x: Tensor) -> Tensor:
    h, c, out = x.new_zeros(len(x), WIDTH), x.new_zeros(len(x), WIDTH), []
    for token in x.unbind(1):  # zoneout, at its mean
        new_h, new_c = m.memory(token, (h, c))
        h, c = 0.1 * h + 0.9 * new_h, 0.2 * c + 0.8 * new_c
        out.append(h)
    return torch.stack(out, dim=1)


@UNSEEN.add(causal=False, batch=True)
def decoder_that_starts_from_the_last_state(m: Recurrent, x: Tensor) -> Tensor:
    _, h = m.gru(x)
    shifted = torch.cat([torch.zeros_like(x[:, :1]), x[:, :-1]], dim=1)
    return m.o(m.gru(shifted, h)[0])


@UNSEEN.add(causal=True, batch=True)
def cell_with_a_norm_inside(m: Recurrent, x: Tensor) -> Tensor:
    h, y = torch.zeros_like(x[:, 0]), torch.empty_like(x)
    for t in range(x.shape[1]):
        h = torch.tanh(m.norm(m.q(x[:, t]) + m.k(h)))
        y[:, t] = h
    return y


@UNSEEN.add(causal=False, batch=False)
def rows_joined_to_one_long_one(m: Recurrent, x: Tensor) -> Tensor:
    return m.gru(x.reshape(1, -1, WIDTH))[0].view_as(x)


@UNSEEN.add(causal=False, batch=True)
def pyramid_of_two_layers(m: Recurrent, x: Tensor) -> Tensor:
    y = F.pad(m.gru(x)[0], (0, 0, 0, x.shape[1] % 2))
    pairs = m.down(y.reshape(x.shape[0], -1, 2 * WIDTH))
    return x + m.lstm(pairs)[0].repeat_interleave(2, dim=1)[:, : x.shape[1]]


@UNSEEN.add(causal=True, batch=True)
def state_started_anew_in_each_chunk(m: Recurrent, x: Tensor) -> Tensor:
    b, t, d = x.shape
    parts = F.pad(x, (0, 0, 0, -t % 4)).reshape(-1, 4, d)
    return m.gru(parts)[0].reshape(b, -1, d)[:, :t]


@UNSEEN.add(causal=True, batch=True)
def state_handed_from_chunk_to_chunk(m: Recurrent, x: Tensor) -> Tensor:
    h, out = None, []
    for part in x.split(4, dim=1):
        y, h = m.gru(part, h)
        out.append(y)
    return torch.cat(out, dim=1)


@UNSEEN.add(causal=False, batch=True)
def state_warmed_up_on_the_whole_row(m: Recurrent, x: Tensor) -> Tensor:
    _, h = m.gru(x)
    return torch.cat([m.gru(part, h)[0] for part in x.split(4, dim=1)], dim=1)


@UNSEEN.add(causal=True, batch=True)
def units_that_see_only_themselves(m: Recurrent, x: Tensor) -> Tensor:
    h, out = torch.zeros_like(x[:, 0]), []
    for step in m.v(x).unbind(dim=1):
        h = F.relu(step + m.decay * h)
        out.append(h)
    return torch.stack(out, dim=1)


@UNSEEN.add(causal=True, batch=True)
def simple_recurrent_unit(m: Recurrent, x: Tensor) -> Tensor:
    value, f, r = m.v(x), m.gate(x).sigmoid(), m.q(x).sigmoid()
    c, out = torch.zeros_like(value[:, 0]), []
    for t in range(x.shape[1]):
        c = f[:, t] * c + (1 - f[:, t]) * value[:, t]
        out.append(r[:, t] * c.tanh() + (1 - r[:, t]) * x[:, t])
    return torch.stack(out, 1)


@UNSEEN.add(causal=True, batch=True)
def units_with_clocks(m: Recurrent, x: Tensor) -> Tensor:
    period, h, out = torch.tensor([1, 1, 2, 2, 4, 4, 8, 8]), torch.zeros_like(x[:, 0]), []
    for t in range(x.shape[1]):
        h = torch.where(t % period == 0, m.simple(x[:, t], h), h)
        out.append(h)
    return torch.stack(out, dim=1)


@UNSEEN.add(causal=True, batch=True)
def state_of_two_steps_before(m: Recurrent, x: Tensor) -> Tensor:
    out = [x.new_zeros(x.shape[0], WIDTH)] * 2
    for t in range(x.shape[1]):
        out.append(m.cell(x[:, t], out[-2]))
    return torch.stack(out[2:], dim=1)


@UNSEEN.add(causal=True, batch=True)
def antisymmetric_states(m: Recurrent, x: Tensor) -> Tensor:
    w = m.k.weight - m.k.weight.T - 0.1 * torch.eye(WIDTH, dtype=x.dtype)
    h, out = torch.zeros_like(x[:, 0]), []
    for t in range(x.shape[1]):
        h = h + 0.5 * torch.tanh(h @ w.T + m.q(x[:, t]))
        out.append(h)
    return torch.stack(out, dim=1)


@UNSEEN.add(causal=True, batch=True)
def outputs_attend_to_outputs_before(m: Recurrent, x: Tensor) -> Tensor:
    y = m.lstm(x)[0]
    w = m.scores(y).masked_fill(later(x.shape[1]), float("-inf")).softmax(-1)
    return m.down(torch.cat([y, w @ y], dim=-1))


@UNSEEN.add(masked=True, padding=True, batch=True, right=True)
def output_at_the_last_real_step(m: Recurrent, x: Tensor, mask: Tensor) -> Tensor:
    y, _ = m.lstm(x)
    last = (mask.sum(1) - 1).clamp(min=0)
    return m.o(y[torch.arange(x.shape[0]), last])


@UNSEEN.add(masked=True, padding=False, batch=True)
def backward_direction_starts_at_pads(m: Recurrent, x: Tensor, mask: Tensor) -> Tensor:
    return m.both(x)[0] * mask.unsqueeze(-1)


@UNSEEN.add(masked=True, padding=False, causal=True, batch=True)
def memory_moved_at_pads(m: Recurrent, x: Tensor, mask: Tensor) -> Tensor:
    h, c, out = torch.zeros_like(x[:, 0]), torch.zeros_like(x[:, 0]), []
    for t in range(x.shape[1]):
        real = mask[:, t, None].to(x.dtype)
        new, c = m.memory(x[:, t], (h, c))
        h = real * new + (1 - real) * h
        out.append(h)
    return torch.stack(out, 1)
