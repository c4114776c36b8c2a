"""Comparisons whose outputs must differ: rounding, a small real difference, and an inconclusive one."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from orderproof import audit
from orderproof.auditing.decide.measurement import measure_law
from orderproof.blocks.transformer_adapter import tiny_decoder
from orderproof.laws import find_law
from orderproof.laws.measured import CachedCalls, Comparison, MeasuredLaw, NotedOutputs, OutputPair
from orderproof.models import from_module
from orderproof.records.audit import Finding

ONES = torch.ones(3)


@dataclasses.dataclass(frozen=True)
class Stub(MeasuredLaw):
    """A law whose trials are given: by how much the sides differ in float32, and in float64."""

    gaps: tuple[tuple[float, float | None], ...] = ()
    moved: float = 1.0
    agreeing: tuple[float, ...] = ()

    def comparisons(self, bench: CachedCalls) -> Iterator[Comparison]:
        for number, (single, double) in enumerate(self.gaps):
            yield Comparison(f"must {number}", lambda b, s=single, d=double: _sides(b, s, d), expects_difference=True)
        for number, gap in enumerate(self.agreeing):
            yield Comparison(f"may not {number}", lambda b, g=gap: NotedOutputs(ONES, ONES + g, "a note"))

    def control(self, bench: CachedCalls) -> OutputPair:
        return ONES, ONES + self.moved


def _sides(bench: CachedCalls, single: float, double: float | None) -> OutputPair:
    if (bench.wide == torch.float64) and double is None:
        raise RuntimeError("no float64")
    gap = double if (bench.wide == torch.float64) and double is not None else single
    return ONES.double(), ONES.double() + gap


def judged(*gaps: tuple[float, float | None], moved: float = 1.0, agreeing: tuple[float, ...] = ()) -> Finding:
    law = find_law("ignored_arguments")
    assert isinstance(law, MeasuredLaw)
    fields = {f.name: getattr(law, f.name) for f in dataclasses.fields(MeasuredLaw)}
    driver = tiny_decoder()
    return measure_law(
        driver, Stub(**fields, gaps=gaps, moved=moved, agreeing=agreeing), CachedCalls(driver), kind="encoder"
    )


@pytest.mark.parametrize(
    ("single", "double", "verdict"),
    [
        (0.1, None, "held"),  # float64 is not asked
        (0.0, 0.0, "refuted"),
        (1e-6, 1e-15, "refuted"),  # rounding of two ways to the same numbers
        (5e-5, 5e-5, "held"),  # small, and real
        (0.0, None, "refuted"),
        (1e-7, None, "undecided"),
        (1e-6, 1e-8, "undecided"),
        (0.0, 1e-3, "undecided"),
    ],
)
def test_sides_that_must_differ(single: float, double: float | None, verdict: str) -> None:
    found = judged((single, double))
    assert found.verdict == verdict, found.reason


def test_no_change_says_nothing_of_a_model_that_nothing_moves() -> None:
    found = judged((0.0, 0.0), moved=1e-4)
    assert found.verdict == "undecided"
    assert found.reason.startswith("must 0, but the positive control changed the output by only 0.0001")


@pytest.mark.parametrize(
    ("gap", "moved", "verdict"), [(1e-7, 3e-3, "held"), (5e-5, 3e-3, "undecided"), (0.0, 9e-4, "undecided")]
)
def test_weak_control_is_held_against_float64(gap: float, moved: float, verdict: str) -> None:
    found = judged(agreeing=(gap,), moved=moved)
    assert found.verdict == verdict, found.reason


def test_difference_where_there_must_be_none_decides_before_the_want_of_one() -> None:
    found = judged((0.0, 0.0), agreeing=(0.5,), moved=0.0)
    assert (found.verdict, found.reason) == ("refuted", "may not 0: a note")


@dataclasses.dataclass(frozen=True)
class Warns(Stub):
    """A law whose comparison warns."""

    def comparisons(self, calls: CachedCalls) -> Iterator[Comparison]:
        def run(_: CachedCalls) -> NotedOutputs:
            warnings.warn("an old argument", DeprecationWarning, stacklevel=1)
            return NotedOutputs(ONES, 2 * ONES, "")

        yield Comparison("warns", run)


def test_a_warning_that_the_caller_turns_into_an_error_leaves_no_comparison_out() -> None:
    adapter = tiny_decoder()
    law = Warns(code="OP000", name="warns", statement="", trait="", expectation={}, remedy="")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert measure_law(adapter, law, CachedCalls(adapter), kind="causal_lm").verdict == "refuted"


def test_outputs_of_other_shapes_differ() -> None:
    law = judged((0.1, None))
    assert law.verdict == "held"

    def shaped(bench: CachedCalls) -> tuple[Tensor, Tensor]:
        del bench
        return torch.ones(2), torch.ones(3)

    driver = tiny_decoder()
    trial = Comparison("shapes", shaped, expects_difference=True)
    fields = {f.name: getattr(find_law("ignored_arguments"), f.name) for f in dataclasses.fields(MeasuredLaw)}

    class Shapes(Stub):
        def comparisons(self, bench: CachedCalls) -> Iterator[Comparison]:
            yield trial

    assert measure_law(driver, Shapes(**fields), CachedCalls(driver), kind="encoder").verdict == "held"


def test_outputs_of_one_call_show_nothing() -> None:
    class Same(Stub):
        def comparisons(self, bench: CachedCalls) -> Iterator[Comparison]:
            yield Comparison("itself", lambda b: (b.default_output, b.default_output), expects_difference=True)

    driver = tiny_decoder()
    fields = {f.name: getattr(find_law("ignored_arguments"), f.name) for f in dataclasses.fields(MeasuredLaw)}
    found = measure_law(driver, Same(**fields), CachedCalls(driver), kind="encoder")
    assert (found.verdict, found.reason) == (
        "undecided",
        "both outputs are of one call, so the comparison shows nothing",
    )


def test_error_of_the_trial_call_with_a_cache_is_no_answer() -> None:
    driver = tiny_decoder()
    driver.supported_inputs = driver.supported_inputs - {"cache"}
    law = find_law("cached_decoding")
    assert isinstance(law, MeasuredLaw)
    found = measure_law(driver, law, CachedCalls(driver), kind="causal_lm")
    assert (found.verdict, found.reason) == ("not_applicable", "it takes no cache")
    driver.probe_failures = {"cache": "a call with use_cache raised ValueError: no"}
    found = measure_law(driver, law, CachedCalls(driver), kind="causal_lm")
    assert (found.verdict, found.reason) == ("undecided", "a call with use_cache raised ValueError: no")


def test_remedy_names_only_mechanisms_of_the_model() -> None:
    law = find_law("chunked_prefill")
    assert isinstance(law, MeasuredLaw)
    driver = tiny_decoder()
    assert "scan" not in law.remedy_for(driver).text
    driver.mechanisms = frozenset({"recurrence"})
    assert "scan" in law.remedy_for(driver).text


def test_a_call_that_raises_is_named_though_other_comparisons_pass():
    class NoSingleRow(nn.Linear):
        def forward(self, x):
            if len(x) == 1:
                raise RuntimeError("no single row")
            return super().forward(x)

    report = audit(from_module(NoSingleRow(4, 4).eval(), torch.randn(2, 7, 4)), laws=["batch_composition"])
    assert report.findings[0].outcome == "pass"
    (note,) = (n for n in report.notes if "OP407" in n)
    assert "a batch of one row: a call that the law makes raised RuntimeError: no single row, test_measurement" in note
