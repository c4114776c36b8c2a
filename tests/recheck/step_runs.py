"""Run the steps of a certificate in float64, to decide whether a step is false without the rechecker."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from orderproof.auditing.record.context import AuditContext
from tests.recheck.certificates import Certificate


def execute(context: AuditContext, made: Certificate, tokens: tuple[torch.Tensor, ...]) -> dict[str, Any]:
    """Every step's value on these inputs in float64, from the certificate's own graph and its own stored values."""
    inputs = dict(zip(made["inputs"], tokens, strict=True))
    values: dict[str, Any] = {}
    for step in made["steps"]:
        if step["operator"] in ("parameter", "buffer"):
            name = step["args"][0]
            values[step["node"]] = wide(stored(made, name) if name in made["values"] else context.captured.values[name])
        elif step["operator"] == "input":
            values[step["node"]] = wide(inputs[step["node"]])
        else:
            values[step["node"]] = run_step(step, values)
    return values


def stored(made: Certificate, name: str) -> torch.Tensor:
    data = made["values"][name]
    return torch.from_numpy(array(data)).to(getattr(torch, data["dtype"])).expand(data["shape"])


def wide(x: Any) -> Any:
    """The same in float64."""
    if isinstance(x, torch.Tensor):
        return x.double() if x.is_floating_point() else x
    if isinstance(x, list | tuple):
        return [wide(y) for y in x]
    return torch.float64 if isinstance(x, torch.dtype) and x.is_floating_point else x


def run_step(step: dict[str, Any], values: dict[str, Any]) -> Any:
    def filled(x: Any) -> Any:
        if isinstance(x, list):
            return [filled(y) for y in x]
        if not isinstance(x, dict):
            return x
        kind, name = next(iter(x.items()))
        if kind == "float":
            return float(name)
        if kind == "device":
            return torch.device("cpu")
        return values[name] if kind == "node" else wide(getattr(torch, name.removeprefix("torch.")))

    args, kwargs = filled(step["args"]), {k: filled(v) for k, v in step["kwargs"].items()}
    if step["operator"] == "getitem":
        return args[0][args[1]]
    space, name, overload = step["operator"].split(".")
    assert space == "aten"
    if name == "_unsafe_view":  # a step speaks of values, not of how they lie in memory
        args[0] = args[0].contiguous()
    with torch.no_grad():
        return wide(getattr(getattr(torch.ops.aten, name), overload)(*args, **kwargs))


Runs = tuple[dict[str, Any], list[tuple[int, int, dict[str, Any]]]]


def runs(context: AuditContext, made: Certificate) -> Runs:
    """The first run, and each second one with its generator and case."""
    first = context.subject.sample(context.length, 1).inputs
    second = context.subject.sample(context.length, 2).inputs
    axes, relation = list(made["inputs"].values()), made["relation"]
    changed: list[tuple[int, int, tuple[torch.Tensor, ...]]] = []
    for g, p in enumerate(relation["generators"]):
        back, moved = torch.tensor(np.argsort(p)), list(first)
        for k, axis in enumerate(axes):
            for a in axis if isinstance(axis, list) else [] if axis is None else [axis]:
                moved[k] = moved[k].index_select(a, back)
        changed.append((g, 0, tuple(moved)))
    slots = [(cut, torch.arange(relation["tokens"])[None] >= cut) for cut in range(relation["tokens"])]
    if "replaced" in relation:
        slots = [(0, torch.tensor(relation["replaced"]) == 1)]
    for case, new in slots if made["family"] == "independence" else []:
        pairs = zip(first, second, axes, strict=True)
        changed.append((0, case, tuple(x if a is None else replaced(x, y, new, a) for x, y, a in pairs)))
    found = [(g, case, execute(context, made, inputs)) for g, case, inputs in changed]
    return execute(context, made, first), found


def replaced(x: torch.Tensor, y: torch.Tensor, new: torch.Tensor, axis: int) -> torch.Tensor:
    """The first with the slots [row, token] of the second."""
    shape = [1] * x.dim()
    shape[0], shape[axis] = len(new), x.shape[axis]
    return torch.where(new.reshape(shape), y, x)


def array(data: Any) -> np.ndarray:
    number = lambda x: float(x["float"]) if isinstance(x, dict) else x  # noqa: E731
    return np.repeat([number(v) for v, _ in data["runs"]], [c for _, c in data["runs"]]).reshape(data["shape"])


def interval(fact: dict[str, Any], rank: int) -> list[np.ndarray]:
    """Both ends of the values of a fact."""
    if fact["values"] is None:
        return [np.full((1,) * rank, end) for end in (-1.0, 1.0)]
    return [array(fact["values"][end]).astype(float) for end in ("low", "high")]


def coded(values: np.ndarray) -> dict[str, Any]:
    number = lambda x: {"float": str(x)} if isinstance(x, float) and not math.isfinite(x) else x  # noqa: E731
    return {"shape": list(values.shape), "runs": [[number(v), 1] for v in values.reshape(-1).tolist()]}


def contradicted(step: dict[str, Any], both: Runs) -> bool:
    """True if runs contradict the fact of a step."""
    first, seconds = both
    try:
        a = run_step(step, first)
        others = [(g, case, run_step(step, values)) for g, case, values in seconds]
    except (RuntimeError, TypeError, ValueError, IndexError, KeyError):
        return True  # it cannot even be run
    fact = step["fact"]
    if not isinstance(fact, list):
        return _one_contradicted(fact, step["shape"], step["dtype"], a, others)
    if isinstance(a, torch.Tensor) or len(a) != len(fact):
        return True
    parts = zip(fact, step["shape"], step["dtype"], strict=True)
    return any(
        _one_contradicted(f, s, d, a[k], [(g, c, b[k]) for g, c, b in others]) for k, (f, s, d) in enumerate(parts)
    )


def _one_contradicted(fact: Any, shape: list[int], dtype: str, a: Any, others: Any) -> bool:
    if not isinstance(a, torch.Tensor) or list(a.shape) != shape:
        return True
    if a.is_floating_point() != ("float" in dtype) or not (a.is_floating_point() or str(a.dtype) == f"torch.{dtype}"):
        return True
    x = a.double().numpy()
    for d, move in enumerate(fact["moves"]):
        if move == "uniform" and not close(x, np.broadcast_to(x.take([0], d), x.shape)).all():
            return True
    low, high = (np.broadcast_to(end, x.shape) for end in interval(fact, x.ndim))
    if not close(x, low, 1e-5)[low == high].all() or (np.isneginf(x) & ~np.isneginf(low)).any():
        return True
    level = np.broadcast_to(array(fact["dependence"]), x.shape)
    for g, case, b in others:
        image = b.double().numpy()
        for d, move in enumerate(fact["moves"]):
            if isinstance(move, list):
                image = image.take(move[g], d)
        if not close(x, image)[level < case].all():
            return True
    return False


def close(x: np.ndarray, y: np.ndarray, tolerance: float = 1e-8) -> np.ndarray:
    return np.isclose(x, y, rtol=tolerance, atol=tolerance, equal_nan=True)
