"""A certificate states what its steps assume of the program: it is refused without each of these sentences."""

from __future__ import annotations

import pytest

from orderproof.auditing.decide.theorems import EVERY_DEPTH_ASSUMPTION
from orderproof.logic.solver import Solver
from orderproof_recheck.assumptions import DEPTH_ASSUMPTION, LOOP_ASSUMPTION
from orderproof_recheck.errors import CertificateError
from orderproof_recheck.theorem import check_theorem, digest_of
from tests.pairs import one_in
from tests.recheck.theorems.examples import Certificate, example, recorded_module, unchecked
from tests.recheck.theorems.graph_mutations import recordings
from tests.theorems.loops import IN_CHUNKS, LOOPS
from tests.theorems.stacks import STACKS

OF_LOOPS = [(case.name, law) for case in (*LOOPS, IN_CHUNKS[0]) for law in sorted(case.laws)]


@pytest.mark.parametrize(("name", "law"), one_in(3, OF_LOOPS))
def test_a_theorem_of_a_loop_states_that_its_iterations_are_alike(name: str, law: str) -> None:
    made = example(name, law)
    assert made is not None
    assert any(step["operator"].startswith("loop.") for one in recordings(made) for step in one["steps"])
    _refused_without(made, LOOP_ASSUMPTION)


def test_the_places_of_the_loops_may_be_others() -> None:
    made = example(LOOPS[0].name, "causal")
    assert made is not None
    made["assumptions"] = [f"{a}, x.py:3" if a.startswith(LOOP_ASSUMPTION) else a for a in made["assumptions"]]
    made["digest"] = digest_of(made)
    check_theorem(made)


@pytest.mark.parametrize("name", one_in(3, [name for name, (_, every_depth) in STACKS.items() if every_depth]))
def test_a_theorem_of_every_depth_states_what_it_assumes_of_other_layers(name: str) -> None:
    assert DEPTH_ASSUMPTION == EVERY_DEPTH_ASSUMPTION
    made = unchecked(*recorded_module(STACKS[name][0]()), "causal", Solver())
    assert made is not None
    check_theorem(made, fill=True)
    _refused_without(made, DEPTH_ASSUMPTION)


def _refused_without(made: Certificate, assumption: str) -> None:
    check_theorem(made)
    stated = made["assumptions"]
    made["assumptions"] = [text for text in stated if not text.startswith(assumption)]
    assert len(made["assumptions"]) == len(stated) - 1
    made["digest"] = digest_of(made)
    with pytest.raises(CertificateError, match="it needs the assumption"):
        check_theorem(made)
