"""Certificates about permuted tokens: those of theorems are accepted, those of a prover with false rules refused."""

from __future__ import annotations

import pytest

from orderproof.theorems.facts import moved_fact
from orderproof.theorems.facts.moved_fact import Axis, Dim
from orderproof.theorems.walks.operator_rules import TABLE, load_rooms
from orderproof_recheck.errors import CertificateError
from orderproof_recheck.theorem import check_theorem
from tests.pairs import one_in
from tests.recheck.theorems.permutations.examples import MAPS, PROGRAMS, example, of_program
from tests.recheck.theorems.permutations.runs import FALSE, contradiction

HOLDS = [name for name, case in PROGRAMS.items() if case.equivariant]
FAILS = [name for name, case in PROGRAMS.items() if not case.equivariant]
REFUSED_BY_OTHER_RULES = {
    "sum from the start", "sorted tokens", "first token", "window of tokens", "a token in front kept",
    "a token in front", "halves exchanged", "repeated and cut", "widths taken for tokens", "mixed by a map over tokens",
    "difference of neighbours", "place of the element of a rank", "the last of the largest tokens",
    "the last of the sorted tokens", "place of the largest token by pooling", "pooled tokens",
    "windows of tokens pooled", "elements from the last token on",
}  # fmt: skip


@pytest.mark.parametrize("name", HOLDS)
def test_certificates_of_theorems_are_accepted(name: str) -> None:
    made = example(name)
    result = check_theorem(made)
    assert result.theorem.startswith("position_ids: for every length from ")
    assert "every permutation of the tokens, all position ids" in result.theorem
    assert contradiction(made) == ""


@pytest.mark.parametrize("name", MAPS)
def test_certificates_of_entry_maps_are_accepted(name: str) -> None:
    made = example(name)
    result = check_theorem(made)
    assert bool(made["claim"]["entries"]) == MAPS[name].enters
    assert ("if order is taken out at" in result.theorem) == MAPS[name].enters
    assert made["claim"]["every_depth"]
    assert contradiction(made) == ""


@pytest.mark.parametrize("name", one_in(4, FAILS))
def test_certificates_of_a_prover_with_false_rules_are_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of the prover alone, which takes the index of a token for meaningless, cannot make a false law pass."""

    def moves_on(dim: Dim, what: str) -> Dim:
        del what
        return dim

    def together(first: Axis, second: Axis) -> Axis:
        return second if second.motion is moved_fact.Motion.MOVED else first

    load_rooms()
    for module in {entry.moved_rule.__module__ for entry in TABLE.values() if entry.moved_rule is not None}:
        monkeypatch.setattr(f"{module}.still", moves_on, raising=False)
    monkeypatch.setattr(moved_fact, "_together", together)
    made = of_program(name)
    assert (made is None) == (name in REFUSED_BY_OTHER_RULES)
    if made is not None:
        assert contradiction(made) == FALSE
        with pytest.raises(CertificateError, match=r"step \d+ \(|the output does not move|a branch depends"):
            check_theorem(made, fill=True)
