"""A budget: what finds most per second comes first, what does not fit is named, and another audit goes on."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from orderproof import audit
from orderproof.auditing import law_order
from orderproof.auditing.api import audit_context
from orderproof.auditing.decide.sandbox import MeasurementRun
from orderproof.auditing.run import run_audit
from orderproof.auditing.work import Work
from orderproof.blocks.transformer_adapter import tiny_decoder
from orderproof.laws import ProvedLaw, find_law, measured_laws, proved_laws
from orderproof.laws.measured import MeasuredLaw
from orderproof.models import from_adapter, from_module
from orderproof.records.audit import Report
from orderproof.time_limit import TimeAllowed, duration_text

LAWS: list[law_order.AnyLaw] = [*proved_laws(), *measured_laws()]
SPENT = TimeAllowed(60.0, 0.001, began=0.0)


class Mean(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + x.mean(1, keepdim=True)


def mean() -> tuple[nn.Module, Tensor]:
    return Mean(), torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0))


def order(*, budget: bool, kind: str = "causal_lm", last: tuple[str, ...] = ()) -> list[str]:
    blocks = law_order.blocks(LAWS, budget=budget, expected={}, kind=kind, last=last)
    return [law.name for block in blocks for law in block]


def test_every_entry_is_a_law() -> None:
    assert set(law_order.FOUND_AND_SECONDS) <= {law.name for law in LAWS}


def test_without_a_budget_proofs_come_first_in_their_own_order() -> None:
    assert order(budget=False) == [law.name for law in LAWS]


def test_under_a_budget_what_finds_most_per_second_comes_first() -> None:
    found = order(budget=True)
    assert found[0] == "batch_composition"
    assert found.index("cached_decoding") < found.index("padding") < found.index("attention_backend")
    assert next(name for name in found if isinstance(find_law(name), ProvedLaw)) == "padding"
    expects_nothing = [find_law(name).expected("causal_lm") == "any" for name in found]
    assert expects_nothing == sorted(expects_nothing)
    assert sorted(found) == sorted(law.name for law in LAWS)


def test_a_block_is_proved_or_measured() -> None:
    for block in law_order.blocks(LAWS, budget=True, expected={}, kind="causal_lm"):
        assert len({isinstance(law, MeasuredLaw) for law in block}) == 1


def test_a_law_that_had_its_time_comes_last_and_a_stated_one_before_properties() -> None:
    assert order(budget=True, last=("batch_composition",))[-1] == "batch_composition"
    blocks = law_order.blocks(LAWS, budget=True, expected={"packing": "holds"}, kind="causal_lm")
    found = [law.name for block in blocks for law in block]
    assert found.index("packing") < found.index("position_shift")


def test_what_does_not_fit_is_not_checked() -> None:
    module, x = mean()
    report = audit(module, inputs=x, laws=["permutation", "batch", "stateless"], budget=1e-6)
    assert set(report.left) == {"permutation", "batch", "stateless"}
    assert list(report.not_checked) == ["undecided: not reached within the budget of 1e-06 s"]
    assert report.exit_code == 3


def test_a_budget_that_suffices_changes_nothing() -> None:
    module, x = mean()
    plain, within = (audit(module, inputs=x, budget=budget) for budget in (None, 600.0))
    assert within.left == plain.left == ()
    assert [(f.law, f.call_mode, f.verdict) for f in within.findings] == [
        (f.law, f.call_mode, f.verdict) for f in plain.findings
    ]


def test_an_audit_goes_on_with_the_laws_that_are_left() -> None:
    module, x = mean()
    context = audit_context(from_module(module, x))
    names = ["permutation", "batch", "stateless"]
    *_, whole = run_audit(context, chosen=names)
    cut = whole.model_copy(
        update={
            "findings": tuple(
                f.model_copy(update={"verdict": "undecided"}) for f in whole.findings if f.law != "batch"
            ),
            "left": ("stateless",),
            "notes": ("the graph was not recorded within the budget of 1 s",),
        }
    )
    steps: list[str] = []

    def show(text: str, done: int, total: int) -> None:
        assert 0 <= done <= total
        steps.append(text)

    *_, resumed = run_audit(context, chosen=names, before=cut, progress=show)
    assert [text for text in steps if "comparisons" not in text] == ["OP406 stateless"]
    assert [(f.law, f.verdict) for f in resumed.findings] == [("permutation", "undecided"), ("stateless", "held")]
    assert (resumed.left, resumed.notes) == ((), ())


def test_laws_that_are_not_reached_are_not_measured() -> None:
    run = MeasurementRun(from_adapter(tiny_decoder()), measured_laws()[:2], allowed=SPENT)
    found = list(run.findings())
    assert {f.reason for f in found} == {"not reached within the budget of 0.001 s"}
    assert run.cut == {law.name for law in measured_laws()[:2]}


def test_a_law_gets_what_is_left_of_the_budget() -> None:
    assert TimeAllowed(60.0).for_next() == 60.0
    assert TimeAllowed().for_next() is None
    left = TimeAllowed(60.0, 5.0).for_next()
    assert left is not None
    assert 0 < left <= 5
    assert SPENT.is_spent
    assert SPENT.not_done == "not done within the budget of 0.001 s"
    assert TimeAllowed(60.0, 1000.0).not_done == "not done after 60 s"


def test_durations_are_as_a_person_states_them() -> None:
    assert [duration_text(each) for each in (0.5, 90, 600, 7200)] == ["0.5 s", "90 s", "10 min", "2 h"]


def test_work_is_shown_with_the_comparisons_that_are_done() -> None:
    shown: list[tuple[str, int, int]] = []
    work = Work(lambda *each: shown.append(each), planned=4.0)
    work.begin("first", 3.0)
    work.compared(1, 2)
    work.end(3.0)
    work.begin("second", 1.0)
    assert shown == [("first", 0, 40), ("first, 1 of 2 comparisons", 15, 40), ("second", 30, 40)]


@pytest.mark.parametrize("reached", [False, True])
def test_a_plan_completes_a_report(reached: bool) -> None:
    module, x = mean()
    planned = audit(module, inputs=x, laws=["permutation", "batch"], budget=1e-6)
    found = planned.model_copy(update={"findings": planned.findings[:1] if reached else (), "left": ()})
    completed: Report = found.with_undecided(planned, "interrupted")
    assert [f.law for f in completed.findings] == ["permutation", "batch"]
    assert completed.left == (("batch",) if reached else ("permutation", "batch"))
