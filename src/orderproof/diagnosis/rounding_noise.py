"""The rounding error of a run, measured by Monte Carlo arithmetic (Parker 1997).

Every floating-point result of an operator that rounds is multiplied by 1 + eps or 1 - eps, at random and element by
element, with the eps of its own dtype. The differences between such runs are what rounding can do to the output. A part
of the model that casts to a narrower dtype is perturbed by the eps of that dtype, so a float64 run with a bfloat16 part
shows its real error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

from orderproof.diagnosis.tolerances import CLEAR_DIFFERENCE, ROUNDING_RUNS
from orderproof.operator_mode import OperatorMode
from orderproof.recording.arguments import leaves
from orderproof.recording.compiled_code import forget_compiled_code
from orderproof.recording.execution import relative_difference
from orderproof.recording.flex_attention import call_as_operators, is_flex_attention

_KNOWN_PRECISION = ("aten", "prims")  # operators of other libraries may compute in any dtype inside
# Operators that move or select values: their results are exact. One that is missing here makes the noise too large.
_EXACT = frozenset({
    "abs", "amax", "amin", "cat", "ceil", "clamp", "clamp_max", "clamp_min", "clone", "constant_pad_nd", "copy",
    "detach_copy", "embedding", "expand_copy", "fill", "flip", "floor", "fmax", "fmin", "full_like", "gather", "index",
    "index_copy", "index_put", "index_select", "kthvalue", "masked_fill", "masked_scatter", "masked_select", "max",
    "max_pool1d", "max_pool2d_with_indices", "maximum", "median", "min", "minimum", "neg", "ones_like", "relu",
    "repeat", "resolve_neg", "roll", "round", "scatter", "select_scatter", "sign", "slice_scatter", "sort",
    "split_copy", "stack", "take", "topk", "tril", "triu", "trunc", "where", "zero", "zeros_like",
})  # fmt: skip
# Exact on whole numbers as long as no partial sum is too large for the dtype: masks, counts and positions in queues.
_EXACT_ON_WHOLE_NUMBERS = frozenset({
    "_to_copy", "add", "addmm", "baddbmm", "bmm", "cumsum", "dot", "mm", "mul", "mv", "rsub", "sub", "sum",
})  # fmt: skip
_UNKNOWN_EPS = torch.finfo(torch.bfloat16).eps


class PerturbedRounding(OperatorMode):
    """Perturbs the result of every floating-point operator by one rounding of its dtype.

    `exact` is a dtype whose rounding is not looked at.
    """

    def __init__(self, seed: int, exact: torch.dtype | None = None) -> None:
        super().__init__()
        self.perturbed = False
        self.exact_by_values = False  # some operator in another dtype is exact for these numbers
        self._exact = exact
        self._generators: dict[torch.device, torch.Generator] = {}  # not those that the model draws from
        self._seed = seed

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if is_flex_attention(func):
            with self:
                return call_as_operators(args, kwargs)
        name, known = _name(func)
        given = leaves((args, kwargs))
        floats = [x for x in given if _is_floating(x)]
        of_exact, may_be_whole = self._are_exact(floats), known and name in _EXACT_ON_WHOLE_NUMBERS
        # Numbers are read before the call, which may write to them, and after it only if they are all in the exact
        # dtype and the result is not: then it is another tensor.
        whole = may_be_whole and not of_exact and _is_exact_on(given)
        result = func(*args, **kwargs)
        results = [x for x in leaves(result) if _is_floating(x)]
        if known and (name in _EXACT or (of_exact and self._are_exact(results))):
            return result
        if whole or (may_be_whole and of_exact and _is_exact_on(given)):
            self.exact_by_values |= not self._are_exact(results)
            return result
        if not floats:
            return result  # a factory: what it makes is the same in every run
        if func is torch.ops.aten._to_copy.default and epsilon(result) <= epsilon(floats[0]):
            return result
        returns = [result] if len(func._schema.returns) == 1 else list(result or ())
        for value, described in zip(returns, func._schema.returns, strict=True):
            alias = described.alias_info
            if alias is not None and not alias.is_write:
                continue  # a view: nothing was computed
            for tensor in filter(_is_floating, leaves(value)):
                self._perturb(tensor, known=known)
        return result

    def _are_exact(self, tensors: Sequence[Tensor]) -> bool:
        return all(x.dtype is self._exact for x in tensors)

    def _perturb(self, tensor: Tensor, *, known: bool) -> None:
        if known and tensor.dtype is self._exact:
            return
        self.perturbed = True
        eps = epsilon(tensor)
        if tensor.device not in self._generators:
            self._generators[tensor.device] = torch.Generator(tensor.device).manual_seed(self._seed)
        signs = torch.empty(tensor.shape, dtype=torch.float32, device=tensor.device)
        signs.bernoulli_(0.5, generator=self._generators[tensor.device]).mul_(2).sub_(1)
        real = torch.promote_types(tensor.real.dtype, torch.float32)
        tensor.mul_(1 + signs.to(real) * (eps if known else max(eps, _UNKNOWN_EPS)))


@cache
def _name(func: OpOverload) -> tuple[str, bool]:
    """The name of an operator without namespace and overload; true if it is one of torch."""
    return func._schema.name.removeprefix("aten::").rstrip("_"), func.namespace in _KNOWN_PRECISION


def _is_exact_on(arguments: list[Any]) -> bool:
    """True if sums of products of these numbers are whole and small enough to be exact in their dtypes."""
    bound, limit, count = 1.0, math.inf, 1
    for x in arguments:
        if isinstance(x, float) and not x.is_integer():
            return False
        if isinstance(x, int | float):
            bound *= max(1.0, abs(x))
        elif _is_floating(x) and x.numel():
            if x.is_complex() or not bool((x == x.round()).all()):
                return False
            bound *= max(1.0, float(x.abs().max()))
            limit, count = min(limit, 1 / epsilon(x)), max(count, x.numel())
    return bound * count <= limit


def epsilon(x: Tensor) -> float:
    """The relative rounding error of a floating-point tensor; 0 for another one."""
    return torch.finfo(x.dtype).eps if _is_floating(x) else 0.0


@dataclass
class RoundingNoise:
    """The largest relative difference between a run and the same run with perturbed rounding.

    Infinite if a perturbed run fails, or if it changes the shape or the finite elements of the output.

    Attributes:
        run: One run.
        exact: A dtype whose rounding is not looked at.
        if_exact: Called if no operator of the run rounds to another dtype; with True if that follows from the
            operators, and with False if also from the numbers.
        unperturbed: The output of a run that was made before; by default there is none.

    """

    run: Callable[[], Tensor]
    exact: torch.dtype | None = None
    if_exact: Callable[[bool], object] = lambda _: None
    unperturbed: Callable[[], Tensor] | None = None
    _largest: float = field(default=0.0, init=False)
    _runs: int = field(default=0, init=False)

    def of_a_difference(self, size: float = 0.0) -> float:
        """The noise in `ROUNDING_RUNS` runs; in fewer if these leave no doubt that a difference of `size` is none."""
        while self._runs < ROUNDING_RUNS and not (self._runs and size > CLEAR_DIFFERENCE * self._largest):
            self._largest = max(self._largest, self._measured(self._runs))
            self._runs += 1
        return self._largest

    def _measured(self, seed: int) -> float:
        mode = PerturbedRounding(seed, self.exact)
        try:
            with mode:
                perturbed = self.run()
        except Exception:  # noqa: BLE001 - the model, with values that it may refuse
            forget_compiled_code()
            self._runs = ROUNDING_RUNS
            return float("inf")
        if not mode.perturbed:
            self.if_exact(not mode.exact_by_values)
            self._runs = ROUNDING_RUNS  # each run is the run itself
            return epsilon(perturbed)
        output = self._output
        same_shape = perturbed.shape == output.shape
        return max(epsilon(output), relative_difference(output, perturbed) if same_shape else float("inf"))

    @cached_property
    def _output(self) -> Tensor:
        return (self.unperturbed or self.run)()


def rounding_noise(run: Callable[[], Tensor], *, exact: torch.dtype | None = None) -> float:
    """The rounding error of a run; `exact` is a dtype whose rounding is not looked at."""
    return RoundingNoise(run, exact).of_a_difference()


def _is_floating(x: Any) -> bool:
    return isinstance(x, Tensor) and (x.is_floating_point() or x.is_complex())
