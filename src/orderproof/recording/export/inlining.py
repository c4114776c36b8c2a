"""Inline higher-order operators: the result is a plain graph, for which the lemmas of its operators suffice.

    cond         both branches, and `where` on the condition
    scan         one copy of the step for each index of the scanned dimension, stacked
    map          the body for all slices at once (vmap), or one copy for each slice if vmap refuses it
    while_loop   copies of the body, if the number of iterations follows from constants of the graph
    flex         softmax(mask(score(Q K^T / s))) V, its two functions evaluated for every pair of positions

torch inlines the rest itself (`set_grad_enabled`, autocast, checkpoints, associative scans). An operator that cannot be
inlined remains with the reason in its metadata, and the analysis concludes nothing about it. Flex attention is inlined
as its uncompiled form, which ignores the block structure of a mask: the blocks must agree with the mask function, as
those of `create_block_mask` do.
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

from orderproof.errors import first_line
from orderproof.recording.nondeterminism import is_nondeterministic

MAX_INLINED_NODES = 20_000  # of one operator
MAX_LOOP_ITERATIONS = 256
NOT_INLINED = "orderproof_not_inlined"  # key of node.meta: why a higher-order operator remains
MAX_NESTING_DEPTH = 8  # graphs within graphs
_ATEN = torch.ops.aten


class _NotInlinable(Exception):
    """A higher-order operator of a form that cannot be inlined; the message is the reason."""


def inline_higher_order_ops(program: Any, decompositions: dict[Any, Any]) -> Any:
    """An exported program with its higher-order operators inlined, except those with symbolic sizes.

    `decompositions`: for the inlined operators, as in `run_decompositions`.
    """
    for _ in range(MAX_NESTING_DEPTH):
        if not any(_is_nested(n) for n in program.graph.nodes):
            break
        if not _inline_once(program):
            break
        program = program.run_decompositions(decompositions)
    return program


def _is_nested(node: Node) -> bool:
    return node.op == "call_function" and isinstance(node.target, torch._ops.HigherOrderOperator)


def _inline_once(program: Any) -> bool:
    """Inline every operator that can be inlined; True if there was one."""
    module = program.graph_module
    held = {
        spec.arg.name: program.constants.get(spec.target)
        for spec in program.graph_signature.input_specs
        if spec.kind.name == "CONSTANT_TENSOR"
    }
    found = False
    for node in list(module.graph.nodes):
        if not _is_nested(node) or node.target.name() not in _INLINERS:
            continue
        before = set(module.graph.nodes)
        work = _InliningSite(module, node, held)
        try:
            with module.graph.inserting_before(node):
                results = _INLINERS[node.target.name()](work)
                _replace(node, results)
            found = True
        except (_NotInlinable, RuntimeError, TypeError, ValueError, IndexError, KeyError, AttributeError) as error:
            known = isinstance(error, _NotInlinable)
            node.meta[NOT_INLINED] = str(error) if known else f"inlining it failed: {first_line(error)}"
            for added in reversed([n for n in module.graph.nodes if n not in before]):
                module.graph.erase_node(added)
    if found:
        for node in module.graph.nodes:  # inlined tensors may have other strides
            if node.target is _ATEN.view.default:
                node.target = _ATEN.reshape.default
        module.graph.eliminate_dead_code()
        module.delete_all_unused_submodules()
        module.recompile()
    return found


def _replace(node: Node, results: Sequence[Any]) -> None:
    """Replace the results of an operator by those of its inlined form."""
    users = list(node.users)
    if any(u.target is not operator.getitem or u.args[1] >= len(results) for u in users):  # type: ignore[operator]
        raise _NotInlinable("its result is not read by getitem")
    made = [results[u.args[1]] for u in users]  # type: ignore[index]
    if any(not isinstance(m, Node) for m in made):
        raise _NotInlinable("a part of its result is not a tensor")
    for user, part in zip(users, made, strict=True):
        user.replace_all_uses_with(part)
        user.graph.erase_node(user)
    node.graph.erase_node(node)


class _InliningSite:
    """One higher-order operator being inlined."""

    def __init__(self, module: GraphModule, node: Node, lifted_constants: dict[str, Tensor | None]) -> None:
        self.module, self.node, self.lifted_constants = module, node, lifted_constants
        self.node_count = 0
        self._constants: dict[Node, Any] = {}

    @property
    def graph(self) -> Graph:
        """The graph that contains the operator."""
        return self.module.graph

    def subgraph(self, x: Any) -> GraphModule:
        """A subgraph of the operator."""
        found = getattr(self.module, str(x.target), None) if isinstance(x, Node) and x.op == "get_attr" else None
        if not isinstance(found, GraphModule):
            raise _NotInlinable("its subgraph is missing")
        return found

    def call(self, target: Any, *args: Any, **kwargs: Any) -> Node:
        """Add a call to the graph."""
        self.node_count += 1
        if self.node_count > MAX_INLINED_NODES:
            raise _NotInlinable(f"it has more than {MAX_INLINED_NODES} nodes")
        made = self.graph.call_function(target, args, kwargs)
        return self._with_source_metadata(made)

    def inline(self, inner: GraphModule, arguments: Sequence[Any]) -> list[Any]:
        """A copy of a subgraph on these arguments; its outputs."""
        places = [n for n in inner.graph.nodes if n.op == "placeholder"]
        if len(places) != len(arguments):
            raise _NotInlinable("its subgraph takes another number of arguments")
        mapping: dict[Node, Any] = dict(zip(places, arguments, strict=True))
        for n in inner.graph.nodes:
            if n.op == "output":
                made = torch.fx.map_arg(n.args[0], mapping.__getitem__)
                return list(made) if isinstance(made, list | tuple) else [made]
            if n.op == "get_attr":
                mapping[n] = self._copy_subgraph(inner, n)
            elif n.op == "call_function":
                self.node_count += 1
                if self.node_count > MAX_INLINED_NODES:
                    raise _NotInlinable(f"it has more than {MAX_INLINED_NODES} nodes")
                mapping[n] = self._with_source_metadata(self.graph.node_copy(n, mapping.__getitem__))
            elif n.op != "placeholder":
                raise _NotInlinable(f"its subgraph has a node of kind {n.op}")
        raise _NotInlinable("its subgraph returns nothing")

    def _copy_subgraph(self, inner: GraphModule, n: Node) -> Node:
        """A nested subgraph, copied to the outer module."""
        held = getattr(inner, str(n.target))
        if not isinstance(held, GraphModule):
            raise _NotInlinable("its subgraph contains a tensor")
        name = f"{self.node.name}_{n.target}"
        setattr(self.module, name, held)
        return self.graph.get_attr(name)

    def _with_source_metadata(self, made: Node) -> Node:
        """The node, with module path and source line of the operator if it has none."""
        for key in ("nn_module_stack", "stack_trace"):
            if not made.meta.get(key) and key in self.node.meta:
                made.meta[key] = self.node.meta[key]
        return made

    def constant_value(self, node: Any) -> Any:
        """The value of a node that follows from constants of the graph."""
        if not isinstance(node, Node):
            return node
        if node not in self._constants:
            if node.op == "placeholder":
                found = self.lifted_constants.get(node.name)
            elif node.op == "call_function" and not _is_nested(node) and not is_nondeterministic(node):
                args, kwargs = torch.fx.map_arg((node.args, node.kwargs), self.constant_value)
                found = node.target(*args, **kwargs)  # type: ignore[operator]
            else:
                found = None
            if found is None:
                raise _NotInlinable("its number of iterations depends on the data")
            self._constants[node] = found
        return self._constants[node]


def _tensor_meta(x: Any) -> Tensor:
    value = x.meta.get("val") if isinstance(x, Node) else None
    if not isinstance(value, Tensor) or not all(isinstance(s, int) for s in value.shape):
        raise _NotInlinable("an argument is not a tensor, or has a symbolic size")
    return value


def _cond(w: _InliningSite) -> list[Any]:
    condition, yes, no, operands = w.node.args[:4]
    if not isinstance(condition, Node):
        return w.inline(w.subgraph(yes if condition else no), operands)  # type: ignore[arg-type]
    test = _tensor_meta(condition)
    if test.dtype is not torch.bool or test.numel() != 1:
        raise _NotInlinable("its condition is not one boolean")
    first, second = (w.inline(w.subgraph(x), operands) for x in (yes, no))  # type: ignore[arg-type]
    if test.dim():
        condition = w.call(_ATEN.view.default, condition, [])
    for value in w.node.meta["val"]:
        if not isinstance(value, Tensor):
            raise _NotInlinable("a branch returns something else than tensors")
    return [w.call(_ATEN.where.self, condition, a, b) for a, b in zip(first, second, strict=True)]


def _scan(w: _InliningSite) -> list[Any]:
    step, carried, scanned, rest = w.node.args[:4]
    carry, inner = list(carried), w.subgraph(step)  # type: ignore[arg-type]
    lines: list[list[Any]] = []
    for k in range(_length(scanned)):
        slices = [w.call(_ATEN.select.int, x, 0, k) for x in scanned]  # type: ignore[union-attr]
        made = w.inline(inner, [*carry, *slices, *rest])  # type: ignore[misc]
        carry = made[: len(carry)]
        lines.append(made[len(carry) :])
    return [*carry, *_stack_slices(w, lines)]


def _map(w: _InliningSite) -> list[Any]:
    body, mapped, rest = w.node.args[:3]
    inner, length = w.subgraph(body), _length(mapped)
    try:
        along = (*(0 for _ in mapped), *(None for _ in rest))  # type: ignore[union-attr]
        together = _trace(torch.vmap(inner, in_dims=along), [*map(_tensor_meta, mapped), *map(_tensor_meta, rest)])  # type: ignore[arg-type]
    except Exception:  # noqa: BLE001 - vmap may refuse with any exception: one copy for each slice
        lines = []
        for k in range(length):
            slices = [w.call(_ATEN.select.int, x, 0, k) for x in mapped]  # type: ignore[union-attr]
            lines.append(w.inline(inner, [*slices, *rest]))  # type: ignore[misc]
        return _stack_slices(w, lines)
    return w.inline(together, [*mapped, *rest])  # type: ignore[misc]


def _length(scanned: Any) -> int:
    lengths = {int(_tensor_meta(x).shape[0]) for x in scanned}
    if len(lengths) != 1 or lengths == {0}:
        raise _NotInlinable("its operands have different lengths, or length 0")
    return lengths.pop()


def _stack_slices(w: _InliningSite, lines: list[list[Any]]) -> list[Any]:
    return [
        None if parts[0] is None else w.call(_ATEN.stack.default, list(parts)) for parts in zip(*lines, strict=True)
    ]


def _while_loop(w: _InliningSite) -> list[Any]:
    test, body, carried, rest = w.node.args[:4]
    condition, inner, carry = w.subgraph(test), w.subgraph(body), list(carried)  # type: ignore[arg-type]
    for _ in range(MAX_LOOP_ITERATIONS):
        (condition_value,) = w.inline(condition, [*carry, *rest])  # type: ignore[misc]
        if not bool(w.constant_value(condition_value)):
            return carry
        carry = w.inline(inner, [*carry, *rest])  # type: ignore[misc]
    raise _NotInlinable(f"it runs more than {MAX_LOOP_ITERATIONS} iterations")


def _flex_attention(w: _InliningSite) -> list[Any]:
    query, key, value, score, block, scale = w.node.args[:6]
    for_score, for_mask = w.node.args[7:9]
    q, k = _tensor_meta(query), _tensor_meta(key)
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
    scored = _vmap_over_positions(w.subgraph(score), [table, *blank], for_score, first=True)
    seen = _vmap_over_positions(w.subgraph(block[-1]), blank, for_mask, first=False)  # type: ignore[index]
    (changed,) = w.inline(scored, [scores, *places, *for_score])  # type: ignore[misc]
    (visible,) = w.inline(seen, [*places, *for_mask])  # type: ignore[misc]
    hidden = w.call(_ATEN.scalar_tensor.default, -torch.inf, dtype=precise, device=q.device)
    weights = w.call(_ATEN._safe_softmax.default, w.call(_ATEN.where.self, visible, changed, hidden), -1)
    weights = w.call(_ATEN.to.dtype, weights, q.dtype)
    return [w.call(_ATEN.matmul.default, weights, w.call(_ATEN.to.dtype, value, q.dtype))]


def _vmap_over_positions(inner: GraphModule, leading: list[Tensor], others: Any, *, first: bool) -> GraphModule:
    """A score or mask function, vectorized over batch, head, query and key."""
    lead, rest = ((0,) if first else ()), (None,) * len(others)
    made: Callable[..., Any] = inner
    # The innermost vmap is over keys; each takes the first dimension of the scores and of one position array.
    for place in (3, 2, 1, 0):
        own = [None] * 4
        own[place] = 0  # type: ignore[call-overload]
        made = torch.vmap(made, in_dims=(*lead, *own, *rest))
    return _trace(made, [*leading, *map(_tensor_meta, others)])


def _trace(function: Callable[..., Any], examples: Sequence[Tensor]) -> GraphModule:
    """The graph of a function, traced on fake tensors of these shapes."""
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        blank = [torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=x.device) for x in examples]
    with mode:
        made: GraphModule = make_fx(function, tracing_mode="fake")(*blank)
    return made


_INLINERS: dict[str, Callable[[_InliningSite], list[Any]]] = {
    "cond": _cond,
    "scan": _scan,
    "map_impl": _map,
    "while_loop": _while_loop,
    "flex_attention": _flex_attention,
}
