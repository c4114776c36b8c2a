"""The counts of the last atlas that `orderproof list rules` shows."""

from __future__ import annotations

from orderproof.atlas.operator_usage import operator_usage
from orderproof.prover.rule import rules


def test_counts_are_of_architectures_and_name_real_operators() -> None:
    used = operator_usage()
    assert used.architectures > 50
    assert all(0 < count <= used.architectures for count in used.operators.values())
    assert used.of("linear") == used.operators["aten.linear.default"]
    assert used.of("softmax.int") == used.operators["aten.softmax.int"]
    assert used.of("no_such_operator") == 0


def test_rule_by_tag_counts_the_operators_that_it_covers() -> None:
    (pointwise,) = [r for r in rules() if "<pointwise>" in r.operators]
    by_tag = operator_usage().by_tag(pointwise.lemma)
    assert by_tag["add"] == operator_usage().operators["aten.add.Tensor"]
    assert operator_usage().by_tag("attention_equivariant") == {}


def test_operators_without_a_rule_are_listed() -> None:
    without = operator_usage().without_rule()
    assert "aten.arange.start_step" in without
    assert "aten.linear.default" not in without
