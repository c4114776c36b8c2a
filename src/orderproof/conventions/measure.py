"""Ask functions all questions of their kind."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import get_args

import torch

from orderproof.conventions.library import AnyFunction
from orderproof.conventions.named import questions_of
from orderproof.conventions.question import ENDED, REFUSED, Question
from orderproof.models.own_errors import raise_own_error
from orderproof.ports.engines.engine import EngineError
from orderproof.records.conventions import NOT_TAKEN, AnswersRecord, ConventionsReport, FunctionKind
from orderproof.seeded_random import seeded_random
from orderproof.time_limit import TimeLimitExceeded, time_limit

LIMIT = 60.0  # [s] for one question


def measure(
    functions: Sequence[AnyFunction],
    *,
    compare: bool = False,
    progress: Callable[[str, int, int], None] = lambda name, done, of: None,
) -> ConventionsReport:
    """The answers of functions to all questions of their kind.

    Args:
        functions: The functions; of both kinds.
        compare: The last one is what the first is compared with.
        progress: Called with the function that is asked next, and how many of how many are done.

    """
    asked = {function.kind for function in functions}
    kinds = [kind for kind in get_args(FunctionKind) if kind in asked]
    answered = []
    for done, function in enumerate(functions):
        progress(function.name, done, len(functions))
        answered.append(_answers(function))
    return ConventionsReport(
        questions=tuple(question.record for kind in kinds for question in questions_of(kind)),
        functions=tuple(answered),
        against=answered[-1].function if compare else "",
        differing=answered[0].differs_from(answered[-1]) if compare else (),
        versions={"torch": torch.__version__},
    )


def _answers(function: AnyFunction) -> AnswersRecord:
    return AnswersRecord(
        function=function.name, kind=function.kind, version=function.version, layout=function.layout,
        answers={question.name: answer(question, function) for question in questions_of(function.kind)},
    )  # fmt: skip


def answer(question: Question, function: AnyFunction) -> str:
    """The answer of a function to a question; `REFUSED` if the call fails, and what it says if it takes too long."""
    if not question.needs <= function.takes:
        return NOT_TAKEN
    try:
        with warnings.catch_warnings(), time_limit(LIMIT), torch.no_grad(), seeded_random(0):
            warnings.simplefilter("ignore")
            return question.ask(function)
    except TimeLimitExceeded:
        return f"not done after {LIMIT:g} s"
    except EngineError:
        return ENDED
    except Exception as error:  # noqa: BLE001 - the function: it may refuse a question in any way
        raise_own_error(error)
        return REFUSED
