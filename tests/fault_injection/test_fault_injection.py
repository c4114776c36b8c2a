"""Injected faults are refuted and located by module and line: one of each kind here, all with `make soak`."""

from __future__ import annotations

from itertools import cycle

import pytest

from orderproof.laws import find_proved_law
from orderproof.models import load
from tests.auditing.internals import AuditContext, prove_law
from tests.fault_injection.faults import KINDS, inject
from tests.fault_injection.runner import CAUSAL, ENCODERS, applies, try_fault, untouched
from tests.pairs import one_in

ALL = [(kind, name) for name in (*CAUSAL, *ENCODERS) for kind in KINDS if applies(kind, name)]
SOME = [(kind, name) for kind, name in zip(KINDS, cycle(("llama", "gpt2", "qwen3", "gpt_neox")), strict=False)]


def cases() -> list[object]:
    return [pytest.param(*c, id="-".join(c), marks=[] if c in SOME else pytest.mark.slow) for c in ALL]


@pytest.mark.parametrize(("kind", "architecture"), one_in(3, cases()))
def test_a_fault_is_refuted_and_its_module_and_line_named(kind: str, architecture: str) -> None:
    found = try_fault(kind, architecture)
    assert found is not None
    assert (found.verdict, found.located) == ("refuted", True), found.detail


@pytest.mark.parametrize("architecture", ["llama", pytest.param("bert", marks=pytest.mark.slow)])
def test_no_fault_is_found_where_there_is_none(architecture: str) -> None:
    verdicts = untouched(architecture)
    assert len(verdicts) > 3
    for law, verdict in verdicts.items():
        if (law, architecture) == ("packing", "bert"):  # position ids alone do not keep an encoder's documents apart
            assert verdict == "refuted (packed), proved (blocked)"
        else:
            assert {each.split()[0] for each in verdict.split(", ")} == {"proved"}, (law, verdict)


def test_a_mask_dropped_on_one_backend_is_found_on_that_one_only() -> None:
    """The fault acts only without a mask, as SDPA is called; eager attention gets a mask."""
    for attention, verdict in (("sdpa", "refuted"), ("eager", "proved")):
        subject = load("arch:llama", tiny=True, attention=attention)

        class OnOneBackend(KINDS["mask_dropped"]):  # type: ignore[misc, name-defined]
            def mask(self, given: object, x: object) -> object:
                return super().mask(given, x) if given is None else given

        inject(subject.module, OnOneBackend)
        (found,) = prove_law(AuditContext(subject, subject.default_length), find_proved_law("causal"))
        assert found.verdict == verdict, found.reason


def test_there_are_enough_of_them() -> None:
    assert len(ALL) >= 200
    assert len(KINDS) >= 12
    assert len({name for _, name in ALL}) >= 12
