"""Caches of plain modules in all forms: each fault fails its law, and each module without a fault passes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import nn

from orderproof import audit
from orderproof.errors import UsageError
from orderproof.models import from_module
from orderproof.models.subject import Subject
from tests.models.caches import cached_modules as own
from tests.models.caches import library_modules as library
from tests.pairs import one_in

IDS = torch.randint(60, (2, 9), generator=torch.Generator().manual_seed(0))
RESTART, DECODING, CHUNKS, PADS = "positions restart", "cached_decoding", "chunked_prefill", "left_padded_decoding"


def companions() -> dict[str, Any]:
    return {"ids": IDS, "types": IDS % 2, "position_ids": torch.arange(9).expand(2, 9), "cache": {}}


def tuples_of_four_tokens() -> tuple[Any, ...]:
    past = [(torch.randn(2, 2, 4, 8), torch.randn(2, 2, 4, 8)) for _ in range(2)]
    return IDS, tuple(past)


def objects(kind: type[own.KVCache]) -> tuple[Any, ...]:
    return IDS, [kind(), kind()]


def static() -> tuple[Any, ...]:
    return IDS, torch.zeros(2, 2, 2, 2, 64, 8), 0


def gru(fault: str = "") -> nn.Module:
    return library.LibraryRecurrence(fault, nn.GRU)


# name -> module class, inputs, faults with the law that each must fail
FORMS: dict[str, tuple[Any, Any, dict[str, str]]] = {
    "tuples of each layer": (
        own.LayerPast, IDS, {RESTART: CHUNKS, "rotated twice": DECODING, "wrong order": CHUNKS},
    ),
    "an example with four tokens": (own.LayerPast, tuples_of_four_tokens(), {RESTART: CHUNKS}),
    "dictionaries asked for by a flag": (own.ListInDict, IDS, {RESTART: CHUNKS, "wrong order": CHUNKS}),
    "a flat output": (own.FlatTuple, IDS, {RESTART: CHUNKS}),
    "two arguments": (own.TwoArguments, IDS, {RESTART: CHUNKS}),
    "a mask of all tokens": (own.Masked, IDS, {"mask not extended": PADS}),
    "a required mask": (library.RequiredMask, (IDS, torch.ones(2, 9).long()), {"all real on a cache": PADS}),
    "objects by their annotation": (own.CacheObjects, IDS, {RESTART: CHUNKS}),
    "objects in the example": (own.CacheObjects, objects(own.KVCache), {RESTART: CHUNKS}),
    "a class in the example": (own.OneObject, (IDS, own.KVCache), {RESTART: CHUNKS}),
    "static with a start position": (own.StaticCache, static(), {RESTART: CHUNKS, "last token left out": DECODING}),
    "static in a dictionary": (own.StaticDict, IDS, {"counts calls": CHUNKS}),
    "states of two kinds": (
        own.Recurrence, IDS, {"state restarts": CHUNKS, "convolution restarts": CHUNKS},
    ),
    "a state of torch": (library.LibraryRecurrence, IDS, {"rows flipped": DECODING, "zero state": CHUNKS}),
    "a state of one tensor": (gru, IDS, {"rows flipped": DECODING, "zero state": CHUNKS}),
    "a dictionary changed in place": (library.Companions, companions(), {"types restart": DECODING}),
}  # fmt: skip
LIBRARY_FORMS: dict[str, tuple[Any, dict[str, str]]] = {
    "returned": (library.OwnDynamicCache, {RESTART: CHUNKS, "mask from length": CHUNKS}),
    "changed in place": (library.GivenDynamicCache, {RESTART: CHUNKS}),
}
OF_CACHES = (DECODING, CHUNKS, "cache_editing", "use_cache", PADS, "right_padded_decoding")
FAULTS = [(form, fault) for form, (_, _, faults) in FORMS.items() for fault in faults]


def decoder(module: nn.Module, inputs: Any) -> Subject:
    return from_module(module, inputs, assume={"model_kind": "causal_lm"})


def failed(subject: Subject, laws: Sequence[str] | None = None) -> tuple[int, set[str]]:
    report = audit(subject, laws=laws)
    return report.exit_code, {f.law for f in report.findings if f.outcome == "fail"}


@pytest.mark.parametrize("form", one_in(3, FORMS))
def test_a_module_without_a_fault_passes(form: str) -> None:
    make, inputs, _ = FORMS[form]
    report = audit(decoder(make(), inputs))
    assert [f.law for f in report.findings if f.outcome == "fail"] == []
    assert report.exit_code == 0
    measured = {f.law: f.verdict for f in report.findings}
    assert measured[DECODING] == measured[CHUNKS] == measured["use_cache"] == "held"


@pytest.mark.parametrize(("form", "fault"), one_in(3, FAULTS))
def test_a_fault_fails_its_law(form: str, fault: str) -> None:
    make, inputs, faults = FORMS[form]
    code, laws = failed(decoder(make(fault), inputs), OF_CACHES)
    assert faults[fault] in laws
    assert code == 1


def test_a_fault_of_a_cache_fails_no_law_of_other_calls() -> None:
    make, inputs, faults = FORMS["tuples of each layer"]
    code, laws = failed(decoder(make(next(iter(faults))), inputs))
    assert laws <= set(OF_CACHES)
    assert code == 1


@pytest.mark.parametrize("form", LIBRARY_FORMS)
def test_a_cache_of_transformers(form: str) -> None:
    pytest.importorskip("transformers")
    make, faults = LIBRARY_FORMS[form]
    assert failed(decoder(make(), IDS)) == (0, set())
    for fault, law in faults.items():
        code, laws = failed(decoder(make(fault), IDS))
        assert code == 1
        assert law in laws


def test_keys_that_an_object_rotates_twice() -> None:
    code, laws = failed(decoder(own.CacheObjects(), objects(own.RotatesTwice)))
    assert code == 1
    assert {DECODING, CHUNKS} <= laws


def test_a_cache_that_calls_share() -> None:
    assert failed(decoder(own.SharedCache(), IDS)) == (1, {"stateless"})


def test_the_cache_is_no_output() -> None:
    subject = from_module(own.LayerPast(), IDS)
    assert list(subject.output_axes or {}) == ["output"]
    assert subject.input_roles[-1].name == "layer_past"
    assert subject.input_roles[-1].role == "cache; not given by default, and no output"
    assert subject.input_roles[-1].known_by == "calls: further tokens continue it"


def test_tokens_along_the_first_axis() -> None:
    subject = from_module(
        library.SequenceFirst(), torch.randn(9, 2, 8), token_axis=0, assume={"model_kind": "causal_lm"}
    )
    assert failed(subject) == (0, set())


def test_edits_of_a_cache_follow_from_its_axes() -> None:
    subject = decoder(own.LayerPast(), IDS)
    assert subject.build_adapter is not None
    adapter = subject.build_adapter()
    cache = adapter.call(IDS, keep=True).cache
    cropped = adapter.crop_cache(cache, 2)
    assert cropped.values[0][1][0].shape == (2, 2, 7, 8)
    assert torch.equal(cropped.values[0][1][0], cache.values[0][1][0][:, :, :7])
    swapped = adapter.reorder_cache(cache, torch.tensor([1, 0]))
    assert torch.equal(swapped.values[0][0][1], cache.values[0][0][1].flip(0))
    assert adapter.repeat_cache(cache, 3).values[0][0][0].shape[0] == 6


def test_a_state_cannot_be_cropped() -> None:
    report = audit(decoder(own.Recurrence(), IDS), laws=["cache_editing"])
    assert report.findings[0].verdict == "held"
    comparisons = report.findings[0].measurement.comparisons  # type: ignore[union-attr]
    assert "its cache holds a state, which cannot be cropped" in {c.reason for c in comparisons}


def test_an_example_that_the_module_refuses_is_one_note() -> None:
    subject = from_module(own.LayerPast(), (IDS, ((torch.zeros(3),),)))
    assert [note for note in subject.notes if "is left out" in note] == [
        (
            "argument 'layer_past' is left out: no cache, since a call with the example of one failed "
            "(tuple index out of range)"
        )
    ]


class Style(nn.Module):
    """A pooled part of the output is accepted by an argument, and is no cache."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(60, 8)

    def forward(self, ids: torch.Tensor, style: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.words(ids) + (0.0 if style is None else style[:, None])
        return x, x.mean(1)


class Residual(nn.Module):
    """A residual stream that is passed on to the next layer is no cache."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor, residual: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        total = x if residual is None else x + residual
        return self.mix(total), total


@pytest.mark.parametrize(("module", "inputs"), [(Style(), IDS), (Residual(), torch.randn(2, 7, 8))])
def test_other_arguments_are_no_caches(module: nn.Module, inputs: torch.Tensor) -> None:
    subject = from_module(module, inputs)
    assert len(subject.output_axes or {}) == 2
    assert [row.name for row in subject.input_roles if "cache" in row.role] == []


class Unnamed(own.LayerPast):
    """A name that says nothing, and a fault that hides the cache: it is ignored."""

    def forward(self, ids: torch.Tensor, earlier: Any = None) -> Any:
        return super().forward(ids)


def test_an_argument_is_stated_to_take_a_cache() -> None:
    assert len(from_module(Unnamed(), IDS).output_axes or {}) == 5
    subject = from_module(Unnamed(), IDS, roles={"earlier": "cache"}, assume={"model_kind": "causal_lm"})
    assert subject.input_roles[-1].known_by == "stated"
    code, laws = failed(subject)
    assert (code, DECODING in laws) == (1, True)


def test_an_argument_is_stated_to_take_no_cache() -> None:
    assert len(from_module(own.LayerPast(), IDS, roles={"layer_past": "held"}).output_axes or {}) == 5


def test_a_stated_cache_that_calls_do_not_take() -> None:
    with pytest.raises(UsageError, match="expected argument 'attention_mask' to take a cache, as stated"):
        from_module(own.Masked(), IDS, roles={"attention_mask": "cache", "past": "held"})
