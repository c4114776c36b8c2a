"""The counts of the last atlas that `orderproof list rules` shows."""

from __future__ import annotations

from orderproof.prover.rule import rules
from orderproof.prover.usage import usage


def test_counts_are_of_architectures_and_name_real_operators() -> None:
    used = usage()
    assert used.architectures > 50
    assert all(0 < count <= used.architectures for count in used.operators.values())
    assert used.of("linear") == used.operators["aten.linear.default"]
    assert used.of("softmax.int") == used.operators["aten.softmax.int"]
    assert used.of("no_such_operator") == 0


def test_a_rule_by_tag_is_credited_with_what_it_covers() -> None:
    (pointwise,) = [r for r in rules() if "<pointwise>" in r.operators]
    by_tag = usage().by_tag(pointwise.lemma)
    assert by_tag["add"] == usage().operators["aten.add.Tensor"]
    assert usage().by_tag("attention_equivariant") == {}


def test_what_has_no_rule_is_told_apart() -> None:
    without = usage().without_rule()
    assert "aten.arange.start_step" in without
    assert "aten.linear.default" not in without
