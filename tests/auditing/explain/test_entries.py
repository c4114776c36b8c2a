"""Entry maps: where order enters real architectures, and that the map is complete."""

from __future__ import annotations

import operator
from functools import cache

import pytest
import torch
from torch import Tensor, nn

from orderproof import laws, prove
from orderproof.auditing.explain.entries import operator_name
from orderproof.records.audit import Finding
from orderproof.report import entry_map_phrases
from tests.auditing.internals import ARCHITECTURES, ProofOptions, examined, prove_law


@cache
def blindness(name: str, attention: str = "sdpa") -> Finding:
    """What is found of order-blindness for the first output."""
    return prove_law(
        examined(name, attention),
        laws.find_proved_law("permutation"),
        ProofOptions(search_witness=name in ("bert", "llama"), every_length=False),
    )[0]


def test_order_enters_bert_in_one_place() -> None:
    found = blindness("bert")
    (entry,) = found.entries
    assert (entry.kind, entry.operator, entry.module) == ("constant", "aten.add.Tensor", "model.embeddings")
    assert entry.source.startswith("modeling_bert.py:")
    assert entry.source_line == "embeddings = embeddings + position_embeddings"
    assert entry.origin == "model.embeddings.position_embeddings.weight"
    assert (entry.node_count, found.entries_complete) == (1, True)
    assert found.verdict == "refuted"
    assert found.witness is not None
    assert len(found.witness.tokens_before) == 2
    assert found.witness.first_violating_module == "model.embeddings"


def test_order_enters_llama_by_rotation_and_by_its_mask() -> None:
    found = blindness("llama")
    assert {e.kind for e in found.entries} == {"constant"}
    assert {e.operator for e in found.entries} == {"aten.mul.Tensor", "aten.scaled_dot_product_attention.default"}
    assert all(e.module == "model.layers.*.self_attn" for e in found.entries)
    assert all(e.source.startswith("modeling_llama.py:") or "attention" in e.source for e in found.entries)
    assert (
        sum(e.node_count for e in found.entries if e.operator == "aten.mul.Tensor") == 8
    )  # cos, sin; q, k; two layers
    assert (found.verdict, found.entries_complete) == ("refuted", True)


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_order_enters_roberta_where_it_counts_the_ids_that_are_no_pads(attention: str) -> None:
    found = blindness("roberta", attention)
    assert {(e.kind, e.operator) for e in found.entries} == {("operator", "aten.cumsum.default")}


@pytest.mark.parametrize(("name", "attention"), [p for p in ARCHITECTURES if p.values[0] != "roberta"])
def test_map_is_complete(name: str, attention: str) -> None:
    """With the constants at the entries the same for every position the model is order-blind, for all weights."""
    found = blindness(name, attention)
    assert found.entries
    assert {e.kind for e in found.entries} == {"constant"}
    assert found.completion is not None
    assert found.completion.verdict == "proved", found.completion.reason
    assert found.entries_complete is True
    assert found.completion.scope.weights == "all"
    assert found.completion.proof is not None
    assert found.completion.proof.step_count > 20
    assert found.completion.deviation.float64 is not None
    assert found.completion.deviation.float64 < 1e-6


@pytest.mark.parametrize(("name", "attention"), ARCHITECTURES)
def test_only_causal_language_models_are_proved_causal(name: str, attention: str) -> None:
    context = examined(name, attention)
    options = ProofOptions(search_witness=False, every_length=False)
    (found, *_) = prove_law(context, laws.find_proved_law("causal"), options)
    assert (found.verdict == "proved") == (context.subject.model_kind == "causal_lm"), found.reason
    if found.verdict == "proved":
        assert (found.scope.weights, found.vacuous) == ("all", False)
        assert found.deviation.float64 is not None
        assert found.deviation.float64 < 1e-9
    else:
        assert found.entries


def test_one_of_several_results_has_the_name_of_its_operator() -> None:
    graph = torch.fx.Graph()
    both = graph.call_function(torch.ops.aten.topk.default, (graph.placeholder("x"), 2))
    assert operator_name(graph.call_function(operator.getitem, (both, 0))) == "aten.topk.default"


class MaskOfLayer(nn.Module):
    """A layer that makes its own mask."""

    def forward(self, x: Tensor) -> Tensor:
        mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril(1)
        return (x @ x.mT).masked_fill(~mask, -torch.inf).softmax(-1) @ x


def test_a_mask_that_each_layer_makes_is_one_entry() -> None:
    layers = nn.Sequential(*(MaskOfLayer() for _ in range(3)))
    found = prove(layers, "causal", inputs=torch.randn(2, 7, 8), expect="any")
    order = prove(layers, "permutation", inputs=torch.randn(2, 7, 8), expect="any")
    for entries in (found.entries, order.entries):
        assert [(each.module, each.node_count, each.layer_count) for each in entries] == [("*", 3, 3)]
    assert order.entries[0].origin_module == "*"
    assert entry_map_phrases.sites(order.entries[0]) == "constant in 3 layers"
    assert entry_map_phrases.repetitions(order.entries[0].model_copy(update={"node_count": 6})) == (
        "at 6 sites in 3 layers"
    )
