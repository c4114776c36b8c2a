"""Programs with a loop over tokens, or over chunks of tokens."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.programs import WIDTH, Case, Program, from_chunks, in_chunks

BOTH = frozenset({"causal", "batch"})


def _stacked(m: Program, x: Tensor) -> Tensor:
    """A linear recurrence whose outputs are stacked."""
    state, outputs = torch.zeros(x.shape[0], WIDTH), []
    decay, added = torch.sigmoid(m.first(x)), m.second(x)
    for i in range(x.shape[1]):
        state = decay[:, i] * state + added[:, i]
        outputs.append(m.third(state))
    return torch.stack(outputs, dim=1)


def _written(m: Program, x: Tensor) -> Tensor:
    """The same with a tensor that is written to."""
    found, total, largest = torch.zeros_like(x), torch.zeros_like(x[:, 0]), torch.zeros_like(x[:, 0]) - 1e38
    for i in range(x.shape[1]):
        largest = torch.maximum(largest, m.first(x)[:, i])
        total = total + m.second(x)[:, i] * torch.sigmoid(largest)
        found[:, i] = total
    return found


def _masked(m: Program, x: Tensor, mask: Tensor) -> Tensor:
    """Pads add nothing."""
    state, outputs = torch.zeros(x.shape[0], WIDTH), []
    added = x.masked_fill(~mask.bool()[..., None], 0.0)
    for i in range(x.shape[1]):
        state = state + added[:, i]
        outputs.append(state)
    return torch.stack(outputs, dim=1)


def _from_a_token(m: Program, x: Tensor, place: int = 0) -> Tensor:
    """A running mean that begins with one of the tokens."""
    state, outputs = x[:, place], []
    for i in range(x.shape[1]):
        state = 0.4 * m.first(x[:, i]) + 0.6 * state
        outputs.append(state)
    return torch.stack(outputs, dim=1)


def _of_parts(m: Program, x: Tensor) -> Tensor:
    """Over the tokens themselves, with outputs that are joined."""
    state, outputs = torch.zeros(x.shape[0], WIDTH), []
    for token in m.first(x).unbind(1):
        state = torch.tanh(state + token)
        outputs.append(state.unsqueeze(1))
    return torch.cat(outputs, dim=1)


def _of_parts_backwards(m: Program, x: Tensor) -> Tensor:
    """Over the tokens in reverse."""
    state, outputs = torch.zeros(x.shape[0], WIDTH), []
    for token in torch.unbind(x.flip(1), dim=1):
        state = state + token
        outputs.append(state)
    return torch.stack(outputs, dim=1)


def _gated(m: Program, x: Tensor) -> Tensor:
    """A gated cell, which writes to parts of what it computes."""
    weight, bias = torch.cat([m.first.weight, m.second.weight, m.third.weight]), m.first.bias.repeat(3)
    state, outputs = torch.zeros(x.shape[0], WIDTH), []
    for token in x.unbind(1):
        state = torch.gru_cell(token, state, weight, weight, bias, bias)
        outputs.append(state)
    return torch.stack(outputs, dim=1)


def _backwards(m: Program, x: Tensor) -> Tensor:
    state, outputs = torch.zeros(x.shape[0], WIDTH), []
    for i in range(x.shape[1]):
        state = state + x[:, x.shape[1] - 1 - i]
        outputs.append(state)
    return torch.stack(outputs, dim=1)


def _last_state(m: Program, x: Tensor) -> Tensor:
    """Every token reads the state after the loop."""
    state = torch.zeros(x.shape[0], WIDTH)
    for i in range(x.shape[1]):
        state = torch.tanh(state + x[:, i])
    return x + state[:, None]


def _rows(m: Program, x: Tensor) -> Tensor:
    """The state is a mean over rows."""
    state, outputs = torch.zeros(x.shape[0], WIDTH), []
    for i in range(x.shape[1]):
        state = (state + x[:, i]).mean(0, keepdim=True).expand(x.shape[0], WIDTH)
        outputs.append(state)
    return torch.stack(outputs, dim=1)


def _of_chunks(m: Program, x: Tensor) -> Tensor:
    """Each chunk reads the states of those before it, and within itself the tokens before."""
    chunks, state = in_chunks(x), torch.zeros(x.shape[0], 1, WIDTH)
    found = torch.zeros_like(chunks)
    for c in range(chunks.shape[1]):
        chunk = chunks[:, c]
        found[:, c] = chunk.cumsum(1) + state
        state = torch.sigmoid(state) + m.first(chunk).sum(1, keepdim=True)
    return from_chunks(found, x.shape[1])


def _of_whole_chunks(m: Program, x: Tensor) -> Tensor:
    """A chunk reads its own state too."""
    chunks, state = in_chunks(x), torch.zeros(x.shape[0], 1, WIDTH)
    found = torch.zeros_like(chunks)
    for c in range(chunks.shape[1]):
        state = state + chunks[:, c].sum(1, keepdim=True)
        found[:, c] = chunks[:, c] + state
    return from_chunks(found, x.shape[1])


def _solved(m: Program, x: Tensor) -> Tensor:
    """A triangular system within each chunk."""
    chunks = in_chunks(x)
    system = torch.tanh(m.first(chunks) @ m.second(chunks).mT)
    found = torch.linalg.solve_triangular(system, chunks, upper=False, unitriangular=True)
    return from_chunks(found, x.shape[1])


def _solved_backwards(m: Program, x: Tensor) -> Tensor:
    chunks = in_chunks(x)
    system = torch.tanh(m.first(chunks) @ m.second(chunks).mT)
    found = torch.linalg.solve_triangular(system, chunks, upper=True, unitriangular=True)
    return from_chunks(found, x.shape[1])


def _solved_with_diagonal(m: Program, x: Tensor) -> Tensor:
    """The same from the right, with a diagonal that is read; the triangle of a transposed system is the upper one."""
    chunks = in_chunks(x)
    system = torch.tanh(m.first(chunks) @ m.second(chunks).mT).mT + 3 * torch.eye(4)
    found = torch.linalg.solve_triangular(system, chunks.mT, upper=True, left=False)
    return from_chunks(found.mT, x.shape[1])


def _row_by_row(m: Program, x: Tensor, *, ahead: int = 0) -> Tensor:
    """Scores within chunks, with decays per feature: each row is corrected by the rows before it, one after another."""
    queries, keys, values = (in_chunks(part(x)) for part in (m.first, m.second, m.third))
    decay = torch.sigmoid(queries).cumsum(2)
    later = torch.ones(4, 4, dtype=torch.bool).triu(1)
    decays = (decay[..., :, None, :] - decay[..., None, :, :]).masked_fill(later[..., None], float("-inf")).exp()
    scores = -(queries[..., :, None, :] * keys[..., None, :, :] * decays).sum(-1)
    scores = scores.masked_fill(torch.ones(4, 4, dtype=torch.bool).triu(), 0)
    for i in range(1, 4 - ahead):
        row, rows = scores[..., i + ahead, :i].clone(), scores[..., :i, :i].clone()
        scores[..., i, :i] = row + (row[..., None] * rows).sum(-2)
    return from_chunks((scores + torch.eye(4)) @ values, x.shape[1])


def _row_ahead(m: Program, x: Tensor) -> Tensor:
    """Each row is corrected by the scores of the row after it."""
    return _row_by_row(m, x, ahead=1)


def _joined_pairs(m: Program, x: Tensor, *, late: bool = False) -> Tensor:
    """Each iteration adds two tensors to what is joined."""
    state, outputs = torch.zeros(x.shape[0], WIDTH), []
    for token in x.unbind(1):
        state = state + token
        outputs.append(torch.stack([state, token], 1))
    pairs = torch.cat(outputs, dim=1)
    return pairs[:, x.shape[1] :] if late else pairs[:, : x.shape[1]]


def _joined_chunks(m: Program, x: Tensor, *, own: bool = False) -> Tensor:
    """Each chunk reads the state of those before it, or its own one, and is joined with them."""
    chunks, state, outputs = in_chunks(x), torch.zeros(x.shape[0], 1, WIDTH), []
    for c in range(chunks.shape[1]):
        after = torch.tanh(state + m.first(chunks[:, c]).sum(1, keepdim=True))
        outputs.append(chunks[:, c].cumsum(1) + (after if own else state))
        state = after
    return torch.cat(outputs, 1)[:, : x.shape[1]]


def _trend(m: Program, x: Tensor, *, place: int = 0) -> Tensor:
    """A level and its trend: an iteration keeps the level before for itself."""
    level, trend, outputs = x[:, place], torch.zeros_like(x[:, 0]), []
    for i in range(x.shape[1]):
        before = level
        level = 0.4 * x[:, i] + 0.6 * (level + trend)
        trend = 0.2 * (level - before) + 0.8 * trend
        outputs.append(level + trend)
    return torch.stack(outputs, 1)


def _first_apart(m: Program, x: Tensor, *, place: int = 0) -> Tensor:
    """A state that is a number at first, and the first token or another one after the first iteration."""
    state, outputs = 0, []
    for i in range(x.shape[1]):
        state = m.first(x[:, place]) if i == 0 else torch.tanh(0.5 * state + x[:, i])
        outputs.append(state)
    return torch.stack(outputs, 1)


def _number_at_first(m: Program, x: Tensor, *, ahead: int = 0) -> Tensor:
    """Sums that begin with the number zero, over tokens or those one ahead."""
    total, found = 0, torch.zeros_like(x)
    for i in range(x.shape[1] - ahead):
        total = 0.9 * total + m.first(x)[:, i + ahead]
        found[:, i] = total
    return found


def _handed_over(m: Program, x: Tensor) -> Tensor:
    """A recurrent layer for each chunk, with no state before the first one."""
    chunks, state, outputs = in_chunks(x), None, []
    for c in range(chunks.shape[1]):
        first = torch.zeros(x.shape[0], 1, WIDTH) if state is None else state
        outputs.append(chunks[:, c].cumsum(1) + first)
        state = torch.tanh(first + chunks[:, c].sum(1, keepdim=True))
    return torch.cat(outputs, 1)[:, : x.shape[1]]


def _two_states(m: Program, x: Tensor, *, place: int = 0) -> Tensor:
    """Each state is made of the one two steps before."""
    before, state, outputs = x[:, place], x[:, 0] * 2, []
    for i in range(x.shape[1]):
        before, state = state, torch.tanh(before + m.first(x[:, i]))
        outputs.append(state)
    return torch.stack(outputs, 1)


def _inputs_and_outputs_before(m: Program, x: Tensor, *, ahead: int = 0) -> Tensor:
    """A filter that reads two inputs, or one ahead, and the last two outputs."""
    x1 = y1 = y2 = torch.zeros_like(x[:, 0])
    found = torch.zeros_like(x)
    for i in range(x.shape[1] - ahead):
        y = m.first(x[:, i + ahead]) + 0.3 * x1 + 0.5 * y1 - 0.2 * y2
        x1, y1, y2 = x[:, i], y, y1
        found[:, i] = y
    return found


def _row_of_a_table(m: Program, x: Tensor, *, ahead: int = 0) -> Tensor:
    """Each step reads its row of a table, which has 64 of them."""
    state, outputs = torch.zeros_like(x[:, 0]), []
    for i in range(x.shape[1]):
        state = torch.tanh(state + m.table.weight[i] + x[:, i])
        outputs.append(state)
    return torch.stack(outputs, 1) + ahead * x.roll(-1, 1)


def _two_states_and_the_first(m: Program, x: Tensor, *, kept: int = 0) -> Tensor:
    """Another name keeps a token; the tensor of two steps before has another shape at first."""
    before, state, outputs, first = x[:, 0, :1], x[:, 0] * 2, [], x[:, kept]
    for i in range(x.shape[1]):
        before, state = state, torch.tanh(before + first + x[:, i])
        outputs.append(state)
    return torch.stack(outputs, 1)


def _split(m: Program, x: Tensor, *, own: bool = False) -> Tensor:
    """The parts of padded tokens and of what is computed from them, each with the state of those before it."""
    whole = F.pad(x, (0, 0, 0, -x.shape[1] % 4))
    state, outputs = torch.zeros(x.shape[0], 1, WIDTH), []
    for part, other in zip(whole.split(4, dim=1), torch.split(m.first(whole), 4, 1), strict=True):
        after = torch.tanh(state + other.sum(1, keepdim=True))
        outputs.append(part.cumsum(1) + (after if own else state))
        state = after
    return torch.cat(outputs, 1)[:, : x.shape[1]]


def written_parts(m: Program, x: Tensor) -> Tensor:
    """The parts of a tensor, to which each iteration writes."""
    whole = F.pad(m.first(x), (0, 0, 0, -x.shape[1] % 4))
    state = torch.zeros(x.shape[0], 1, WIDTH)
    for part in whole.split(4, 1):
        total = part.sum(1, keepdim=True)
        part.copy_(part.cumsum(1) + state)
        state = torch.tanh(state + total)
    return whole[:, : x.shape[1]]


def _last_of_a_list(m: Program, x: Tensor, *, place: int = 0) -> Tensor:
    """States in a list, whose last one and the one before it are read."""
    states = [x[:, place], x[:, 0] * 2]
    for i in range(x.shape[1]):
        states.append(torch.tanh(m.first(states[-1]) + states[-2] + x[:, i]))
    return torch.stack(states[2:], 1)


def _cut_list(m: Program, x: Tensor) -> Tensor:
    """The first output is left out."""
    state, outputs = x[:, 0], []
    for i in range(x.shape[1]):
        state = torch.tanh(state + x[:, i])
        outputs.append(state)
    return torch.cat([x[:, :1], torch.stack(outputs[1:], 1)], 1)


def _of_all_tokens(m: Program, x: Tensor) -> Tensor:
    """A state that begins as all tokens: no iteration says more of it than what is known when the loop begins."""
    state, outputs = m.first(x), []
    for i in range(x.shape[1]):
        state = torch.tanh(state + m.second(x[:, i : i + 1]))
        outputs.append(state.mean(1))
    return torch.stack(outputs, dim=1)


def _in_chunks_from_a_token(m: Program, x: Tensor, place: int = 0) -> Tensor:
    """A state of chunks that begins with one of the tokens."""
    state, outputs = x[:, place : place + 1], []
    for chunk in F.pad(x, (0, 0, 0, -x.shape[1] % 4)).split(4, 1):
        state = torch.tanh(m.second(state) + chunk[:, :1])
        outputs.append(m.first(chunk) + state)
    return torch.cat(outputs, 1)[:, : x.shape[1]]


LOOPS = [
    Case("a list without its first output", _cut_list, BOTH),
    Case("states in a list", _last_of_a_list, BOTH),
    Case("states in a list from the last", lambda m, x: _last_of_a_list(m, x, place=-1), frozenset({"batch"})),
    Case("two states and the first token", _two_states_and_the_first, BOTH),
    Case("two states and the last", lambda m, x: _two_states_and_the_first(m, x, kept=-1), frozenset({"batch"})),
    Case("a state of two steps before", _two_states, BOTH),
    Case("a state of two steps before, from the last", lambda m, x: _two_states(m, x, place=-1), frozenset({"batch"})),
    Case("a filter of inputs and outputs before", _inputs_and_outputs_before, BOTH),
    Case("a filter ahead", lambda m, x: _inputs_and_outputs_before(m, x, ahead=1), frozenset({"batch"})),
    Case("a row of a table at each step", _row_of_a_table, BOTH, greatest=64),
    Case("a table and a token ahead", lambda m, x: _row_of_a_table(m, x, ahead=1), frozenset({"batch"}), greatest=64),
    Case("a loop whose first iteration is another", _first_apart, BOTH),
    Case("a loop that begins with another token", lambda m, x: _first_apart(m, x, place=1), frozenset({"batch"})),
    Case("a loop whose state is a number at first", _number_at_first, BOTH),
    Case("sums of tokens ahead", lambda m, x: _number_at_first(m, x, ahead=1), frozenset({"batch"})),
    Case("a state of all tokens", _of_all_tokens, frozenset({"batch"})),
    Case("a recurrence whose outputs are stacked", _stacked, BOTH),
    Case("a recurrence that writes its outputs", _written, BOTH),
    Case("a recurrence to which pads add nothing", _masked, BOTH | {"padding"}, masked=True),
    Case("a recurrence that begins with the first token", _from_a_token, BOTH),
    Case("a recurrence that begins with the second token", lambda m, x: _from_a_token(m, x, 1), frozenset({"batch"})),
    Case("a recurrence that begins with the last token", lambda m, x: _from_a_token(m, x, -1), frozenset({"batch"})),
    Case("a recurrence over parts whose outputs are joined", _of_parts, BOTH),
    Case("a recurrence over parts from the last one on", _of_parts_backwards, frozenset({"batch"})),
    Case("a gated recurrence over parts", _gated, BOTH),
    Case("a recurrence from the last token on", _backwards, frozenset({"batch"})),
    Case("a state after a loop", _last_state, frozenset({"batch"})),
    Case("a loop that mixes rows", _rows, frozenset({"causal"})),
    Case("a loop whose iterations add pairs", _joined_pairs, BOTH),
    Case("a loop whose later pairs are read", lambda m, x: _joined_pairs(m, x, late=True), frozenset({"batch"})),
    Case("a level and its trend", _trend, BOTH),
    Case("a trend that begins with the last level", lambda m, x: _trend(m, x, place=-1), frozenset({"batch"})),
    Case(
        "chunks that are joined with their own state",
        lambda m, x: _joined_chunks(m, x, own=True),
        frozenset({"batch"}),
        least=5,
    ),
    Case("a loop over whole chunks", _of_whole_chunks, frozenset({"batch"}), least=5),
]
IN_CHUNKS = [
    Case("chunks after the first token", _in_chunks_from_a_token, BOTH, least=5),
    Case(
        "chunks after the second token",
        lambda m, x: _in_chunks_from_a_token(m, x, 1),
        frozenset({"batch"}),
        least=5,
    ),
    Case("parts of padded tokens", _split, BOTH),
    Case("parts that read their own state", lambda m, x: _split(m, x, own=True), frozenset({"batch"})),
    Case("chunks with no state before the first one", _handed_over, BOTH),
    Case("a loop over chunks", _of_chunks, BOTH, least=5),
    Case("a loop over chunks that are joined", _joined_chunks, BOTH, least=5),
    Case("rows that are corrected one after another", _row_by_row, BOTH, least=5),
    Case("rows that are corrected by the next one", _row_ahead, frozenset({"batch"}), least=5),
    Case("triangular systems", _solved, BOTH, least=5),
    Case("triangular systems from the last row on", _solved_backwards, frozenset({"batch"}), least=5),
    Case("triangular systems with a diagonal, from the right", _solved_with_diagonal, BOTH, least=5),
]
