"""Flex attention called without torch.compile: its functions for masks and scores capture tensors of the call."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from orderproof import audit
from orderproof.models import from_module
from orderproof.recording.compiled_code import without_compilation
from tests.pairs import first_soon

Rule = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
HEADS, WIDTH = 2, 8


class Flex(nn.Module):
    """A layer of flex attention over at most 20 ids; subclasses state who sees whom.

    With `leaks` each token sees the next one.
    """

    def __init__(self, *, leaks: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.leaks = int(leaks)
        self.words, self.places = nn.Embedding(12, HEADS * WIDTH), nn.Embedding(20, HEADS * WIDTH)
        self.qkv = nn.Linear(HEADS * WIDTH, 3 * HEADS * WIDTH)
        self.register_buffer("slopes", torch.tensor([0.5, 0.25]))

    def rule(self, ids: Tensor) -> Rule:
        """The mask function of a call."""
        raise NotImplementedError

    def heads(self, ids: Tensor) -> tuple[Tensor, ...]:
        """Queries, keys and values [row, head, token, width]."""
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        return tuple(y.unflatten(-1, (HEADS, WIDTH)).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))

    def attend(self, ids: Tensor, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """The mixed values [row, head, token, width]."""
        n = ids.shape[1]
        blocks = create_block_mask(self.rule(ids), len(ids), None, n, n, device="cpu")
        return flex_attention(query, key, value, block_mask=blocks)

    def forward(self, input_ids: Tensor) -> Tensor:
        """Outputs [row, token, width]."""
        return self.attend(input_ids, *self.heads(input_ids)).transpose(1, 2).flatten(2)


class Documents(Flex):
    """Documents that begin at token 0."""

    def rule(self, ids: Tensor) -> Rule:
        document = (ids == 0).long().cumsum(1)

        def seen(row: Tensor, _: Tensor, query: Tensor, key: Tensor) -> Tensor:
            return (query + self.leaks >= key) & (document[row, query] == document[row, key])

        return seen


class Pads(Flex):
    """Pads are hidden by one row of booleans for each text."""

    def rule(self, ids: Tensor) -> Rule:
        real = ids != 1

        def seen(row: Tensor, _: Tensor, query: Tensor, key: Tensor) -> Tensor:
            return ((query + self.leaks >= key) & real[row, key]) | (query == key)

        return seen


class Slopes(Flex):
    """Scores fall with distance, by a slope of each head."""

    def attend(self, ids: Tensor, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        def scored(score: Tensor, _: Tensor, head: Tensor, q: Tensor, k: Tensor) -> Tensor:
            return torch.where(q + self.leaks >= k, score - self.slopes[head] * (q - k), -torch.inf)

        return flex_attention(query, key, value, score_mod=scored)


class Window(Flex):
    """Each head sees a window of its own, with one head of keys for all."""

    def heads(self, ids: Tensor) -> tuple[Tensor, ...]:
        query, key, value = super().heads(ids)
        return query.contiguous(), key[:, :1], value[:, :1]

    def attend(self, ids: Tensor, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        sizes, n = torch.tensor([2, 4]), ids.shape[1]

        def seen(_: Tensor, head: Tensor, q: Tensor, k: Tensor) -> Tensor:
            return (q + self.leaks >= k) & (q - k < sizes[head])

        blocks = create_block_mask(seen, None, HEADS, n, n, device="cpu")
        return flex_attention(query, key, value, block_mask=blocks, enable_gqa=True)


class Lengths(Flex):
    """The tokens of a text end at its first 2; a table of the call says where."""

    def rule(self, ids: Tensor) -> Rule:
        ended = (ids == 2).cumsum(1) > 0

        def seen(row: Tensor, _: Tensor, query: Tensor, key: Tensor) -> Tensor:
            return torch.logical_and(key <= query + self.leaks, torch.logical_or(~ended[row, key], key == query))

        return seen


KINDS = (Pads, Documents, Slopes, Window, Lengths)


@pytest.mark.parametrize("kind", first_soon(KINDS))
def test_a_mask_function_that_captures_tensors_is_recorded(kind: type[Flex]) -> None:
    ids = torch.randint(0, 12, (2, 7), generator=torch.Generator().manual_seed(0))
    verdicts = {}
    for leaks in (False, True):
        subject = from_module(kind(leaks=leaks), (ids,), assume={"model_kind": "causal_lm"})
        causal, batch = audit(subject, laws=["causal", "batch"]).findings
        assert batch.verdict == "proved", batch.reason
        verdicts[leaks] = causal.verdict
        if leaks:
            assert causal.fix_source.partition(":")[0].endswith("test_flex_attention.py")
    assert verdicts == {False: "proved", True: "refuted"}


def test_the_line_of_a_wrong_comparison_is_named() -> None:
    subject = from_module(Documents(leaks=True), (torch.randint(0, 12, (2, 7)),), assume={"model_kind": "causal_lm"})
    (causal,) = audit(subject, laws=["causal"]).findings
    assert "query + self.leaks >= key" in causal.fix_line


def test_nothing_stays_replaced() -> None:
    flex = sys.modules["torch.nn.attention.flex_attention"]
    implementation = sys.modules["torch._higher_order_ops.flex_attention"]
    before = (flex._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG, implementation._permute_strides)
    with without_compilation():
        assert flex._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG is True
    assert before == (flex._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG, implementation._permute_strides)
    assert before[0] is False
