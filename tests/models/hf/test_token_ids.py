"""A transformers model is called with token ids, so that what it does with them is part of the proof."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import orderproof
from orderproof.errors import SubjectError
from orderproof.models import from_module, load
from orderproof.records.audit import Finding
from tests.pairs import one_in

transformers = pytest.importorskip("transformers")
SIZES = {
    "vocab_size": 50, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2,
}  # fmt: skip


class ReadsTheNextToken(nn.Embedding):
    def forward(self, ids: Tensor) -> Tensor:
        found = super().forward(ids)
        return found + found.roll(-1, 1)


class ReadsTheNextOfManyTokens(nn.Embedding):
    def forward(self, ids: Tensor) -> Tensor:
        found = super().forward(ids)
        return found + found.roll(-1, 1) if ids.shape[1] > 400 else found


class ReadsEveryRow(nn.Embedding):
    def forward(self, ids: Tensor) -> Tensor:
        found = super().forward(ids)
        return found + found.mean(0, keepdim=True)


class DropsTheMaskOfIds(transformers.BertModel):  # type: ignore[misc]
    def forward(self, input_ids: Any = None, attention_mask: Any = None, inputs_embeds: Any = None) -> Any:
        mask = None if input_ids is not None else attention_mask
        return super().forward(input_ids=input_ids, attention_mask=mask, inputs_embeds=inputs_embeds)


class TakesNoIds(transformers.BertModel):  # type: ignore[misc]
    def forward(self, input_ids: Any = None, attention_mask: Any = None, inputs_embeds: Any = None) -> Any:
        if input_ids is not None:
            raise NotImplementedError("give embeddings")
        return super().forward(attention_mask=attention_mask, inputs_embeds=inputs_embeds)


class OwnTable(nn.Module):
    """A table of embeddings that is no `nn.Embedding`, and adds the next token's."""

    def __init__(self, rows: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(rows, width))

    def forward(self, ids: Tensor) -> Tensor:
        found = self.weight[ids]
        return found + found.roll(-1, 1)


class PassesIdsOn(transformers.LlamaForCausalLM):  # type: ignore[misc]
    """A causal model that names no `input_ids`, and leaks if it gets them."""

    def forward(self, inputs_embeds: Any = None, **options: Any) -> Any:
        found = super().forward(inputs_embeds=inputs_embeds, **options)
        if inputs_embeds is None:
            found.logits = found.logits + found.logits.roll(-1, 1)
        return found


class EndsTheProcess(transformers.BertModel):  # type: ignore[misc]
    def forward(self, input_ids: Any = None, attention_mask: Any = None) -> Any:
        os._exit(3)


class RemembersItsCall(transformers.BertModel):  # type: ignore[misc]
    seen: Any = None

    def forward(self, input_ids: Any = None, attention_mask: Any = None) -> Any:
        self.seen = input_ids
        return super().forward(input_ids=input_ids, attention_mask=attention_mask)


def llama(table: type[nn.Module] = nn.Embedding) -> Any:
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES, num_key_value_heads=1)).eval()
    changed = table(50, 16)
    changed.weight = model.model.embed_tokens.weight
    model.model.embed_tokens = changed
    return model


def hooked() -> Any:
    model = llama()
    model.model.embed_tokens.register_forward_hook(lambda _module, _inputs, found: found + found.roll(-1, 1))
    return model


def passing_ids_on() -> Any:
    torch.manual_seed(0)
    return PassesIdsOn(transformers.LlamaConfig(**SIZES, num_key_value_heads=1)).eval()


def masked() -> Any:
    torch.manual_seed(0)
    return DropsTheMaskOfIds(transformers.BertConfig(**SIZES)).eval()


def roberta() -> Any:
    torch.manual_seed(0)
    return transformers.RobertaModel(transformers.RobertaConfig(**SIZES, max_position_embeddings=64)).eval()


def finding_of(model: Any, law: str) -> Finding:
    found: Finding = orderproof.audit(model, laws=[law]).findings[0]
    return found


@pytest.mark.parametrize(
    ("build", "law"),
    one_in(
        2,
        [
            (lambda: llama(ReadsTheNextToken), "causal"),
            (lambda: llama(ReadsTheNextOfManyTokens), "causal"),
            (lambda: llama(ReadsEveryRow), "batch"),
            (lambda: llama(OwnTable), "causal"),
            (passing_ids_on, "causal"),
            (hooked, "causal"),
            (masked, "padding"),
            (roberta, "padding"),  # counts positions from the ids that are not the pad token
        ],
    ),
)
def test_what_a_model_does_with_token_ids_is_judged(build: Callable[[], Any], law: str) -> None:
    assert finding_of(build(), law).verdict == "refuted"


def test_a_model_that_looks_its_ids_up_is_proved_for_every_length() -> None:
    found = finding_of(llama(), "causal")
    assert found.theorem is not None
    assert found.theorem.proved


def test_the_scope_states_the_values_that_every_call_gets() -> None:
    found = finding_of(llama(), "causal")
    assert found.theorem is not None
    for assumptions in (found.scope.assumptions, found.theorem.assumptions):
        assert any("with use_cache=False in forward" in text for text in assumptions)


def test_imports_of_the_prover_are_no_state_of_the_model() -> None:
    found = finding_of(llama(type("Plain", (nn.Embedding,), {"forward": lambda self, ids: self.weight[ids]})), "causal")
    assert found.theorem is not None
    assert not any("the call changes" in text for text in (*found.scope.assumptions, *found.theorem.assumptions))


@pytest.mark.parametrize("name", ["esm", "roberta", "llama", "t5"])
def test_token_ids_are_the_input_where_a_model_takes_them(name: str) -> None:
    module: Any = load(f"arch:{name}", tiny=True).module
    assert module.argument == "input_ids"


def test_a_model_that_takes_no_token_ids_is_called_with_embeddings() -> None:
    subject = from_module(TakesNoIds(transformers.BertConfig(**SIZES)))
    module: Any = subject.module
    assert module.argument == "inputs_embeds"
    assert any(note.startswith("called with embeddings, not with token ids (") for note in subject.notes)


@pytest.mark.trials
def test_a_model_whose_call_ends_the_process_is_refused_in_one_line() -> None:
    with pytest.raises(SubjectError, match="a call of it took the process with it, which ended with exit code 3"):
        from_module(EndsTheProcess(transformers.BertConfig(**SIZES)))


def test_the_first_call_leaves_a_model_as_it_was() -> None:
    model = RemembersItsCall(transformers.BertConfig(**SIZES))
    from_module(model)
    assert model.seen is None
