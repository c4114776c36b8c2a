"""Steps of a certificate as typed objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orderproof_recheck.dtypes import expected_dtype
from orderproof_recheck.facts import FLOATS, INTEGER_LIMITS, Fact, read_fact
from orderproof_recheck.limits import OF_A_RUN
from orderproof_recheck.logic.notation import is_integer, read_term, require
from orderproof_recheck.logic.terms import Variable
from orderproof_recheck.setting import Inside, Setting
from orderproof_recheck.statements import BATCH, TOKENS
from orderproof_recheck.steps import Step

Facts = Fact | list[Fact] | Inside
OPEN = BATCH.variables | TOKENS.variables  # in the sizes of tensors
STEP_FIELDS = {"node", "operator", "args", "kwargs", "shape", "dtype", "fact", "needs"}
BOOLEAN = frozenset({
    "eq", "ne", "lt", "le", "gt", "ge", "logical_not", "logical_and", "logical_or", "logical_xor", "all", "any",
    "isnan", "isinf", "signbit", "isfinite", "isposinf", "isneginf", "_is_all_true",
})  # fmt: skip
INDICES = frozenset({
    "max", "min", "sort", "topk", "argmax", "argmin", "argsort", "cummax", "cummin", "kthvalue", "count_nonzero",
    "median", "nanmedian", "mode", "max_pool1d_with_indices", "max_pool2d_with_indices", "max_pool3d_with_indices",
    "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d",
})  # fmt: skip
FREE = frozenset({"arange", "full", "zeros", "ones", "empty", "full_like", "zeros_like", "ones_like", "new_full",
                  "new_zeros", "new_ones", "scalar_tensor"})  # fmt: skip


class Dtype(str):
    """A dtype among the arguments."""

    __slots__ = ()


class Opaque(str):
    """An argument of which nothing is known: a number that is computed from sizes, a device, a layout."""

    __slots__ = ()


OF_MATRICES = {"linalg_inv_ex", "linalg_cholesky_ex", "_linalg_slogdet", "_linalg_det"}  # and what torch found out


def nodes_in(arguments: Any) -> Iterator[str]:
    """The names of the nodes among arguments."""
    if isinstance(arguments, list):
        for x in arguments:
            yield from nodes_in(x)
    elif isinstance(arguments, dict):
        if set(arguments) == {"node"}:
            yield str(arguments["node"])


def step_nodes(step: Mapping[str, Any]) -> list[str]:
    """The names of the operands of a step."""
    return [*nodes_in(step["args"]), *(n for v in step["kwargs"].values() for n in nodes_in(v))]


def decoded(argument: Any, facts: Mapping[str, Facts], symbols: frozenset[Variable] = frozenset()) -> Any:
    """An argument with facts in place of nodes; `symbols` may occur in sizes. Raises `CertificateError`."""
    if isinstance(argument, list):
        return [decoded(x, facts, symbols) for x in argument]
    if isinstance(argument, dict):
        ((kind, content),) = argument.items()
        if kind == "node":
            require(content in facts, "it reads a node that no earlier step has")
            require(not isinstance(facts[content], Inside), "it reads a step of a loop that has ended")
            return facts[content]
        if kind == "size":
            size = read_term(content)
            require(size.variables <= OPEN | symbols and not size.functions, "a size is no number of rows or tokens")
            return size
        if kind == "float":
            return float(content)
        require(kind in ("dtype", "other") and isinstance(content, str), "an argument is of an unknown kind")
        return Dtype(content) if kind == "dtype" else Opaque(content)
    is_plain = argument is None or isinstance(argument, bool | float | str) or is_integer(argument)
    require(is_plain, "an argument is of an unknown kind")
    return argument


def read_step(data: Mapping[str, Any], facts: Mapping[str, Facts], setting: Setting) -> Step:
    """A step with its claims. Raises `CertificateError`."""
    require(set(data) == STEP_FIELDS, "a step has other fields")
    require(isinstance(data["node"], str) and isinstance(data["operator"], str), "its name is no text")
    require(not data["node"].endswith(OF_A_RUN), "its name is that of a function of one run")
    several = isinstance(data["fact"], list)
    claims = data["fact"] if several else [data["fact"]]
    require(len(claims) == len(data["dtype"]) == len(data["shape"]) > 0, "it has another number of results")
    symbols = frozenset().union(*(index.variables for index in setting.loop_indices))
    step = Step(
        setting,
        data["node"],
        data["operator"],
        [decoded(x, facts, symbols) for x in data["args"]],
        {name: decoded(x, facts, symbols) for name, x in data["kwargs"].items()},
        [tuple(map(read_term, shape)) for shape in data["shape"]],
        [read_fact(claim, dtype) for claim, dtype in zip(claims, data["dtype"], strict=True)],
    )
    for place, claim in enumerate(step.claims):
        _check_dtype(step, claim.dtype, place)
    return step


def _check_dtype(step: Step, dtype: str, place: int) -> None:
    """The dtype of a result is that of an argument, or follows from the operator."""
    stated = [x for x in (*step.args, *step.kwargs.values()) if isinstance(x, Dtype)]
    require(stated or not step.operator.startswith(("aten.to.dtype", "aten.to.device")), "a conversion without a dtype")
    if stated and place == 0:
        require(dtype == stated[0], "its dtype is not the one among its arguments")
        return
    expected = expected_dtype(step.name, step.args, step.kwargs) if step.operator.startswith("aten.") else None
    require(expected in (None, dtype), "its dtype is another than that of its operands")
    own = [f.dtype for f in _facts([*step.args, *step.kwargs.values()])]
    if step.name in BOOLEAN:
        require(dtype == "bool", "its dtype is not bool")
    elif step.name in ("embedding", "index", "index_select", "gather", "scaled_dot_product_attention"):
        require(dtype == own[0], "its dtype is not that of its operand")
    elif step.name in ("bucketize", "searchsorted"):
        require(dtype == ("int32" if step.kwargs.get("out_int32") is True else "int64"), "its dtype is no index")
    elif step.name == "where":  # of two numbers, it is none of its operands'
        require(dtype in (expected, *own), "its dtype is not that of its operand")
    elif not _is_checked_elsewhere(step.operator) and step.name not in FREE:
        counts = dtype == "int64" and (
            (step.name in INDICES and (place or "arg" in step.name or "count" in step.name))
            or (step.name in ("sum", "cumsum", "prod") and own[0] in ("bool", *INTEGER_LIMITS))
        )
        counts = counts or (step.name in OF_MATRICES and bool(place) and dtype == "int32")
        literals = [x for x in step.args if isinstance(x, float)]
        promoted = dtype in FLOATS and (bool(literals) or all(d not in FLOATS for d in own))
        promoted = promoted or (dtype in INTEGER_LIMITS and all(d == "bool" for d in own))
        require(
            dtype in own or counts or promoted or "complex" in " ".join([dtype, *own]),
            "its dtype is none of its operands'",
        )


def _is_checked_elsewhere(operator: str) -> bool:
    """True of operators whose results get their dtypes from tensors that are no arguments."""
    return operator in ("input", "parameter", "buffer", "getitem") or operator.startswith("loop.")


def _facts(arguments: Sequence[Any]) -> Iterator[Fact]:
    for x in arguments:
        if isinstance(x, Fact):
            yield x
        elif isinstance(x, list):
            yield from _facts(x)
