"""Mixture-of-experts layers: the traced form equals the loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from orderproof import audit
from orderproof.auditing.record.context import AuditContext
from orderproof.models.hf.architectures import load_architecture
from orderproof.models.hf.moe_rewrites import (
    _REWRITES,
    REWRITE_NOTE,
    _matching_rewrites,
    needs_moe_rewrite,
    rewrite_moe_layers,
)
from orderproof.models.subject import Subject

pytest.importorskip("transformers")
NAMES = ("dbrx", "jetmoe", "higgs_audio_v2")


@pytest.fixture(scope="module", params=NAMES)
def subject(request: pytest.FixtureRequest) -> Subject:
    return load_architecture(f"arch:{request.param}", tiny=True)


def inputs(subject: Subject, seed: int) -> tuple[Tensor, ...]:
    """Tokens; some are audio tokens if the model has them."""
    tokens = subject.sample(subject.default_length, seed).inputs
    model = subject.module.model
    if not hasattr(model.config, "audio_token_id"):
        return tokens
    for part in model.modules():
        if hasattr(getattr(part, "config", None), "audio_token_id"):
            part.config.audio_token_id = 9  # a row of the tiny table
    is_audio = torch.rand(tokens[0].shape, generator=torch.Generator().manual_seed(seed)) < 0.4
    assert 0 < int(is_audio.sum()) < is_audio.numel()
    return (torch.where(is_audio, 9, tokens[0]),)


def outputs(subject: Subject, tokens: tuple[Tensor, ...]) -> dict[str, Tensor]:
    with torch.no_grad():
        result: dict[str, Tensor] = subject.module(*(x.clone() for x in tokens))
    return result


def test_the_traced_form_equals_the_loop(subject: Subject) -> None:
    for seed in range(6):
        tokens = inputs(subject, seed)
        expected = outputs(subject, tokens)
        with rewrite_moe_layers(subject.module):
            actual = outputs(subject, tokens)
        for name, value in expected.items():
            assert torch.allclose(value, actual[name], rtol=1e-4, atol=1e-5 * float(value.abs().max())), name


def test_the_original_methods_are_restored(subject: Subject) -> None:
    rewrites = _matching_rewrites(subject.module)
    before = [getattr(kind, method) for kind, method, _ in rewrites]
    with rewrite_moe_layers(subject.module):
        assert [getattr(kind, method) for kind, method, _ in rewrites] == [form for _, _, form in rewrites]
    assert [getattr(kind, method) for kind, method, _ in rewrites] == before


def test_the_load_summary_names_the_rewrite(subject: Subject) -> None:
    assert needs_moe_rewrite(subject.module)
    assert REWRITE_NOTE in subject.load_summary


def test_the_graph_is_compared_with_the_loop(subject: Subject) -> None:
    context = AuditContext(subject, subject.default_length)
    assert context.graph_mismatch is None


def test_a_wrong_rewrite_is_reported_as_another_branch(monkeypatch: pytest.MonkeyPatch) -> None:
    key = ("jetmoe", "JetMoeMoE", "forward")
    right = _REWRITES[key]
    monkeypatch.setitem(_REWRITES, key, lambda *inputs: right(*inputs) * 1.01)
    subject = load_architecture("arch:jetmoe", tiny=True)
    mismatch = AuditContext(subject, subject.default_length).graph_mismatch
    assert mismatch is not None
    assert "captured a different branch" in mismatch


def test_a_method_that_other_code_replaced_is_not_rewritten(monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers.models.jetmoe import modeling_jetmoe

    subject = load_architecture("arch:jetmoe", tiny=True)
    original = modeling_jetmoe.JetMoeMoE.forward
    monkeypatch.setattr(modeling_jetmoe.JetMoeMoE, "forward", lambda layer, x: 2 * original(layer, x))
    rewritten = [(kind.__name__, method) for kind, method, _ in _matching_rewrites(subject.module)]
    assert ("JetMoeMoE", "forward") not in rewritten
    assert ("JetMoeMoA", "map") in rewritten


def test_a_dense_model_needs_no_rewrite() -> None:
    assert not needs_moe_rewrite(torch.nn.Linear(2, 2))


def _changed_forward(router: Any) -> None:
    original = router.forward
    router.forward = lambda tokens: original(tokens + tokens.mean(0) if len(tokens) > 700 else tokens)


def _changed_class(router: Any) -> None:
    kind = type(router)

    def forward(self: Any, tokens: Tensor) -> Any:
        return kind.forward(self, tokens)

    router.__class__ = type("Capacity", (kind,), {"forward": forward})


def _hook(router: Any) -> None:
    router.register_forward_hook(lambda _module, _inputs, found: found)


def test_layers_of_a_given_model_are_not_replaced() -> None:
    model = load_architecture("arch:jetmoe", tiny=True).module.model
    assert needs_moe_rewrite(model)
    report = audit(model, laws=["causal", "batch"])
    assert {finding.verdict for finding in report.findings} == {"undecided"}
    assert all("depends on data" in finding.reason for finding in report.findings)
    assert REWRITE_NOTE not in report.subject.detail


@pytest.mark.parametrize("change", [_changed_forward, _changed_class, _hook])
def test_a_layer_whose_parts_were_changed_is_not_replaced(change: Callable[[Any], None]) -> None:
    model = load_architecture("arch:jetmoe", tiny=True).module.model
    before = _matching_rewrites(model)
    change(next(part for part in model.modules() if type(part).__name__ == "JetMoeTopKGating"))
    assert len(_matching_rewrites(model)) < len(before)


def test_experts_that_are_given_back_their_rows_need_no_rewrite() -> None:
    subject = load_architecture("arch:longcat_flash", tiny=True)
    assert not needs_moe_rewrite(subject.module)
    assert AuditContext(subject, subject.default_length).export_failure is None


@pytest.mark.slow
def test_a_model_with_grouped_experts_that_is_given_is_recorded() -> None:
    from transformers import MixtralConfig, MixtralModel

    config = MixtralConfig(
        vocab_size=64, hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2, num_local_experts=4,
    )  # fmt: skip
    model = MixtralModel(config)
    assert config._experts_implementation == "grouped_mm"
    (finding,) = audit(model, laws=["causal"], kind="decoder").findings[:1]
    assert finding.theorem is not None
    assert finding.theorem.proved
    assert config._experts_implementation == "grouped_mm"
