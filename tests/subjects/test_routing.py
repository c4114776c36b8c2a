"""Layers that tokens are routed to: what is recorded in their place gives what they give."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from orderproof.auditing.examine import Examination
from orderproof.subjects.architectures import load_architecture
from orderproof.subjects.routing import _FORMS, IN_WORDS, _found, is_routed, token_by_token
from orderproof.subjects.subject import Subject

pytest.importorskip("transformers")
NAMES = ("dbrx", "jetmoe", "longcat_flash", "higgs_audio_v2")


@pytest.fixture(scope="module", params=NAMES)
def subject(request: pytest.FixtureRequest) -> Subject:
    return load_architecture(f"arch:{request.param}", tiny=True)


def inputs(subject: Subject, seed: int) -> tuple[Tensor, ...]:
    """Tokens, some of which stand for sound where a model knows such."""
    drawn = subject.sample(subject.length, seed).inputs
    model = subject.module.model
    if not hasattr(model.config, "audio_token_id"):
        return drawn
    for part in model.modules():
        if hasattr(getattr(part, "config", None), "audio_token_id"):
            part.config.audio_token_id = 9  # a row of the tiny table
    sound = torch.rand(drawn[0].shape, generator=torch.Generator().manual_seed(seed)) < 0.4
    assert 0 < int(sound.sum()) < sound.numel()
    return (torch.where(sound, 9, drawn[0]),)


def outputs(subject: Subject, given: tuple[Tensor, ...]) -> dict[str, Tensor]:
    with torch.no_grad():
        made: dict[str, Tensor] = subject.module(*(x.clone() for x in given))
    return made


def test_what_is_recorded_gives_what_the_loop_gives(subject: Subject) -> None:
    for seed in range(6):
        given = inputs(subject, seed)
        expected = outputs(subject, given)
        with token_by_token(subject.module):
            found = outputs(subject, given)
        for name, value in expected.items():
            assert torch.allclose(value, found[name], rtol=1e-4, atol=1e-5 * float(value.abs().max())), name


def test_the_loops_are_back_afterwards(subject: Subject) -> None:
    found = _found(subject.module)
    before = [getattr(kind, method) for kind, method, _ in found]
    with token_by_token(subject.module):
        assert [getattr(kind, method) for kind, method, _ in found] == [form for _, _, form in found]
    assert [getattr(kind, method) for kind, method, _ in found] == before


def test_the_subject_says_so(subject: Subject) -> None:
    assert is_routed(subject.module)
    assert IN_WORDS in subject.detail


def test_the_graph_is_held_against_the_loop(subject: Subject) -> None:
    exam = Examination(subject, subject.length)
    assert exam.infidelity is None


def test_a_wrong_form_is_another_branch(monkeypatch: pytest.MonkeyPatch) -> None:
    key = ("jetmoe", "JetMoeMoE", "forward")
    right = _FORMS[key]
    monkeypatch.setitem(_FORMS, key, lambda *given: right(*given) * 1.01)
    subject = load_architecture("arch:jetmoe", tiny=True)
    found = Examination(subject, subject.length).infidelity
    assert found is not None
    assert "captured a different branch" in found


def test_experts_that_do_nothing_give_what_they_are_given() -> None:
    subject = load_architecture("arch:longcat_flash", tiny=True)
    experts = next(part for part in subject.module.modules() if type(part).__name__ == "LongcatFlashExperts")
    assert experts.zero_expert_num > 0
    rows = torch.randn(6, experts.hidden_size)
    chosen = torch.tensor([[experts.num_routed_experts, 0], [0, 1], [1, experts.total_experts - 1]] * 2)
    weights = torch.rand(6, 2)
    with torch.no_grad():
        expected = experts(rows, chosen, weights)
        with token_by_token(subject.module):
            found = experts(rows, chosen, weights)
    assert torch.allclose(expected, found, rtol=1e-4, atol=1e-4)


def test_a_plain_model_has_no_such_layers() -> None:
    assert not is_routed(torch.nn.Linear(2, 2))
