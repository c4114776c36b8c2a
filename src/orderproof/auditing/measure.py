"""One measured law on one driver: run its trials, tell rounding from a real difference, and hold it to its control.

    float32 within the tolerance                           the trial agrees
    otherwise the same in float64:  it is all but gone     rounding: the trial agrees
                                    it stays               the law is refuted
                                    neither                undecided
    every trial agrees, and the control moves the output far more than the tolerance: held

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
from orderproof.laws.measured import Bench, MeasuredLaw, Trial
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


@dataclass(frozen=True)
class Outcome:
    """What one trial gave."""

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
    outcomes = [_tried(trial, bench, tolerance, ladder=law.ladder) for trial in law.trials(bench)]
    made = [o for o in outcomes if o.record.float32 is not None]
    worst = _worst(made)
    if worst is None:
        verdict: Verdict = "undecided" if outcomes else "not_applicable"
        reasons = dict.fromkeys(o.record.reason for o in outcomes)
        found = blank(law, expected, driver, verdict, "; ".join(reasons) or "there is nothing to compare")
        tried = tuple(o.record for o in outcomes)
        return found.model_copy(update={"measurement": Measurement(tolerance=tolerance, trials=tried)})
    signal = None if worst.verdict == "refuted" else _signal(law, bench)
    verdict, reason = worst.verdict, worst.record.reason
    if verdict == "held" and (signal is None or signal < CONTROL * tolerance):
        moved = "could not be run" if signal is None else f"moved it by {signal:.1g} only"
        verdict, reason = "undecided", f"no difference was seen, but the control {moved}: nothing can be told from it"
    trials = tuple(o.record.model_copy(update={"verdict": o.verdict}) for o in outcomes)
    if verdict == "held":
        skipped = sum(t.float32 is None for t in trials)
        reason = f"{len(made)} comparison{'s' * (len(made) != 1)}"
        reason += f", {skipped} more could not be made" if skipped else ""
    return Finding(
        code=law.code, law=law.name, statement=law.statement, verdict=verdict, expected=expected,
        met=is_met(verdict, expected), scope=Scope(length=bench.length, weights="these"), output=driver.output,
        deviation=Deviation(float32=worst.record.float32, float64=worst.record.float64), reason=reason,
        witness=_witness(worst, bench) if verdict == "refuted" else None,
        measurement=Measurement(tolerance=tolerance, signal=signal, trials=trials),
        fix=_fix(law, worst, bench) if verdict == "refuted" else "",
    )  # fmt: skip


def _noise(bench: Bench) -> float:
    """What two equal calls differ by."""
    again = bench.call(bench.tokens, keep=False).output
    return min(difference(bench.whole, again), LOUDEST)


def _tried(trial: Trial, bench: Bench, tolerance: float, *, ladder: bool) -> Outcome:
    try:
        sides = trial.run(bench)
    except Exception as error:  # noqa: BLE001 - the model is not ours: anything may come
        return Outcome(TrialRecord(what=trial.what, reason=_said(error)), "undecided")
    expected, found = sides
    if expected.shape != found.shape:
        reason = f"{trial.what}: expected an output of shape {list(expected.shape)}, got {list(found.shape)}"
        return Outcome(TrialRecord(what=trial.what, reason=reason), "undecided")
    if not bool(torch.isfinite(expected).all()) or not bool(torch.isfinite(found).all()):
        return Outcome(TrialRecord(what=trial.what, reason=f"{trial.what}: {_not_finite(*sides)}"), "undecided")
    single = difference(*sides)
    if single <= tolerance:
        return Outcome(TrialRecord(what=trial.what, float32=single), "held", sides)
    if not ladder:
        return Outcome(TrialRecord(what=trial.what, float32=single, reason=trial.what), "refuted", sides)
    double = _double(trial, bench)
    record = TrialRecord(what=trial.what, float32=single, float64=double)
    if double is None:
        real = single >= REAL
        verdict: Verdict = "refuted" if real else "undecided"
        doubt = "" if real else f"{trial.what}: a difference of {single:.1g}, and it cannot be run in float64"
    elif double <= min(GONE, tolerance):
        verdict, doubt = "held", ""
    elif double >= min(STAYS, 10 * tolerance):
        verdict, doubt = "refuted", ""
    else:
        verdict, doubt = "undecided", f"{trial.what}: {single:.1g} in float32 and {double:.1g} in float64"
    return Outcome(record.model_copy(update={"reason": doubt or trial.what}), verdict, sides)


def _double(trial: Trial, bench: Bench) -> float | None:
    try:
        sides = trial.run(bench.wide)
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
    """The outcome that decides: a refutation, else a doubt, else the largest difference."""
    order = ("refuted", "undecided", "held")
    return min(outcomes, key=lambda o: (order.index(o.verdict), -(o.record.float32 or 0.0)), default=None)


def _signal(law: MeasuredLaw, bench: Bench) -> float | None:
    try:
        return difference(*law.control(bench))
    except Exception:  # noqa: BLE001 - the model is not ours: anything may come
        return None


def _fix(law: MeasuredLaw, worst: Outcome, bench: Bench) -> str:
    advice = {trial.what: trial.advice for trial in law.trials(bench)}.get(worst.record.what)
    return advice or law.fix


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
