"""Operators with graphs of their own, written out: what is left is a plain graph, and needs no lemma of its own.

    cond         both branches, and `where` on the condition: the one that is not taken counts for nothing
    scan         as many copies of the step as the scanned dimension is long, stacked
    map          the body on each slice; where torch can write it for all slices at once, that
    while_loop   copies of the body, where how often it runs follows from numbers in the graph alone
    flex         softmax(mask(score(Q K^T / s))) V, its two functions written for every pair of places

Torch itself writes out the rest (`set_grad_enabled`, autocast, checkpoints, associative scans). What is not of these
forms stays as it is, and the walk says so. Flex attention is that of its uncompiled form, in which the blocks of
a mask are not looked at: they are to agree with its function, as `create_block_mask` makes them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import Graph, GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx

from orderproof.prover.constants import is_arbitrary

MOST_NODES = 20_000  # of one operator, written out
MOST_TURNS = 256
DEPTH = 8  # graphs within graphs
_ATEN = torch.ops.aten


class _StaysWhole(Exception):
    """An operator that is not of a form that can be written out."""


def written_out(program: Any, decompositions: dict[Any, Any]) -> Any:
    """An exported program without such operators, as far as that goes; one whose sizes are left open keeps them.

    `decompositions`: how to take apart the operators that turn up, as `run_decompositions` wants it.
    """
    for _ in range(DEPTH):
        if not any(_is_nested(n) for n in program.graph.nodes):
            break
        if not _pass(program):
            break
        program = program.run_decompositions(decompositions)
    return program


def _is_nested(node: Node) -> bool:
    return node.op == "call_function" and isinstance(node.target, torch._ops.HigherOrderOperator)


def _pass(program: Any) -> bool:
    """Write out every operator that can be; whether there was one."""
    module = program.graph_module
    held = {
        spec.arg.name: program.constants.get(spec.target)
        for spec in program.graph_signature.input_specs
        if spec.kind.name == "CONSTANT_TENSOR"
    }
    found = False
    for node in list(module.graph.nodes):
        if not _is_nested(node) or node.target.name() not in _WAYS:
            continue
        before = set(module.graph.nodes)
        work = _Work(module, node, held)
        try:
            with module.graph.inserting_before(node):
                results = _WAYS[node.target.name()](work)
                _replace(node, results)
            found = True
        except (_StaysWhole, RuntimeError, TypeError, ValueError, IndexError, KeyError, AttributeError):
            for made in reversed([n for n in module.graph.nodes if n not in before]):
                module.graph.erase_node(made)
    if found:
        for node in module.graph.nodes:  # what is written out may lie otherwise in memory
            if node.target is _ATEN.view.default:
                node.target = _ATEN.reshape.default
        module.graph.eliminate_dead_code()
        module.delete_all_unused_submodules()
        module.recompile()
    return found


def _replace(node: Node, results: Sequence[Any]) -> None:
    """Have those who read a part of the operator's result read what it was written out as."""
    users = list(node.users)
    if any(u.target is not operator.getitem or u.args[1] >= len(results) for u in users):  # type: ignore[operator]
        raise _StaysWhole("its result is not read in parts")
    made = [results[u.args[1]] for u in users]  # type: ignore[index]
    if any(not isinstance(m, Node) for m in made):
        raise _StaysWhole("a part of its result is no tensor")
    for user, part in zip(users, made, strict=True):
        user.replace_all_uses_with(part)
        user.graph.erase_node(user)
    node.graph.erase_node(node)


