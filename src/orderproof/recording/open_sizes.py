"""Sizes that a recording leaves open: the number of tokens, the number of rows.

An open size is a symbolic integer of torch with an example value. What the call asks of it (`if n > window:`) is
answered for the example and kept as a condition: the recording is that of every size for which the conditions hold.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import sympy
import torch
from torch._guards import GuardSource, Source
from torch.fx.experimental.symbolic_shapes import DimDynamic
from torch.utils._sympy.functions import (
    CeilToInt,
    CleanDiv,
    FloatTrueDiv,
    FloorDiv,
    FloorToInt,
    IntTrueDiv,
    Max,
    Min,
    Mod,
    PythonMod,
    ToFloat,
)  # fmt: skip

from orderproof.logic.terms import (
    FALSE,
    TRUE,
    Formula,
    Term,
    apply,
    as_term,
    at_most,
    conditional,
    conjunction,
    constant_quotient,
    disjunction,
    equal,
    floor_division,
    holds,
    less,
    maximum,
    minimum,
    negation,
    product,
    remainder,
    variable,
    without_common_factors,
)
from orderproof.recording.size_environment import SizeEnvironment

SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)
MAX_POWER = 4
LEAST_SIZE = 2  # of an open size: torch treats 0 and 1 apart


@dataclass(frozen=True)
class _SizeName(Source):
    """The name of an open size, as torch asks for it. Torch's own class is a part of its compiler."""

    size: str

    @property
    def _name_template(self) -> str:
        return self.size

    @property
    def guard_source(self) -> GuardSource:
        return GuardSource.CONSTANT


class NotLinear(Exception):
    """A size or a condition that is not linear in the open sizes; the message shows it."""


