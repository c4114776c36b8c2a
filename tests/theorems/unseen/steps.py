"""Steps one after another: caches, outputs fed back, memories, halting, filters of states and gates."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.unseen.claims import LONGEST, WIDTH, Corpus, Parts, later

UNSEEN = Corpus()
INF = float("-inf")


@UNSEEN.add(causal=True, batch=True)
def cache_filled_and_masked_at_each_step(m: Parts, x: Tensor) -> Tensor:
    keys, values = x.new_zeros(len(x), LONGEST, WIDTH), x.new_zeros(len(x), LONGEST, WIDTH)
    place, out = torch.arange(LONGEST), []
    for t in range(x.shape[1]):
        keys[:, t], values[:, t] = m.k(x[:, t]), m.v(x[:, t])
        s = (m.q(x[:, t : t + 1]) @ keys.mT).masked_fill(place > t, INF)
        out.append(s.softmax(-1) @ values)
    return torch.cat(out, 1)


@UNSEEN.add(causal=True, batch=True)
def window_cache_by_a_roll(m: Parts, x: Tensor) -> Tensor:
    keys = values = x.new_zeros(x.shape[0], 3, WIDTH)
    out = []
    for t in range(x.shape[1]):
        keys, values = keys.roll(-1, 1), values.roll(-1, 1)
        keys[:, -1], values[:, -1] = m.k(x[:, t]), m.v(x[:, t])
        s = (m.q(x[:, t, None]) @ keys.mT).masked_fill(torch.arange(3) < 2 - t, INF)
        out.append((s.softmax(-1) @ values).squeeze(1))
    return torch.stack(out, 1)


@UNSEEN.add(causal=True, batch=True)
def cache_of_sinks_and_recent_tokens(m: Parts, x: Tensor) -> Tensor:
    k, v, out = x[:, :0], x[:, :0], []
    for token in x.split(1, dim=1):
        k, v = torch.cat([k, m.k(token)], 1), torch.cat([v, m.v(token)], 1)
        if k.shape[1] > 5:
            k, v = torch.cat([k[:, :2], k[:, -3:]], 1), torch.cat([v[:, :2], v[:, -3:]], 1)
        out.append((m.q(token) @ k.mT).softmax(-1) @ v)
    return torch.cat(out, 1)


@UNSEEN.add(causal=True, batch=True)
def half_at_once_then_step_by_step(m: Parts, x: Tensor) -> Tensor:
    n = x.shape[1] // 2
    q, k, v = m.q(x), m.k(x), m.v(x)
    out = [(q[:, :n] @ k[:, :n].mT).masked_fill(later(n), INF).softmax(-1) @ v[:, :n]]
    for t in range(n, x.shape[1]):
        seen = slice(0, t + 1)
        out.append((q[:, t, None] @ k[:, seen].mT).softmax(-1) @ v[:, seen])
    return torch.cat(out, 1)


@UNSEEN.add(causal=False, batch=True)
def half_at_once_without_a_mask(m: Parts, x: Tensor) -> Tensor:
    n = x.shape[1] // 2
    q, k, v = m.q(x), m.k(x), m.v(x)
    out = [(q[:, :n] @ k[:, :n].mT).softmax(-1) @ v[:, :n]]
    out += [(q[:, t : t + 1] @ k[:, : t + 1].mT).softmax(-1) @ v[:, : t + 1] for t in range(n, x.shape[1])]
    return torch.cat(out, 1)


@UNSEEN.add(causal=False, batch=True)
def decoder_cells_attend_to_encoder_states(m: Parts, x: Tensor) -> Tensor:
    states, h = m.gru(x)
    h, out = h[0], []
    for t in range(x.shape[1]):
        w = (m.k(states) @ m.q(h)[..., None]).softmax(dim=1)
        h = m.cell(m.down(torch.cat([x[:, t], (w * states).sum(1)], -1)), h)
        out.append(h)
    return torch.stack(out, 1)


@UNSEEN.add(causal=True, batch=True)
def attention_vector_fed_into_the_next_step(m: Parts, x: Tensor) -> Tensor:
    h = context = torch.zeros_like(x[:, 0])
    out = []
    for t in range(x.shape[1]):
        h = m.cell(m.down(torch.cat([x[:, t], context], dim=-1)), h)
        w = torch.softmax(m.latents @ m.q(h).mT, dim=0)
        context = torch.tanh(w.mT @ m.latents + m.o(h))
        out.append(context)
    return torch.stack(out, dim=1)


@UNSEEN.add(causal=True, batch=True)
def most_likely_symbol_fed_back(m: Parts, x: Tensor) -> Tensor:
    h, symbol, out = torch.zeros_like(x[:, 0]), torch.zeros(len(x), dtype=torch.long), []
    for t in range(x.shape[1]):
        h = m.cell(x[:, t] + m.table(symbol), h)
        symbol = m.router(h).argmax(dim=-1)
        out.append(m.router(h))
    return torch.stack(out, dim=1)


@UNSEEN.add(causal=True, batch=True, permutation=True)
def early_exit_of_sure_tokens(m: Parts, x: Tensor) -> Tensor:
    first = x + m.down(F.gelu(m.up(x)))
    sure = m.router(first).softmax(-1).amax(-1, keepdim=True) > 0.5
    return torch.where(sure, first, first + m.o(m.v(first).relu()))


@UNSEEN.add(causal=False, batch=False)
def early_exit_when_the_whole_batch_is_sure(m: Parts, x: Tensor) -> Tensor:
    first = m.v(x)
    sure = m.router(first).softmax(-1).amax(-1).mean()
    return torch.lerp(first, m.o(first.tanh()), (sure < 0.4).to(x.dtype) * (1 - sure))


@UNSEEN.add(causal=True, batch=True, permutation=True)
def steps_weighted_by_the_chance_to_halt(m: Parts, x: Tensor) -> Tensor:
    y, left, total = x, torch.ones_like(x[..., :1]), torch.zeros_like(x)
    for step in range(3):
        y = y + m.down(F.silu(m.up(y)))
        halt = m.gate(y)[..., :1].sigmoid() if step < 2 else torch.ones_like(left)
        total, left = total + left * halt * y, left * (1 - halt)
    return total


@UNSEEN.add(causal=False, batch=True)
def experts_weighted_over_time(m: Parts, x: Tensor) -> Tensor:
    w = m.router(x).softmax(dim=1)
    return sum(w[..., i : i + 1] * expert(x) for i, expert in enumerate(m.experts))


@UNSEEN.add(causal=True, batch=True)
def memory_erased_and_written_at_addresses(m: Parts, x: Tensor) -> Tensor:
    memory, out = m.latents.expand(len(x), -1, -1), []
    for t in range(x.shape[1]):
        read = torch.softmax(memory @ m.q(x[:, t]).unsqueeze(-1), dim=1)
        out.append((read * memory).sum(1))
        w = F.cosine_similarity(memory, m.k(x[:, t])[:, None], dim=-1).softmax(-1)[..., None]
        memory = memory * (1 - w * m.gate(x[:, t]).sigmoid()[:, None]) + w * m.v(x[:, t])[:, None]
    return torch.stack(out, dim=1)


@UNSEEN.add(causal=True, batch=False)
def memory_written_by_the_mean_row(m: Parts, x: Tensor) -> Tensor:
    memory, out = m.latents, []
    for t in range(x.shape[1]):
        w = torch.softmax(m.q(x[:, t]) @ memory.T, dim=-1)
        out.append(w @ memory)
        memory = memory + torch.einsum("bs,bd->sd", w, m.v(x[:, t])) / x.shape[0]
    return torch.stack(out, dim=1)


@UNSEEN.add(causal=True, batch=True)
def stack_pushed_and_popped_softly(m: Parts, x: Tensor) -> Tensor:
    stack, out = x.new_zeros(x.shape[0], 4, WIDTH), []
    for t in range(x.shape[1]):
        push, pop, keep = m.router(x[:, t])[:, :3].softmax(-1)[..., None, None].unbind(1)
        pushed = torch.cat([m.v(x[:, t]).sigmoid()[:, None], stack[:, :-1]], dim=1)
        popped = torch.cat([stack[:, 1:], torch.zeros_like(stack[:, :1])], dim=1)
        stack = push * pushed + pop * popped + keep * stack
        out.append(m.o(stack[:, 0]))
    return torch.stack(out, 1)


@UNSEEN.add(causal=True, batch=True)
def segments_with_a_compressive_memory(m: Parts, x: Tensor) -> Tensor:
    memory, z, out = x.new_zeros(len(x), WIDTH, WIDTH), x.new_zeros(len(x), WIDTH, 1), []
    for part in F.pad(x, (0, 0, 0, -x.shape[1] % 4)).split(4, dim=1):
        q, k, v = F.elu(m.q(part)) + 1, F.elu(m.k(part)) + 1, m.v(part)
        local = m.scores(part).masked_fill(later(4), INF).softmax(-1) @ v
        read = q @ memory / (q @ z + 1e-6)
        out.append(m.decay.sigmoid() * read + (1 - m.decay.sigmoid()) * local)
        memory, z = memory + k.mT @ v, z + k.sum(1)[..., None]
    return torch.cat(out, 1)[:, : x.shape[1]]


@UNSEEN.add(causal=False, batch=True)
def memory_tokens_that_join_each_segment(m: Parts, x: Tensor) -> Tensor:
    memory, out = m.latents.expand(len(x), -1, -1), []
    for part in F.pad(x, (0, 0, 0, -x.shape[1] % 4)).split(4, dim=1):
        y = torch.cat([memory, part], dim=1)
        y = y + m.scores(y).softmax(-1) @ m.v(y)
        memory = y[:, :3]
        out.append(y[:, 3:])
    return torch.cat(out, 1)[:, : x.shape[1]]


@UNSEEN.add(causal=True, batch=True)
def kalman_filter_of_each_feature(m: Parts, x: Tensor) -> Tensor:
    mean, p, out = torch.zeros_like(x[:, 0]), torch.ones_like(x[:, 0]), []
    noise = F.softplus(m.gate(x)) + 0.1
    for t in range(x.shape[1]):
        p = m.decay**2 * p + 0.1
        gain = p / (p + noise[:, t])
        mean = m.decay * mean + gain * (m.v(x[:, t]) - m.decay * mean)
        p = (1 - gain) * p
        out.append(mean)
    return torch.stack(out, 1)


@UNSEEN.add(causal=False, batch=True)
def smoother_of_a_random_walk(m: Parts, x: Tensor) -> Tensor:
    mean, means = torch.zeros_like(x[:, 0]), []
    for t in range(x.shape[1]):
        mean = mean + 0.4 * (m.v(x[:, t]) - mean)
        means.append(mean)
    out = [means[-1]]
    for t in range(x.shape[1] - 2, -1, -1):
        out.insert(0, means[t] + 0.6 * (out[0] - means[t]))
    return torch.stack(out, 1)


@UNSEEN.add(masked=True, padding=True, causal=True, batch=True)
def last_observed_value_with_a_decay(m: Parts, x: Tensor, mask: Tensor) -> Tensor:
    h, last, gap = torch.zeros_like(x[:, 0]), torch.zeros_like(x[:, 0]), torch.zeros_like(x[:, 0, :1])
    out = []
    for t in range(x.shape[1]):
        seen = mask[:, t, None].to(x.dtype)
        decay, gap = torch.exp(-F.relu(m.decay * gap)), (1 - seen) * (gap + 1)
        last = torch.where(seen > 0, x[:, t], last)
        h = m.cell(seen * last + (1 - seen) * decay * last, decay * h)
        out.append(h)
    return torch.stack(out, 1)


@UNSEEN.add(causal=True, batch=True)
def patterns_recalled_by_repeated_attention(m: Parts, x: Tensor) -> Tensor:
    state, k = m.q(x), m.k(x)
    for _ in range(3):
        w = (0.5 * state @ k.mT).masked_fill(later(x.shape[1]), INF).softmax(-1)
        state = w @ k
    return m.v(state)


@UNSEEN.add(causal=True, batch=False)
def hebbian_trace_shared_by_the_batch(m: Parts, x: Tensor) -> Tensor:
    trace, h, out = x.new_zeros(WIDTH, WIDTH), torch.zeros_like(x[:, 0]), []
    for t in range(x.shape[1]):
        new = torch.tanh(m.v(x[:, t]) + h @ (m.o.weight + m.scale * trace))
        trace = 0.9 * trace + 0.1 * torch.bmm(h[:, :, None], new[:, None]).mean(0)
        h = new
        out.append(h)
    return torch.stack(out, 1)