class _Work:
    """One operator to be written out."""

    def __init__(self, module: GraphModule, node: Node, held: dict[str, Tensor | None]) -> None:
        self.module, self.node, self.held = module, node, held
        self.made = 0
        self._numbers: dict[Node, Any] = {}

    @property
    def graph(self) -> Graph:
        """The graph it stands in."""
        return self.module.graph

    def own(self, x: Any) -> GraphModule:
        """A graph that the operator runs."""
        found = getattr(self.module, str(x.target), None) if isinstance(x, Node) and x.op == "get_attr" else None
        if not isinstance(found, GraphModule):
            raise _StaysWhole("its graph is not there")
        return found

    def call(self, target: Any, *args: Any, **kwargs: Any) -> Node:
        """One more node."""
        self.made += 1
        if self.made > MOST_NODES:
            raise _StaysWhole("it is too long to be written out")
        made = self.graph.call_function(target, args, kwargs)
        return self._placed(made)

    def inline(self, inner: GraphModule, arguments: Sequence[Any]) -> list[Any]:
        """A copy of a graph on these arguments, and what it returns."""
        places = [n for n in inner.graph.nodes if n.op == "placeholder"]
        if len(places) != len(arguments):
            raise _StaysWhole("its graph takes another number of arguments")
        mapping: dict[Node, Any] = dict(zip(places, arguments, strict=True))
        for n in inner.graph.nodes:
            if n.op == "output":
                made = torch.fx.map_arg(n.args[0], mapping.__getitem__)
                return list(made) if isinstance(made, list | tuple) else [made]
            if n.op == "get_attr":
                mapping[n] = self._adopted(inner, n)
            elif n.op == "call_function":
                self.made += 1
                if self.made > MOST_NODES:
                    raise _StaysWhole("it is too long to be written out")
                mapping[n] = self._placed(self.graph.node_copy(n, mapping.__getitem__))
            elif n.op != "placeholder":
                raise _StaysWhole(f"its graph holds a {n.op}")
        raise _StaysWhole("its graph returns nothing")

    def _adopted(self, inner: GraphModule, n: Node) -> Node:
        """A graph within the graph, brought along."""
        held = getattr(inner, str(n.target))
        if not isinstance(held, GraphModule):
            raise _StaysWhole("its graph holds a tensor of its own")
        name = f"{self.node.name}_{n.target}"
        setattr(self.module, name, held)
        return self.graph.get_attr(name)

    def _placed(self, made: Node) -> Node:
        """The operator's own module and line, where the copy has none."""
        for key in ("nn_module_stack", "stack_trace"):
            if not made.meta.get(key) and key in self.node.meta:
                made.meta[key] = self.node.meta[key]
        return made

    def number(self, node: Any) -> Any:
        """The value of a node that follows from numbers in the graph alone."""
        if not isinstance(node, Node):
            return node
        if node not in self._numbers:
            if node.op == "placeholder":
                found = self.held.get(node.name)
            elif node.op == "call_function" and not _is_nested(node) and not is_arbitrary(node):
                args, kwargs = torch.fx.map_arg((node.args, node.kwargs), self.number)
                found = node.target(*args, **kwargs)  # type: ignore[operator]
            else:
                found = None
            if found is None:
                raise _StaysWhole("how often it runs depends on the data")
            self._numbers[node] = found
        return self._numbers[node]


def _value(x: Any) -> Tensor:
    value = x.meta.get("val") if isinstance(x, Node) else None
    if not isinstance(value, Tensor) or not all(isinstance(s, int) for s in value.shape):
        raise _StaysWhole("an argument is no tensor, or its size is left open")
    return value


def _cond(w: _Work) -> list[Any]:
    condition, yes, no, operands = w.node.args[:4]
    if not isinstance(condition, Node):
        return w.inline(w.own(yes if condition else no), operands)  # type: ignore[arg-type]
    test = _value(condition)
    if test.dtype is not torch.bool or test.numel() != 1:
        raise _StaysWhole("its condition is not one truth value")
    first, second = (w.inline(w.own(x), operands) for x in (yes, no))  # type: ignore[arg-type]
    if test.dim():
        condition = w.call(_ATEN.view.default, condition, [])
    for value in w.node.meta["val"]:
        if not isinstance(value, Tensor):
            raise _StaysWhole("a branch returns what is no tensor")
    return [w.call(_ATEN.where.self, condition, a, b) for a, b in zip(first, second, strict=True)]


def _scan(w: _Work) -> list[Any]:
    step, carried, scanned, rest = w.node.args[:4]
    carry, inner = list(carried), w.own(step)  # type: ignore[arg-type]
    lines: list[list[Any]] = []
    for k in range(_length(scanned)):
        slices = [w.call(_ATEN.select.int, x, 0, k) for x in scanned]  # type: ignore[union-attr]
        made = w.inline(inner, [*carry, *slices, *rest])  # type: ignore[misc]
        carry = made[: len(carry)]
        lines.append(made[len(carry) :])
    return [*carry, *_stacked(w, lines)]


def _map(w: _Work) -> list[Any]:
    body, mapped, rest = w.node.args[:3]
    inner, length = w.own(body), _length(mapped)
    try:
        along = (*(0 for _ in mapped), *(None for _ in rest))  # type: ignore[union-attr]
        together = _recorded(torch.vmap(inner, in_dims=along), [*map(_value, mapped), *map(_value, rest)])  # type: ignore[arg-type]
    except Exception:  # noqa: BLE001 - torch may refuse in any way; then it is written slice by slice
        lines = []
        for k in range(length):
            slices = [w.call(_ATEN.select.int, x, 0, k) for x in mapped]  # type: ignore[union-attr]
            lines.append(w.inline(inner, [*slices, *rest]))  # type: ignore[misc]
        return _stacked(w, lines)
    return w.inline(together, [*mapped, *rest])  # type: ignore[misc]


