"""Certificates of example models, by name."""

from __future__ import annotations

import copy
from typing import Any

import torch

from orderproof.auditing.decide.certificates import certificate_for
from orderproof.auditing.record.context import AuditContext
from orderproof.diagnosis.certificate import digest, graph_fingerprint
from orderproof.laws import find_proved_law, proved_laws
from orderproof.models import from_module, load
from tests.laws.law_fixture import law_fixtures

Certificate = dict[str, Any]

PROVED = tuple(  # every proved law, and each further relation of a law that has several
    f"{law.name}#{part}" if part else law.name for law in proved_laws() for part in range(len(law.subrelations(2)))
)


def of_module(name: str) -> tuple[AuditContext, Certificate]:
    """The honest example of a law; "packing#1" is the second of its parts."""
    torch.manual_seed(0)
    law_name, _, part = name.partition("#")
    law = find_proved_law(law_name)
    subject = from_module(law_fixtures()[law_name].conforming(), (torch.randn(3 if law_name == "batch" else 2, 5, 8),))
    context = AuditContext(subject, subject.default_length).in_call_mode(law.call_modes[0])
    assert isinstance(context, AuditContext), context
    made = certificate_for(context, law.subrelations(2)[int(part or 0)], next(iter(context.output_dims)))
    assert made is not None
    return context, made


def of_architecture(name: str, attention: str, law: str, **options: Any) -> tuple[AuditContext, Certificate]:
    subject = load(f"arch:{name}", tiny=True, attention=attention)
    context = AuditContext(subject, subject.default_length).in_call_mode(find_proved_law(law).call_modes[0])
    assert isinstance(context, AuditContext), context
    made = certificate_for(context, find_proved_law(law).subrelations(2)[0], "last_hidden_state", **options)
    assert made is not None
    return context, made


_made: dict[str, tuple[AuditContext, Certificate]] = {}


def example(name: str) -> tuple[AuditContext, Certificate]:
    """An example by name, made once: `causal` is an honest module, `causal:gpt2:sdpa` an architecture."""
    if name not in _made:
        law, _, rest = name.partition(":")
        if not rest:
            _made[name] = of_module(law)
        else:
            architecture, attention = rest.split(":")
            options: dict[str, Any] = {"completed": True} if law == "permutation" else {}
            options |= {"uniform": ("wpe",)} if law == "prompt_permutation" else {}
            _made[name] = of_architecture(architecture, attention, law, **options)
    context, made = _made[name]
    return context, copy.deepcopy(made)


def sealed(made: Certificate) -> Certificate:
    """The certificate with its fingerprint and digest recomputed."""
    made["graph"] = graph_fingerprint(made["steps"])
    made["digest"] = digest(made)
    return made


def by_node(made: Certificate) -> dict[str, dict[str, Any]]:
    return {s["node"]: s for s in made["steps"]}
