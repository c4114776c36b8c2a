"""The rechecker accepts every proof of the prover."""

from __future__ import annotations

import json

import pytest

from orderproof.laws import ProvedLaw, proved_laws
from orderproof.recheck import recheck
from orderproof.recheck.relations import RELATIONS
from orderproof.recheck.theorems.statements import STATEMENTS
from orderproof.theorems.statement import BLOCKS, MASK, POSITIONS
from tests.recheck.certificates import PROVED, example

QUICK = [
    *PROVED, "causal:llama:sdpa", "causal:gpt2:eager", "permutation:bert:eager", "permutation:gpt2:sdpa",
    "prompt_permutation:gpt2?n_layer=1:eager",
]  # fmt: skip

SLOW = [
    *(
        f"causal:{a}:{k}"
        for a in ("llama", "gpt2", "mistral", "qwen3", "gemma3", "gpt_neox")
        for k in ("sdpa", "eager")
    ),
    *(
        f"permutation:{a}:{k}"
        for a in ("bert", "electra", "distilbert", "gpt2", "llama", "t5", "vit")
        for k in ("sdpa", "eager")
    ),
    "prompt_permutation:gpt2?n_layer=1:sdpa",
]


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(n, marks=pytest.mark.slow) for n in SLOW if n not in QUICK)])
def test_a_proof_is_accepted(name: str) -> None:
    _, made = example(name)
    checked = recheck(json.loads(json.dumps(made)))
    assert checked.law == made["law"]
    assert checked.output == made["output"]["name"]
    assert checked.steps == len(made["steps"])
    assert checked.weights == "all"
    assert list(checked.assumptions) == made["assumptions"]


def test_every_proved_law_has_its_relation_in_the_rechecker() -> None:
    laws = {law.code: law.name for law in proved_laws()}
    assert {code: relation.law for code, relation in RELATIONS.items()} == laws


SHARED: dict[str, list[tuple[str, ...]]] = {"plain": [(), (MASK,)], "padded": [(MASK,)]}  # inputs, by call mode


@pytest.mark.parametrize("law", proved_laws(), ids=lambda law: law.name)
def test_a_law_with_a_statement_for_every_length_has_it_in_the_rechecker(law: ProvedLaw) -> None:
    ways = {shared for mode in law.call_modes for shared in SHARED.get(mode, [(POSITIONS,), (POSITIONS, BLOCKS)])}
    stated = {(law.code, law.name, shared) for shared in ways if law.open_statement(frozenset(shared)) is not None}
    assert stated == {key for key in STATEMENTS if key[0] == law.code}
