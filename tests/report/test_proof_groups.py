from __future__ import annotations

from orderproof.records.audit import ProofStep
from orderproof.report.proof_groups import group_by_module
from tests.report.examples import LAYER, layered_steps


def step(module: str, operator: str = "aten.add.Tensor", lemma: str = "pointwise_equivariant") -> ProofStep:
    return ProofStep(node="n", operator=operator, lemma=lemma, fact="moves", module=module)


def test_a_module_is_one_group_in_order_of_first_appearance():
    groups = group_by_module([step("a"), step("b"), step("a")])
    assert [(g.module, [line.number for line in g.steps]) for g in groups] == [("a", [1, 3]), ("b", [2])]


def test_layers_with_equal_proofs_are_shown_once():
    groups = group_by_module(layered_steps(126, "model.layers"))
    modules = {module for module, _, _ in LAYER}
    assert len(groups) == 1 + len(modules)
    assert {g.repetitions for g in groups[1:]} == {126}
    assert groups[1].module == "model.layers.*.attention.self.query"
    assert groups[1].layer_ranges == ("0-125",)


def test_every_line_is_accounted_for():
    steps = layered_steps(12)
    assert sum(len(g.steps) * g.repetitions for g in group_by_module(steps)) == len(steps)


def test_a_layer_that_differs_is_shown_separately():
    groups = group_by_module([step(f"layers.{i}.mlp", lemma="other" if i == 3 else "same") for i in range(6)])
    assert [(g.module, g.layer_ranges, g.repetitions) for g in groups] == [
        ("layers.*.mlp", ("0-2, 4-5",), 5),
        ("layers.3.mlp", (), 1),
    ]


def test_layers_inside_layers_fold_too():
    groups = group_by_module([step(f"stages.{i}.blocks.{j}.norm") for i in range(2) for j in range(3)])
    assert [(g.module, g.layer_ranges, g.repetitions) for g in groups] == [
        ("stages.*.blocks.*.norm", ("0-1", "0-2"), 6)
    ]


def test_a_step_outside_every_module_keeps_an_empty_path():
    assert [g.module for g in group_by_module([step("")])] == [""]


def test_an_empty_proof_has_no_groups():
    assert group_by_module([]) == ()
