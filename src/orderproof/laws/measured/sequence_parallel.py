"""OP503 sequence_parallel: sequence parallelism gives the output of a single rank.

    f(x)[tokens of rank r]  =  the output of rank r for x[tokens of rank r], with the keys of all ranks

with global position ids, for a contiguous split (first half, second half) and for the zig-zag split that balances
causal attention (rank 0 has the first and the last quarter). The ranks are two processes on this machine.
Source: Grattafiori et al. 2024, "The Llama 3 Herd of Models", arXiv:2407.21783, section 3.3.2 (keys and values
gathered from all ranks; rank i of n has the parts i and 2 n - 1 - i). Broken by positions that each rank counts from
its own first token.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from orderproof.errors import UnsupportedCallError
from orderproof.laws.measured.cached_calls import CachedCalls
from orderproof.laws.measured.controls import move_second_half
from orderproof.laws.measured.measured_law import Comparison, MeasuredLaw, OutputPair

RANK_QUARTERS = {"contiguous": ((0, 1), (2, 3)), "zig-zag": ((0, 3), (1, 2))}  # the quarters of the tokens on each rank


class SequenceParallel(MeasuredLaw):
    """The law of this module."""

    of_any_weights = True
    inapplicable_if_unsupported = True

    def comparisons(self, calls: CachedCalls) -> Iterator[Comparison]:
        for name in RANK_QUARTERS:
            yield Comparison(f"two ranks, {name} split", partial(_compare_split, name=name))

    def control(self, calls: CachedCalls) -> OutputPair:
        return move_second_half(calls)


def _compare_split(calls: CachedCalls, *, name: str) -> OutputPair:
    tokens = _tokens(calls)
    outputs = calls.memoize("outputs by rank", partial(_outputs_by_rank, calls))
    joined, indices = torch.empty_like(outputs[0][0]).repeat(1, 2, 1), _token_indices(tokens.shape[1], name)
    for rank, parts in enumerate(outputs):
        joined[:, indices[rank]] = parts[list(RANK_QUARTERS).index(name)]
    return calls.forward(tokens), joined


def _outputs_by_rank(calls: CachedCalls) -> list[list[Tensor]]:
    """The outputs of each rank in each split; the processes are started once for all splits."""
    from orderproof.blocks.sequence_parallel.local_ranks import run_on_ranks

    tokens = _tokens(calls)
    positions = calls.default_position_ids(tokens.shape[1])
    calls.adapter.sequence_parallel(0, 2, torch.arange(tokens.shape[1] // 2))  # refused before processes are started

    def work(rank: int) -> list[Tensor]:
        outputs = []
        for name, quarters in RANK_QUARTERS.items():
            own = _token_indices(tokens.shape[1], name)[rank]
            with calls.adapter.sequence_parallel(rank, len(quarters), own):
                output = calls.uncached_call(tokens[:, own], positions=positions[:, own], keep=False).output
            if output.dim() != 3 or output.shape[1] != len(own):
                raise UnsupportedCallError("it does not give one output per token")
            outputs.append(output)
        return outputs

    return run_on_ranks(work, 2)


def _tokens(calls: CachedCalls) -> Tensor:
    """Tokens whose number is a multiple of four."""
    most = calls.adapter.max_positions or calls.default_length + 3
    return calls.sample_tokens(min(calls.default_length + 3, most) // 4 * 4)


def _token_indices(tokens: int, name: str) -> list[Tensor]:
    quarters = torch.arange(tokens).chunk(4)
    return [torch.cat([quarters[i] for i in own]) for own in RANK_QUARTERS[name]]


LAW = SequenceParallel(
    code="OP503",
    name="sequence_parallel",
    statement="Sequence parallelism over several ranks gives the output of a single rank.",
    trait="gives the same output under sequence parallelism",
    expectation={"causal_lm": "holds", "encoder": "holds"},
    remedy="Give every rank the global position ids of its tokens, and mask by them, not by the index of a key.",
    diff="-position_ids = torch.arange(n)\n+position_ids = rank * n + torch.arange(n)",
    required_inputs=frozenset({"positions"}),
)