def _length(scanned: Any) -> int:
    lengths = {int(_value(x).shape[0]) for x in scanned}
    if len(lengths) != 1 or lengths == {0}:
        raise _StaysWhole("what it runs over has no one length")
    return lengths.pop()


def _stacked(w: _Work, lines: list[list[Any]]) -> list[Any]:
    return [
        None if parts[0] is None else w.call(_ATEN.stack.default, list(parts)) for parts in zip(*lines, strict=True)
    ]


def _while(w: _Work) -> list[Any]:
    test, body, carried, rest = w.node.args[:4]
    condition, inner, carry = w.own(test), w.own(body), list(carried)  # type: ignore[arg-type]
    for _ in range(MOST_TURNS):
        (going,) = w.inline(condition, [*carry, *rest])  # type: ignore[misc]
        if not bool(w.number(going)):
            return carry
        carry = w.inline(inner, [*carry, *rest])  # type: ignore[misc]
    raise _StaysWhole("it runs too often to be written out")


def _flex(w: _Work) -> list[Any]:
    query, key, value, score, block, scale = w.node.args[:6]
    for_score, for_mask = w.node.args[7:9]
    q, k = _value(query), _value(key)
    heads = q.shape[1] // k.shape[1]
    if heads > 1:
        key, value = (w.call(_ATEN.repeat_interleave.self_int, x, heads, 1) for x in (key, value))
    if q.shape[0] != k.shape[0]:
        wide = [q.shape[0], -1, -1, -1]
        key, value = (w.call(_ATEN.expand.default, x, wide) for x in (key, value))
    precise = torch.float64 if q.dtype is torch.float64 else torch.float32
    sizes = (*q.shape[:3], k.shape[2])
    left, right = (w.call(_ATEN.to.dtype, x, precise) for x in (query, key))
    scores = w.call(_ATEN.matmul.default, left, w.call(_ATEN.transpose.int, right, -2, -1))
    scores = w.call(_ATEN.mul.Tensor, scores, scale)
    places = [w.call(_ATEN.arange.default, s, device=q.device) for s in sizes]
    with FakeTensorMode():
        blank = [torch.empty(s, dtype=torch.int64, device=q.device) for s in sizes]
        table = torch.empty(sizes, dtype=precise, device=q.device)
    scored = _for_pairs(w.own(score), [table, *blank], for_score, first=True)
    seen = _for_pairs(w.own(block[-1]), blank, for_mask, first=False)  # type: ignore[index]
    (changed,) = w.inline(scored, [scores, *places, *for_score])  # type: ignore[misc]
    (visible,) = w.inline(seen, [*places, *for_mask])  # type: ignore[misc]
    hidden = w.call(_ATEN.scalar_tensor.default, -torch.inf, dtype=precise, device=q.device)
    weights = w.call(_ATEN._safe_softmax.default, w.call(_ATEN.where.self, visible, changed, hidden), -1)
    weights = w.call(_ATEN.to.dtype, weights, q.dtype)
    return [w.call(_ATEN.matmul.default, weights, w.call(_ATEN.to.dtype, value, q.dtype))]


def _for_pairs(inner: GraphModule, given: list[Tensor], others: Any, *, first: bool) -> GraphModule:
    """A function of a score and four places, or of these alone, for every batch, head, query and key at once."""
    lead, rest = ((0,) if first else ()), (None,) * len(others)
    made: Callable[..., Any] = inner
    # The innermost runs over keys; each level takes the first dimension of the scores, and of one of the places.
    for place in (3, 2, 1, 0):
        own = [None] * 4
        own[place] = 0  # type: ignore[call-overload]
        made = torch.vmap(made, in_dims=(*lead, *own, *rest))
    return _recorded(made, [*given, *map(_value, others)])


def _recorded(function: Callable[..., Any], given: Sequence[Tensor]) -> GraphModule:
    """The graph of a function of tensors, of which only the shapes count."""
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        blank = [torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=x.device) for x in given]
    with mode:
        made: GraphModule = make_fx(function, tracing_mode="fake")(*blank)
    return made


_WAYS: dict[str, Callable[[_Work], list[Any]]] = {
    "cond": _cond,
    "scan": _scan,
    "map_impl": _map,
    "while_loop": _while,
    "flex_attention": _flex,
}
