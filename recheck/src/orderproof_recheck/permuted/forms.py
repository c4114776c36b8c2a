"""How each operator depends on indices: the elements that it reads, and nothing else but what is said here.

The rules of `theorems/rules` say which elements of the operands an element of the result is computed from, and under
which conditions on indices. For runs that differ by a permutation that is not enough: two elements that are computed
from the same elements may differ, because their own index counts. Such dimensions are listed for each operator; along
them nothing may move. An operator without a form may only be applied to tensors that are the same in both runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from orderproof_recheck.facts import Fact
from orderproof_recheck.permuted.own_rules import (
    attention,
    group_norm,
    layer_norm,
    lookup,
    softmax,
)
from orderproof_recheck.rules import RULES, Rule
from orderproof_recheck.rules.creation import CREATION
from orderproof_recheck.rules.lookup import LOOKUP
from orderproof_recheck.rules.movement import MOVEMENT, size_of
from orderproof_recheck.rules.parts import PARTS
from orderproof_recheck.rules.pieces import PIECES
from orderproof_recheck.rules.pointwise import POINTWISE
from orderproof_recheck.rules.sums import SUMS
from orderproof_recheck.steps import Step

Dims = Callable[[Step], Iterable[int]]


def _no_dims(step: Step) -> Iterable[int]:
    del step
    return ()


@dataclass(frozen=True)
class Form:
    """How an operator depends on indices.

    Attributes:
        rule: Which elements an element of the result is computed from.
        in_any_order: Numbers of the results for which the elements at further indices may come in any order.
        by_index: Dimensions of the results along which the index counts: nothing may move.
        others_are_whole: All operands but the first are used as a whole, and have to be the same in both runs.

    """

    rule: Rule
    in_any_order: tuple[int, ...] = ()
    by_index: Dims = _no_dims
    others_are_whole: bool = False


def _along(place: int, name: str, default: int | None = None) -> Dims:
    """The dimension that is an argument."""

    def dims(step: Step) -> Iterable[int]:
        rank = len(step.fact(0).axes)
        return [step.dim(step.argument(place, name, default), rank)] if rank else []

    return dims


def _rolled(step: Step) -> Iterable[int]:
    given, rank = step.argument(2, "dims", []), len(step.fact(0).axes)
    return [step.dim(d, rank) for d in (given if isinstance(given, list) else [given])]


def _written(step: Step) -> Iterable[int]:
    """Elements are written by their index along a dimension, and along those that are not written as a whole."""
    own = step.fact(0)
    others = [x for x in (*step.arguments(2), step.argument(3, "src")) if isinstance(x, Fact)]
    parts = {d for x in others for d in range(len(x.axes)) if not step.equal(size_of(x, d), size_of(own, d))}
    return parts | set(_along(1, "dim")(step))


def _after_the_first(step: Step) -> Iterable[int]:
    return range(1, len(step.shape))


def _channels(step: Step) -> Iterable[int]:
    return (1,) if len(step.shape) > 1 else (0,)


_SUMS = (
    *SUMS, "sum", "mean", "prod", "amax", "amin", "all", "any", "var", "std", "linalg_vector_norm", "norm", "var_mean",
    "_is_all_true", "count_nonzero", "logsumexp",
)  # fmt: skip
_READS = {*POINTWISE, *MOVEMENT, *PARTS, *PIECES} - {"prelu", "_prelu_kernel"}
_FILLED = (
    "full", "full_like", "new_full", "scalar_tensor", "zeros", "zeros_like", "new_zeros", "ones", "ones_like",
    "new_ones", "empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted", "copy",
    "copy_", "fill",
)  # fmt: skip

FORMS: dict[str, Form] = {
    **{name: Form(RULES[name]) for name in _READS},
    **{name: Form(CREATION[name]) for name in _FILLED},
    **{name: Form(RULES[name], in_any_order=(0, 1)) for name in _SUMS},
    **{name: Form(RULES[name], in_any_order=(0,)) for name in ("max", "min", "median", "kthvalue")},
    **{name: Form(RULES[name]) for name in
       ("argmax", "argmin", "cumsum", "cumprod", "logcumsumexp", "cummax", "cummin")},
    **dict.fromkeys(("sort",), Form(RULES["sort"], (0,), _along(1, "dim", -1))),
    **dict.fromkeys(("argsort",), Form(RULES["sort"], (), _along(1, "dim", -1))),
    "topk": Form(RULES["topk"], (0,), _along(2, "dim", -1)),
    **dict.fromkeys(("softmax", "_softmax", "_safe_softmax", "log_softmax", "_log_softmax"), Form(softmax, (0,))),
    **dict.fromkeys(("layer_norm", "native_layer_norm", "rms_norm"), Form(layer_norm, (0, 1, 2))),
    **dict.fromkeys(("scatter", "scatter_add", "scatter_reduce"), Form(RULES["scatter"], by_index=_written)),
    **dict.fromkeys(("conv1d", "conv2d", "conv3d", "convolution"),
                    Form(RULES["conv1d"], by_index=_after_the_first, others_are_whole=True)),
    **dict.fromkeys(("batch_norm", "_native_batch_norm_legit_no_training"),
                    Form(RULES["batch_norm"], by_index=_channels, others_are_whole=True)),
    "scaled_dot_product_attention": Form(attention, (0,)),
    **dict.fromkeys(LOOKUP, Form(lookup)),
    "group_norm": Form(group_norm, (0,)),
    "roll": Form(RULES["roll"], by_index=_rolled),
}  # fmt: skip