class OpenSizes:
    """Open sizes by name, each with an example value.

    Args:
        examples: The values by name.
        kept: Names of sizes that stay open if the call fixes them: the recording is that of one number, which is a
            condition, and its shapes show where this number is the size. It ends at a condition that is not linear,
            since nothing follows from it for other lengths.

    """

    def __init__(self, examples: Mapping[str, int], *, kept: Collection[str] = ()) -> None:
        self.examples = dict(examples)
        self.environment = SizeEnvironment(duck_shape=False, specialize_zero_one=True)
        self._names: dict[sympy.Symbol, str] = {}
        self._indices: dict[sympy.Symbol, str] = {}  # of loops; a symbol is at least 2, and an index that minus 2
        self.symbols: dict[str, Any] = {}  # SymInts
        for name, example in examples.items():
            source = _SizeName(name)
            symbol = self.environment.create_symbol(example, source, dynamic_dim=DimDynamic.DYNAMIC)
            assert isinstance(symbol, sympy.Symbol)
            self._names[symbol] = name
            self.symbols[name] = self.environment.create_symintnode(symbol, hint=example, source=source)
            self.environment.open[symbol] = self.symbols[name]
        self.environment.kept = frozenset(symbol for symbol, name in self._names.items() if name in kept)
        self.environment.why_unreadable = self._why_unreadable

    def new_index(self, name: str) -> Any:
        """An index of a loop, as a symbolic integer: any number from 0 on, with the example 0."""
        source = _SizeName(name.replace(" ", "_"))
        symbol = self.environment.create_symbol(LEAST_SIZE, source, dynamic_dim=DimDynamic.DYNAMIC)
        assert isinstance(symbol, sympy.Symbol)
        self._indices[symbol] = name
        self.environment.open[symbol] = self.environment.create_symintnode(symbol, hint=LEAST_SIZE, source=source)
        return self.environment.open[symbol] - LEAST_SIZE

    @property
    def has_indices(self) -> bool:
        """True if a loop of open length was recorded."""
        return bool(self._indices)

    @property
    def fixed(self) -> list[str]:
        """Names of the sizes that the call fixed to their example."""
        replaced = self.environment.replacements
        return [name for symbol, name in self._names.items() if symbol in replaced]

    @property
    def unreadable(self) -> str:
        """A condition that is not linear, at which a recording with kept sizes ended; empty if there is none."""
        return self.environment.unreadable

    def why_fixed(self, name: str, why_not_rolled: str = "") -> str:
        """Why a recording is for the example of one size only; of a loop that was not rolled with that reason."""
        line = next(self.environment.fixed_at.get(s, "") for s, own in self._names.items() if own == name)
        words = {"batch": "rows"}.get(name, name)
        only = f"its recording is for {self.examples[name]} {words} only"
        if why_not_rolled:
            return f"{only}: {why_not_rolled}{line}"
        return f"{only}: the call uses their number{line}; operators of torch, as `torch.arange(n)`, leave it open"

    def conditions(self) -> list[Formula]:
        """The questions of the call about sizes; nothing is known of one that is not linear."""
        fixed = [
            equal(variable(name), 0)
            for symbol, name in self._indices.items()
            if symbol in self.environment.replacements
        ]
        return fixed + [self._condition(guard.expr) for guard in self.environment.guards]

    def _why_unreadable(self, e: Any) -> str:
        try:
            self._formula(e)
        except NotLinear:
            return self._text(e)
        return ""

    def _condition(self, e: Any) -> Formula:
        try:
            return self._formula(e)
        except NotLinear:
            return holds(self._text(e))

    def _text(self, e: Any) -> str:
        names = {symbol: sympy.Symbol(name) for symbol, name in self._names.items()}
        indices = {symbol: sympy.Symbol(name) + LEAST_SIZE for symbol, name in self._indices.items()}
        return str(e.xreplace(names | indices))

    def shape(self, tensor: torch.Tensor) -> tuple[Term, ...]:
        """The shape of a tensor."""
        return tuple(self.term(size) for size in tensor.shape)

    def term(self, size: Any) -> Term:
        """The term of a size; one that is not linear is an integer of which nothing else is known."""
        if not isinstance(size, torch.SymInt):
            return as_term(int(size))
        try:
            return self._term(size.node.expr)
        except NotLinear:
            return apply(self._text(size.node.expr))

    def without_symbol(self, symbol: Any) -> Any:
        """The term of a symbolic integer, or the text of another symbolic number."""
        if isinstance(symbol, torch.SymInt):
            term = self.term(symbol)
            return term.constant if term.is_constant else term
        return OpaqueNumber(str(symbol.node.expr), partial(self._evaluated, symbol.node.expr))

    def _evaluated(self, e: Any, sizes: Mapping[str, int]) -> float:
        """A number for given sizes. Raises `TypeError` for one of which Sympy does not know it."""
        names = {symbol: sizes[name] for symbol, name in self._names.items()}
        indices = {symbol: sizes[name] + LEAST_SIZE for symbol, name in self._indices.items() if name in sizes}
        return float(self.environment.replace(e).xreplace({k: sympy.Integer(v) for k, v in (names | indices).items()}))

    def _term(self, e: Any) -> Term:  # noqa: C901, PLR0912 - one case for each kind of expression
        e = self.environment.replace(e)
        if isinstance(e, sympy.Integer):
            return as_term(int(e))
        if isinstance(e, sympy.Symbol):
            if e in self._indices:
                return variable(self._indices[e]) + LEAST_SIZE
            if e not in self._names:
                raise NotLinear(str(e))
            return variable(self._names[e])
        if isinstance(e, FloorToInt | CeilToInt):
            return self._rounded(e)
        parts = [self._term(part) for part in e.args]
        if isinstance(e, sympy.Add):
            total = as_term(0)
            for part in parts:
                total = total + part
            return total
        if isinstance(e, sympy.Mul):
            return product(parts)
        if isinstance(e, sympy.Pow) and parts[1].is_constant and 0 <= parts[1].constant <= MAX_POWER:
            return product([parts[0]] * parts[1].constant)
        if isinstance(e, FloorDiv | CleanDiv | Mod | PythonMod):
            quotient = constant_quotient(*parts)
            if quotient is not None:
                return as_term(quotient if isinstance(e, FloorDiv | CleanDiv) else 0)
            dividend, divisor, common = without_common_factors(*parts)
            if divisor.is_constant and divisor.constant > 0:
                if isinstance(e, FloorDiv | CleanDiv):
                    return floor_division(dividend, divisor.constant)
                return remainder(dividend, divisor.constant).times(common)
            if isinstance(e, Mod | PythonMod) and (rest := _without_multiples(dividend, divisor)).is_constant:
                # The divisor is more than the rest, and so positive.
                fits = less(rest, divisor) if rest.constant >= 0 else at_most(-rest, divisor)
                found = rest if rest.constant >= 0 else divisor + rest
                return conditional(fits, found.times(common), apply(self._text(e)))
        if isinstance(e, Max | Min):
            result = parts[0]
            for part in parts[1:]:
                result = (maximum if isinstance(e, Max) else minimum)(result, part)
            return result
        raise NotLinear(str(e))

    def _rounded(self, e: Any) -> Term:
        """The term of an integer, or of a quotient of integers, rounded down or up: exact below 2 ** 53."""
        (given,) = e.args
        if given.is_integer:
            return self._term(given)
        if isinstance(given, IntTrueDiv | FloatTrueDiv):
            dividend, divisor = map(_integer, given.args)
            if dividend is not None and isinstance(divisor, sympy.Integer) and divisor != 0:
                sign = 1 if divisor > 0 else -1
                term, size = self._term(dividend) * sign, int(divisor) * sign
                return floor_division(term, size) if isinstance(e, FloorToInt) else -floor_division(-term, size)
        raise NotLinear(str(e))

    def _formula(self, e: Any) -> Formula:
        if e in (sympy.true, sympy.false):
            return TRUE if e is sympy.true else FALSE
        if isinstance(e, sympy.And | sympy.Or):
            join = conjunction if isinstance(e, sympy.And) else disjunction
            return join(*map(self._formula, e.args))
        if isinstance(e, sympy.Not):
            return negation(self._formula(e.args[0]))
        comparisons: dict[Any, Callable[[Term, Term], Formula]] = {
            sympy.Eq: equal, sympy.Ne: lambda a, b: negation(equal(a, b)), sympy.Le: at_most, sympy.Lt: less,
            sympy.Ge: lambda a, b: at_most(b, a), sympy.Gt: lambda a, b: less(b, a),
        }  # fmt: skip
        if type(e) not in comparisons:
            raise NotLinear(str(e))
        first, second = (self._term(part) for part in e.args)
        return comparisons[type(e)](first, second)


def _integer(e: Any) -> Any:
    """The integer that a symbolic float is; None for another one."""
    if isinstance(e, ToFloat):
        return e.args[0]
    if isinstance(e, sympy.Float) and float(e).is_integer():
        return sympy.Integer(int(e))
    return e if e.is_integer else None


def _without_multiples(dividend: Term, divisor: Term) -> Term:
    """A dividend without the multiple of the divisor in it: 2n - 1 and n give -1."""
    factors = dict(dividend.summands)
    atom, factor = divisor.summands[0] if divisor.summands else (None, 1)
    return dividend if atom not in factors else dividend - divisor * (factors[atom] // factor)


class OpaqueNumber:
    """A number that is computed from open sizes in another way: the same in both runs, and otherwise unknown.

    Attributes:
        text: How it is computed.
        evaluated: Its value for given sizes. Raises `TypeError` if it is not known.

    """

    def __init__(self, text: str, evaluated: Callable[[Mapping[str, int]], float]) -> None:
        self.text, self.evaluated = text, evaluated

    def __repr__(self) -> str:
        return self.text
