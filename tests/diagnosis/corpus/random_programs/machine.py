"""Small random programs: a list of operations, each a name and four numbers, interpreted as a module.

Every list is a program: an operation that does not fit the values made so far is left out. So a failing program
shrinks to the few operations that matter.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.fx.experimental.proxy_tensor import make_fx

from orderproof.recording.captured_graph import CapturedGraph
from tests.diagnosis.corpus.random_programs import elementwise, movement, products, reductions
from tests.diagnosis.corpus.random_programs.values import (
    BATCH,
    ERRORS,
    LARGEST,
    OPERATIONS,
    SHAPES,
    TOKENS,
    WIDTH,
    Env,
    Operation,
    Skip,
    Value,
    symmetric_or_not,
)

REGISTERED = (elementwise, movement, products, reductions)  # importing them adds their operations


class Machine(nn.Module):
    """A program as a module. Its parameters: for each shape one that starts at zero and one that does not."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        for k, shape in enumerate(SHAPES):
            self.register_parameter(f"zero{k}", nn.Parameter(torch.zeros(shape)))
            self.register_parameter(f"drawn{k}", nn.Parameter(torch.randn(shape, generator=generator)))
        for k in range(12):
            self.register_buffer(f"buffer{k}", symmetric_or_not(k))
        self.square = nn.Parameter(torch.randn(WIDTH, WIDTH, generator=generator))
        self.across = nn.Parameter(torch.randn(TOKENS, TOKENS, generator=generator))
        self.table = nn.Parameter(torch.randn(TOKENS, WIDTH, generator=generator))
        self.kernel = nn.Parameter(torch.randn(WIDTH, WIDTH, 3, generator=generator))
        self.operations: list[Operation] = []
        env = Env(torch.linspace(-2, 2, BATCH * TOKENS * WIDTH).view(BATCH, TOKENS, WIDTH).sin(), self)
        with torch.no_grad():
            for each in operations:
                if run_one(env, each):
                    self.operations.append(each)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        env = Env(x, self)
        for each in self.operations:
            run_one(env, each)
        return tuple(v.tensor for v in env.values[1:]) or (x * 1.0,)


def recorded(module: Machine) -> CapturedGraph:
    """The module's graph, at the level `capture` gives and a dozen times sooner."""
    stored = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    values = {name: value.detach() for name, value in stored.items()}

    def function(x: Tensor, *rest: Tensor) -> tuple[Tensor, ...]:
        return torch.func.functional_call(module, dict(zip(values, rest, strict=True)), (x,))

    with torch.no_grad():
        made = make_fx(function, tracing_mode="fake", pre_dispatch=True, _allow_non_fake_inputs=True)(
            torch.zeros(BATCH, TOKENS, WIDTH), *values.values()
        )
    start, *places = [n for n in made.graph.nodes if n.op == "placeholder"]
    state = {n.name: name for n, name in zip(places, values, strict=True)}
    for node in [n for n in made.graph.nodes if n.op == "get_attr"]:
        with made.graph.inserting_before(start.next):
            place = made.graph.placeholder(node.name + "_value")
        place.meta["val"] = node.meta["val"]
        state[place.name] = str(node.target)
        values[str(node.target)] = getattr(made, str(node.target))
        node.replace_all_uses_with(place)
        made.graph.erase_node(node)
    made.graph.eliminate_dead_code()
    results = next(n for n in made.graph.nodes if n.op == "output").args[0]
    return CapturedGraph(
        graph=made.graph,
        inputs=(start,),
        outputs={f"output.{k}": n for k, n in enumerate(dict.fromkeys(results)) if n is not start},
        state=state,
        parameters=frozenset(dict(module.named_parameters())),
        values=values,
    )


def run_one(env: Env, each: Operation) -> bool:
    """Add the operation's value; whether it fitted."""
    try:
        made = OPERATIONS[each[0]](env, *each[1:])
    except (Skip, *ERRORS):
        return False
    value = made if isinstance(made, Value) else Value(made)
    if value.tensor.numel() > LARGEST or value.tensor.dim() > 5 or value.tensor.numel() == 0:
        return False
    env.values.append(value)
    return True
