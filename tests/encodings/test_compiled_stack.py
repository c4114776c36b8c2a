"""A compiled stack of layers computes its angles once, not once a layer; results and gradients are the eager ones."""

from __future__ import annotations

import copy
from collections.abc import Callable
from itertools import chain

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.exc import BackendCompilerFailed
from torch._functorch.aot_autograd import make_boxed_func
from torch._functorch.partitioners import min_cut_rematerialization_partition

from orderproof import attention, positions
from orderproof.encodings import MRope, PositionalEncoding, Rotary, schedules

HEADS, HEAD_WIDTH = 2, 8
WIDTH = HEADS * HEAD_WIDTH
ENCODINGS: dict[str, Callable[[], PositionalEncoding]] = {
    "half": lambda: Rotary(HEAD_WIDTH),
    "interleaved": lambda: Rotary(HEAD_WIDTH, layout="interleaved"),
    "yarn": lambda: Rotary(HEAD_WIDTH, schedule=schedules.Yarn(factor=4.0, original=16)),
    "several axes": lambda: MRope(HEAD_WIDTH, sections=(2, 1, 1)),
}
one_axis_and_several = pytest.mark.parametrize("name", ["interleaved", "several axes"])
# torch imports its own deprecated decorator with its decompositions.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning")]


class Layer(nn.Module):
    """Attention as a user writes it, with an encoding of its own."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.encoding = ENCODINGS[name]()

    def forward(self, x: Tensor, p: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, HEADS, HEAD_WIDTH)).permute(2, 0, 3, 1, 4).unbind(0)
        mixed = attention(q, k, v, encoding=self.encoding, q_positions=p, causal=True)
        return x + self.out(mixed.transpose(1, 2).flatten(2))


class Stack(nn.Module):
    """Layers one after the other."""

    def __init__(self, name: str, depth: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList(Layer(name) for _ in range(depth))

    def forward(self, x: Tensor, p: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x, p)
        return x


def inputs(name: str, tokens: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    x = torch.randn(2, tokens, WIDTH, dtype=dtype, generator=torch.Generator().manual_seed(tokens))
    p = positions.offset(100_000, tokens)
    return x, torch.stack([p, p // 3, p // 5]) if name == "several axes" else p


def graphs_of(stack: nn.Module, given: tuple[Tensor, Tensor], *, train: bool) -> list[torch.fx.GraphModule]:
    """The graphs of ATen operators that a compiler receives."""
    torch.compiler.reset()
    graphs = []

    def keep(graph: torch.fx.GraphModule, _: list[Tensor]) -> Callable[..., object]:
        graphs.append(graph)
        return make_boxed_func(graph.forward)

    backend = aot_autograd(fw_compiler=keep, bw_compiler=keep, partition_fn=min_cut_rematerialization_partition)
    with torch.set_grad_enabled(train):
        y = torch.compile(stack, backend=backend, fullgraph=True)(*given)
        if train:
            y.sum().backward()
    return graphs


def calls(graphs: list[torch.fx.GraphModule], operator: str) -> list[torch.fx.Node]:
    return [node for graph in graphs for node in graph.graph.nodes if str(node.target).startswith(f"aten.{operator}.")]


@pytest.mark.parametrize(("name", "copied"), [("half", False), ("yarn", True)], ids=["built", "copied"])
def test_a_training_graph_has_one_cosine_for_all_layers(name: str, copied: bool) -> None:
    stack = Stack(name, 2).double()
    if copied:
        stack = copy.deepcopy(stack)
    graphs = graphs_of(stack, inputs(name, 5), train=True)
    counts = [[len(calls([graph], operator)) for operator in ("cos", "sin")] for graph in graphs]
    assert counts == [[1, 1], [1, 1]]  # the backward graph computes them again instead of keeping them


@one_axis_and_several
def test_queries_and_keys_share_their_cosine_and_layers_their_frequencies(name: str) -> None:
    graphs = graphs_of(Stack(name, 3).double(), inputs(name, 5), train=False)
    assert len(calls(graphs, "cos")) == 3  # no compiler pass of torch merges equal nodes before code generation
    pairs = (HEAD_WIDTH // 2,)
    given = [node for node in graphs[0].graph.nodes if node.op == "placeholder" and node.meta["val"].shape == pairs]
    assert len(given) == 1


class CodeRead(Exception):
    """The code is known; it need not be compiled."""


def test_inductor_writes_at_most_two_cosines_for_all_layers_and_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor import config
    from torch._inductor.graph import GraphLowering

    codes = []

    def read(code: str) -> None:
        codes.append(code)
        raise CodeRead

    monkeypatch.setattr(GraphLowering, "save_output_code", staticmethod(read))
    torch.compiler.reset()
    compiled = torch.compile(Stack("half", 3).bfloat16(), fullgraph=True)
    # Without vector instructions no C++ compiler is called.
    no_vectors = config.patch({"cpp.simdlen": 1, "fx_graph_cache": False})
    with no_vectors, torch.no_grad(), pytest.raises(BackendCompilerFailed, match="CodeRead"):
        compiled(*inputs("half", 5, torch.bfloat16))
    # The first layer's may be fused with its rotation; one loop stores those of the others.
    assert codes[-1].count("std::cos(") <= 2


@pytest.mark.parametrize("name", ["interleaved", pytest.param("several axes", marks=pytest.mark.slow)])
def test_results_and_gradients_are_the_eager_ones_at_any_length(name: str) -> None:
    torch.compiler.reset()
    stack = Stack(name, 2).double()
    compiled = torch.compile(stack, backend="aot_eager_decomp_partition", fullgraph=True, dynamic=True)
    for tokens in (4, 9):
        x, p = inputs(name, tokens)
        x.requires_grad_()
        found, expected = (
            torch.autograd.grad(f(x, p).square().sum(), (x, *stack.parameters())) for f in (compiled, stack)
        )
        assert torch.allclose(compiled(x, p), stack(x, p), rtol=1e-11, atol=1e-11)
        for one, other in zip(found, expected, strict=True):
            assert torch.allclose(one, other, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32], ids=str)
@pytest.mark.parametrize("layout", ["half", "interleaved"])
def test_compiled_rotations_are_rounded_once(layout: str, dtype: torch.dtype) -> None:
    torch.compiler.reset()
    rotary = Rotary(64, layout=layout)  # type: ignore[arg-type]
    q, k = torch.randn(2, 1, 4, 9, 64, generator=torch.Generator().manual_seed(1)).to(dtype)
    p = positions.offset(131_063, 9)
    compiled = torch.compile(rotary.rotate, backend="aot_eager", fullgraph=True)
    exact = rotary.rotate(q.double(), k.double(), p)
    for found, x in zip(chain(compiled(q, k, p), rotary.rotate(q, k, p)), (*exact, *exact), strict=True):
        # Half a unit in the last place of the result, and the rounding of products in float32.
        unit = torch.finfo(dtype).eps * torch.exp2(torch.floor(torch.log2(x.abs().clamp(min=torch.finfo(dtype).tiny))))
        assert found.dtype == dtype
        assert bool(((found.double() - x).abs() <= unit / 2 + 2e-6).all())
