"""One measured law on one driver: run its trials, tell rounding from a real difference, and hold it to its control.

    float32 within the tolerance                           the trial agrees
    otherwise the same in float64:  it is all but gone     rounding: the trial agrees
                                    it stays               the law is refuted
                                    neither                undecided
    every trial agrees, and the control moves the output far more than the tolerance: held
    the control moves it less than that: every trial is run in float64, where the tolerance is finer

Where the two sides must differ it is the other way round:

    float32 beyond the tolerance                           they differ: the trial agrees
    otherwise the same in float64:  it is all but gone     nothing changed: the law is refuted, if the control moves
                                    it stays               a small difference, but a real one: the trial agrees
                                    neither                undecided

The tolerance follows the noise of the model itself: what two equal calls differ by.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from orderproof.auditing.verdict import is_met
from orderproof.driver import Driver
from orderproof.errors import Unsupported
from orderproof.laws.measured import Bench, MeasuredLaw, Noted, Trial
from orderproof.prover.capture import first_line
from orderproof.prover.run import difference
from orderproof.record import Deviation, Expectation, Finding, Measurement, Scope, TrialRecord, Verdict, Witness

AGREES = 1e-4  # relative, float32; the noise of 143 architectures was at most 8.8e-6
NOISE = 20  # times the noise, where that is more
LOUDEST = 1e-5  # noise above this is not taken for noise
REAL = 1e-2  # relative; where float64 cannot be run, less is no proof of a difference
GONE = 1e-5  # relative, float64; models that work out angles in float32 keep some of their rounding
STAYS = 1e-4  # relative, float64: no rounding
CONTROL = 100  # how many times the tolerance a control must move the output
EXACT = 1e-6  # relative: what is allowed, in float64 too, where what must not matter was changed
SAME = 1e-9  # relative, float64: what is called the same where the sides must differ


@dataclass(frozen=True)
class Outcome:
    """What one trial gave."""

    trial: Trial
    record: TrialRecord
    verdict: Verdict
    sides: tuple[Tensor, Tensor] | None = None


def measure_law(
    driver: Driver, law: MeasuredLaw, bench: Bench, *, kind: str, expect: Expectation | None = None
) -> Finding:
    """The finding of one law. Never raises for what the model does."""
    began = time.perf_counter()
    expected = expect or law.expected(kind)
    why = law.not_asked(driver)
    if why is not None:
        found = blank(law, expected, driver, "not_applicable", why)
    else:
        try:
            found = _measured(driver, law, bench, expected)
        except Exception as error:  # noqa: BLE001 - the model is not ours: anything may come
            found = blank(law, expected, driver, "undecided", _said(error))
    return found.model_copy(update={"seconds": time.perf_counter() - began})


def blank(law: MeasuredLaw, expected: Expectation, driver: Driver, verdict: Verdict, reason: str) -> Finding:
    """A finding without a measurement."""
    return Finding(
        code=law.code, law=law.name, statement=law.statement, verdict=verdict, expected=expected,
        met=is_met(verdict, expected), scope=Scope(length=driver.length, weights="these"), output=driver.output,
        reason=reason,
    )  # fmt: skip


def _said(error: Exception) -> str:
    return str(error) if isinstance(error, Unsupported) else f"{type(error).__name__}: {first_line(error)}"


def _measured(driver: Driver, law: MeasuredLaw, bench: Bench, expected: Expectation) -> Finding:
    tolerance = EXACT if law.exact else max(AGREES if law.ladder else EXACT, NOISE * _noise(bench))
    outcomes = [_tried(trial, bench, tolerance, law) for trial in law.trials(bench)]
    made = [o for o in outcomes if o.record.float32 is not None and not o.trial.advisory]
    worst = _worst(made)
    if worst is None:
        refused = all(o.verdict == "not_applicable" for o in outcomes)  # whether no trial could be asked of it
        verdict: Verdict = "not_applicable" if refused else "undecided"
        reasons = dict.fromkeys(o.record.reason for o in outcomes)
        found = blank(law, expected, driver, verdict, "; ".join(reasons) or "there is nothing to compare")
        tried = tuple(o.record for o in outcomes)
        return found.model_copy(update={"measurement": Measurement(tolerance=tolerance, trials=tried)})
    verdict, reason = worst.verdict, worst.record.reason
    seen_to_differ = verdict == "refuted" and not worst.trial.must_differ
    signal = None if seen_to_differ else _signal(law, bench)
    if verdict == "held" and signal is not None and GONE * CONTROL <= signal < CONTROL * tolerance:
        tolerance = _finer(made, bench, law, tolerance)
    if verdict != "undecided" and not seen_to_differ and (signal is None or signal < CONTROL * tolerance):
        moved = "could not be run" if signal is None else f"moved it by {signal:.1g} only"
        what = "no difference was seen" if verdict == "held" else reason
        verdict, reason = "undecided", f"{what}, but the control {moved}: nothing can be told from it"
    trials = tuple(o.record.model_copy(update={"verdict": o.verdict}) for o in outcomes)
    if verdict == "held":
        skipped = sum(t.float32 is None for t in trials)
        reason = f"{len(made)} comparison{'s' * (len(made) > 1)}"
        reason += f", {skipped} more could not be made" if skipped else ""
        told = [o.record.reason for o in outcomes if o.trial.advisory and o.record.float32 and o.record.reason]
        reason = "; ".join([reason, *(f"told, not judged: {each}" for each in told)])
    return Finding(
        code=law.code, law=law.name, statement=law.statement, verdict=verdict, expected=expected,
        met=is_met(verdict, expected), scope=Scope(length=bench.length, weights="these"), output=driver.output,
        deviation=Deviation(float32=worst.record.float32, float64=worst.record.float64), reason=reason,
        witness=_witness(worst, bench) if verdict == "refuted" else None,
        measurement=Measurement(tolerance=tolerance, signal=signal, trials=trials),
        fix=(worst.trial.advice or law.fix) if verdict == "refuted" else "",
        diff=law.diff if verdict == "refuted" and not worst.trial.advice else "",
    )  # fmt: skip


def _noise(bench: Bench) -> float:
    """What two equal calls differ by."""
    again = bench.call(bench.tokens, keep=False).output
    return min(difference(bench.whole, again), LOUDEST)


def _tried(trial: Trial, bench: Bench, tolerance: float, law: MeasuredLaw) -> Outcome:
    try:
        came = trial.run(bench)
    except Exception as error:  # noqa: BLE001 - the model is not ours: anything may come
        spared = law.optional and isinstance(error, Unsupported)
        verdict: Verdict = "not_applicable" if spared else "undecided"
        return Outcome(trial, TrialRecord(what=trial.what, reason=_said(error)), verdict)
    expected, found = sides = (came[0], came[1])
    said = f"{trial.what}: {came.note}" if isinstance(came, Noted) and came.note else trial.what
    if expected.shape != found.shape:
        if trial.must_differ:
            return Outcome(trial, TrialRecord(what=trial.what, float32=1.0), "held")
        reason = f"{trial.what}: expected an output of shape {list(expected.shape)}, got {list(found.shape)}"
        return Outcome(trial, TrialRecord(what=trial.what, reason=reason), "undecided")
    if not bool(torch.isfinite(expected).all()) or not bool(torch.isfinite(found).all()):
        return Outcome(trial, TrialRecord(what=trial.what, reason=f"{trial.what}: {_not_finite(*sides)}"), "undecided")
    single = difference(*sides)
    if trial.advisory:
        told = f"{trial.what}: it differs by {single:.1g}" if single > EXACT else ""
        return Outcome(trial, TrialRecord(what=trial.what, float32=single, reason=told), "held", sides)
    double: float | None = None
    doubt = ""
    if (single > tolerance) == trial.must_differ:
        verdict = "held"
    elif not law.ladder:
        verdict = "refuted"
    else:
        double = _double(trial, bench)
        judge = _still_same if trial.must_differ else _still_different
        verdict, doubt = judge(single, double, tolerance)
    reason = "" if verdict == "held" else f"{trial.what}: {doubt}" if doubt else said
    record = TrialRecord(what=trial.what, float32=single, float64=double, reason=reason)
    return Outcome(trial, record, verdict, sides)


def _finer(outcomes: Sequence[Outcome], bench: Bench, law: MeasuredLaw, tolerance: float) -> float:
    """What a weak control must be held against: float64 has less rounding, so that smaller effects show in it."""
    if not law.ladder or any(o.trial.must_differ for o in outcomes):
        return tolerance
    doubles = [_double(o.trial, bench) for o in outcomes]
    return GONE if all(double is not None and double <= GONE for double in doubles) else tolerance


def _still_different(single: float, double: float | None, tolerance: float) -> tuple[Verdict, str]:
    """Whether sides that should be the same, and are not in float32, are so in float64; and the doubt in words."""
    if double is None:
        doubt = f"a difference of {single:.1g}, and it cannot be run in float64"
        return ("refuted", "") if single >= REAL else ("undecided", doubt)
    if double <= min(GONE, tolerance):
        return "held", ""
    if double >= min(STAYS, 10 * tolerance):
        return "refuted", ""
    return "undecided", f"{single:.1g} in float32 and {double:.1g} in float64"


def _still_same(single: float, double: float | None, tolerance: float) -> tuple[Verdict, str]:
    """Whether sides that must differ, and hardly do in float32, do so in float64; and the doubt in words.

    A difference in float32 below the tolerance may be rounding, and then it falls in float64; or a small effect,
    and then it stays.
    """
    if double is None:
        doubt = f"a difference of {single:.1g} only, and it cannot be run in float64"
        return ("refuted", "") if single == 0.0 else ("undecided", doubt)
    if double <= SAME:
        return "refuted", ""
    if double >= max(EXACT, single / 2):
        return ("held", "") if single > 0.0 else ("undecided", f"no difference in float32 and {double:.1g} in float64")
    return "undecided", f"{single:.1g} in float32 and {double:.1g} in float64"


def _double(trial: Trial, bench: Bench) -> float | None:
    try:
        sides = trial.run(bench.wide)[:2]
    except Exception:  # noqa: BLE001 - many models name float32 inside
        return None
    return difference(*sides) if all(bool(torch.isfinite(x).all()) for x in sides) else None


def _not_finite(expected: Tensor, found: Tensor) -> str:
    for name, x in (("the call it is compared with", expected), ("it", found)):
        bad = torch.nonzero(~torch.isfinite(x))
        if len(bad):
            return f"{name} gives NaN or infinity, first at {tuple(bad[0].tolist())}"
    return ""


def _worst(outcomes: Sequence[Outcome]) -> Outcome | None:
    """The outcome that decides: a refutation, else a doubt, else the largest difference where there may be none.

    What was refuted by a difference goes before what was refuted for want of one, which the control may still excuse.
    """
    order = ("refuted", "undecided", "held")

    def first(outcome: Outcome) -> tuple[int, bool, float]:
        size = outcome.record.float32 or 0.0
        return order.index(outcome.verdict), outcome.trial.must_differ, size if outcome.trial.must_differ else -size

    return min(outcomes, key=first, default=None)


def _signal(law: MeasuredLaw, bench: Bench) -> float | None:
    try:
        return difference(*law.control(bench)[:2])
    except Exception:  # noqa: BLE001 - the model is not ours: anything may come
        return None


def _witness(worst: Outcome, bench: Bench) -> Witness:
    """Where the two sides of the worst trial differ most."""
    assert worst.sides is not None
    expected, found = worst.sides
    place = int((expected.double() - found.double()).abs().argmax())
    index = tuple(int(i) for i in torch.unravel_index(torch.tensor(place), expected.shape))
    return Witness(
        before=(), after=(), change=worst.record.what, output_index=index,
        expected=float(expected[index]), found=float(found[index]),
        difference=worst.record.float64 if worst.record.float64 is not None else worst.record.float32 or 0.0,
        seed=bench.seed,
    )  # fmt: skip
