"""Recurrent layers: an output reads the tokens up to its own, and the initial states of its row.

Of a single layer that also runs backwards this holds of the first half of the features; the others read all tokens.
"""

from __future__ import annotations

from orderproof_recheck.facts import Fact, Predicates
from orderproof_recheck.index_maps import Digits, read
from orderproof_recheck.logic.formulas import FALSE, TRUE, every, less, some
from orderproof_recheck.logic.notation import require
from orderproof_recheck.logic.terms import Term, integer
from orderproof_recheck.operator import Operator, operators
from orderproof_recheck.rules.movement import ONE, single, size_of
from orderproof_recheck.steps import Derived, Step


def recurrent(step: Step) -> list[Derived]:
    """The outputs of all tokens, and the last states, which read every token."""
    require(len(step.args) == 9 and not step.kwargs and step.operator.endswith(".input"), "it has other arguments")
    x, first, weights, *options = step.arguments()
    backwards, rows_first = options[-2:]
    require(type(backwards) is bool and type(rows_first) is bool, "an option is no boolean")
    states = [first] if isinstance(first, Fact) else first
    require(all(isinstance(f, Fact) for f in (x, *states, *weights)), "expected tensors")
    require(len(x.axes) == 3 and all(len(f.axes) == 3 for f in states), "an operand has another number of dimensions")
    require(all(f.dtype == x.dtype for f in (*states, *weights)), "its operands have different dtypes")
    fixed = all(f.same is TRUE and f.ordinary is TRUE and f.hidden is FALSE for f in weights)
    require(fixed and len(step.shapes) == 1 + len(states), "its weights differ, or it has another number of results")
    token, row = (1, 0) if rows_first else (0, 1)
    width = size_of(states[0], 2) * (2 if backwards else 1)
    wanted = [size_of(x, 0), size_of(x, 1), width]
    shapes = [wanted, *([size_of(f, d) for d in range(3)] for f in states)]
    require([len(shape) for shape in step.shapes] == [3] * len(shapes), "a result has another number of dimensions")
    fits = all(step.equal(a, b) for pair in zip(step.shapes, shapes, strict=True) for a, b in zip(*pair, strict=True))
    require(fits and all(step.equal(size_of(f, 1), size_of(x, row)) for f in states), "a result has another shape")
    forwards = integer(0) if backwards and options[1] != 1 else size_of(states[0], 2)  # features of that direction
    return [_result(step, number, x, states, (token, row), forwards) for number in range(len(shapes))]


def _result(step: Step, number: int, x: Fact, states: list[Fact], dims: tuple[int, int], forwards: Term) -> Derived:
    token, row = dims
    of_row = step.digits(row if number == 0 else 1, number)
    places: list[Digits] = [(), (), step.further(x.axes[2])]
    places[row] = of_row
    later = FALSE
    if size_of(x, token) is not ONE:
        places[token] = ((_, other),) = step.further((size_of(x, token),))
        if number == 0:
            later = every(less(single(step, token), other), less(single(step, 2), forwards))
    element = read(x, places, step.equal)
    initial = [read(f, [step.further(f.axes[0]), of_row, step.further(f.axes[2])], step.equal) for f in states]
    everything = every(element.ordinary, *(f.ordinary for f in initial))
    known = TRUE if everything is TRUE and step.name != "rnn_relu" else FALSE
    return Derived(Predicates(same=every(some(element.same, later), *(f.same for f in initial)), ordinary=known))


RECURRENT: dict[str, Operator] = operators(("lstm", "gru", "rnn_tanh", "rnn_relu"), recurrent)
