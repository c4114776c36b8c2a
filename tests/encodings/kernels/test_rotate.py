"""The CPU kernel and the path through torch compute the same function."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys

import pytest
import torch
from torch import Tensor

from orderproof import positions
from orderproof.encodings import Rotary, Spectrum, kernels
from orderproof.encodings._rotary_base import RotaryBase
from orderproof.errors import EncodingError, PositionError
from tests.encodings.examples import exports, normal

needs_the_kernel = pytest.mark.skipif(
    not kernels.kernels_available(), reason="the package was built without a C compiler"
)
pytestmark = needs_the_kernel
LAYOUTS = pytest.mark.parametrize("layout", ["half", "interleaved"])
DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64, torch.float16])


def through_torch(rotation: RotaryBase, q: Tensor, k: Tensor, p: Tensor, s: Tensor | None = None) -> tuple[Tensor, ...]:
    other = copy.copy(rotation)
    other._plan = None
    return other.rotate(q, k, p, s)


def same(found: tuple[Tensor, ...], expected: tuple[Tensor, ...], *, far: int = 1000) -> None:
    """``far``: the largest position; its angle in float64 is exact to as many units in the last place of 1."""
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        if a.dtype == torch.float64:
            assert (a - b).abs().max() < 4 * far * torch.finfo(torch.float64).eps * float(b.abs().max())
        else:
            # Angles may differ in the last bit of float64, and so, rarely, in the rounding.
            assert (a != b).double().mean() < 1e-3
            assert torch.allclose(a.double(), b.double(), rtol=2 * torch.finfo(a.dtype).eps, atol=1e-6)


@LAYOUTS
@DTYPES
@pytest.mark.parametrize(
    ("width", "rotary_width"), [(128, None), (64, None), (8, None), (2, None), (20, 12), (129, 64)]
)
def test_it_gives_what_torch_gives(layout: str, dtype: torch.dtype, width: int, rotary_width: int | None) -> None:
    rotary = Rotary(width, layout=layout, rotary_width=rotary_width)
    q, k = normal(2, 6, 37, width, seed=1, dtype=dtype), normal(2, 3, 37, width, seed=2, dtype=dtype)
    for p in (positions.arange(37), positions.offset(torch.tensor([3, 1_000_003]), 37), positions.offset(2**21, 37)):
        same(rotary.rotate(q, k, p), through_torch(rotary, q, k, p), far=2**22)
    one = positions.offset(77, 1)
    same(rotary.rotate(q[:, :, :1], k[:, :, :1], one), through_torch(rotary, q[:, :, :1], k[:, :, :1], one))


@LAYOUTS
def test_keys_may_have_other_positions_and_another_length(layout: str) -> None:
    rotary = Rotary(16, layout=layout)
    q, k = normal(2, 4, 5, 16, seed=1, dtype=torch.float32), normal(2, 2, 9, 16, seed=2, dtype=torch.float32)
    p, s = positions.offset(torch.tensor([4, 9]), 5), positions.arange(9)
    same(rotary.rotate(q, k, p, s), through_torch(rotary, q, k, p, s))


@LAYOUTS
def test_several_axes_and_attention_scaling(layout: str) -> None:
    class Planes(RotaryBase):
        claims = Rotary.claims.__class__(site="rotate", relative=True, symmetric=False, ndim=2)

    spectrum = Spectrum(frequencies=(1.0, 0.3, 0.7, 0.01), attention_scaling=1.7)
    planes = Planes(8, spectrum, layout=layout, pair_axes=(0, 1, 1, 0))  # type: ignore[arg-type]
    q, k = normal(2, 3, 12, 8, seed=1, dtype=torch.float32), normal(2, 3, 12, 8, seed=2, dtype=torch.float32)
    grid = positions.grid(3, 4)
    rows = torch.stack([grid, grid + 2**20], dim=1)
    for p in (grid, rows):
        same(planes.rotate(q, k, p), through_torch(planes, q, k, p))


@DTYPES
@LAYOUTS
def test_strides_do_not_matter(dtype: torch.dtype, layout: str) -> None:
    rotary, p = Rotary(16, layout=layout), positions.arange(300)
    whole = normal(2, 300, 3, 48, dtype=dtype).transpose(1, 2)
    q, k = whole[..., 16:32], whole[..., ::3]
    same(rotary.rotate(q, k, p), through_torch(rotary, q, k, p))
    into = (torch.zeros_like(whole)[..., 8:24], torch.zeros_like(whole)[..., ::3])
    given = rotary.rotate(q, k, p, out=into)
    assert given[0] is into[0]
    same(given, through_torch(rotary, q, k, p))


@LAYOUTS
def test_it_may_write_over_its_input_and_next_to_it(layout: str) -> None:
    rotary, p = Rotary(8, layout=layout, rotary_width=4), positions.arange(9)
    q, k = normal(1, 2, 9, 8, seed=1, dtype=torch.float32), normal(1, 2, 9, 8, seed=2, dtype=torch.float32)
    expected = through_torch(rotary, q, k, p)
    place = (q.clone(), k.clone())
    rotary.rotate(*place, p, out=place)
    same(place, expected)
    room = torch.cat([q, q[:, :, :1]], dim=2)
    rotary.rotate(room[:, :, :9], k, p, out=(room[:, :, 1:], torch.empty_like(k)))
    same((room[:, :, 1:],), expected[:1])
    a, b = q.clone(), k.clone()
    same(rotary.rotate(a, b, p, out=(b, a)), expected)
    with pytest.raises(EncodingError, match="out must be a pair of buffers, for q and for k, got one twice"):
        rotary.rotate(a, b, p, out=(a, a))


def test_large_tensors_are_split_over_threads() -> None:
    rotary, p = Rotary(64), positions.arange(4099)
    q, k = normal(1, 9, 4099, 64, seed=1, dtype=torch.float32), normal(1, 5, 4099, 64, seed=2, dtype=torch.float32)
    threads = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        found = rotary.rotate(q, k, p)
    finally:
        torch.set_num_threads(threads)
    same(found, through_torch(rotary, q, k, p))


def test_bfloat16_is_the_rounded_result_of_float64() -> None:
    rotary, p = Rotary(128), positions.offset(100_001, 512)
    q, k = (normal(1, 8, 512, 128, seed=seed, dtype=torch.bfloat16) for seed in (1, 2))
    found, exact = rotary.rotate(q, k, p), through_torch(rotary, q.double(), k.double(), p)
    equal = torch.stack([(a == b.to(torch.bfloat16)).double().mean() for a, b in zip(found, exact, strict=True)])
    assert equal.min() > 0.9999


def test_infinities_and_nans_are_kept() -> None:
    q = torch.tensor([float("nan"), float("inf"), 1.0, 2.0]).view(1, 1, 1, 4)
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        found, _ = Rotary(4).rotate(q.to(dtype), q.to(dtype), positions.arange(1))
        assert found[0, 0, 0, 0].isnan()
        assert not found[0, 0, 0, 1].isfinite()


def test_every_bfloat16_number_keeps_its_kind_and_rounds_like_torch() -> None:
    every = torch.arange(-(1 << 15), 1 << 15, dtype=torch.int32).to(torch.int16).view(torch.bfloat16)
    partners = torch.tensor([1.0, 0.0, float("inf"), -float("inf"), float("nan")], dtype=torch.bfloat16)
    q = torch.stack([every.expand(len(partners), -1), partners.unsqueeze(1).expand(-1, len(every))], dim=-1)
    q, p = q.reshape(1, len(partners), len(every), 2), positions.arange(len(every)) % 7
    found, _ = Rotary(2).rotate(q, q, p)
    expected, _ = through_torch(Rotary(2), q, q, p)
    assert torch.equal(found.isnan(), expected.isnan())
    assert torch.equal(found.nan_to_num(7.0), expected.nan_to_num(7.0))


@LAYOUTS
def test_first_and_second_derivatives_are_those_of_the_formula(layout: str) -> None:
    rotary, p = Rotary(4, layout=layout), positions.offset(5, 3)
    q, k = (normal(1, 2, 3, 4, seed=seed).requires_grad_() for seed in (1, 2))
    assert torch.autograd.gradcheck(lambda q, k: rotary.rotate(q, k, p), (q, k))
    assert torch.autograd.gradgradcheck(lambda q, k: rotary.rotate(q, k, p), (q, k))
    above = normal(1, 2, 3, 4, seed=3)
    ours = torch.autograd.grad(rotary.rotate(q, k, p)[0], q, above)
    theirs = torch.autograd.grad(through_torch(rotary, q, k, p)[0], q, above)
    assert torch.allclose(ours[0], theirs[0], atol=1e-14)


@LAYOUTS
@DTYPES
def test_the_gradient_is_rotated_back_in_every_dtype(layout: str, dtype: torch.dtype) -> None:
    rotary, p = Rotary(16, layout=layout), positions.arange(9)
    gradients = []
    for rotate in (rotary.rotate, lambda q, k, p: through_torch(rotary, q, k, p)):
        q, k = (normal(1, 2, 9, 16, seed=n, dtype=dtype).requires_grad_() for n in (1, 2))
        turned, other = rotate(q, k, p)
        weights = normal(1, 2, 9, 16, seed=3, dtype=dtype)
        ((turned * weights).sum() + other.sum()).backward()
        assert q.grad is not None
        assert k.grad is not None
        gradients.append((q.grad, k.grad))
    same(*gradients)


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")  # torch.func.jvp itself
def test_transforms_and_forward_derivatives_take_the_path_through_torch() -> None:
    rotary, p = Rotary(8), positions.arange(5)
    q = normal(3, 1, 2, 5, 8, dtype=torch.float32)
    each = torch.func.vmap(lambda x: rotary.rotate(x, x, p)[0])(q)
    assert torch.allclose(each[1], rotary.rotate(q[1], q[1], p)[0], atol=1e-6)
    _, slope = torch.func.jvp(lambda x: rotary.rotate(x, x, p)[0], (q[0],), (q[1],))
    assert torch.allclose(slope, rotary.rotate(q[1], q[1], p)[0], atol=1e-6)


@LAYOUTS
def test_torch_compile_sees_one_graph_for_seven_lengths(layout: str) -> None:
    torch.compiler.reset()
    rotary, graphs = Rotary(16, layout=layout), []

    def backend(graph: torch.fx.GraphModule, _: list[Tensor]) -> torch.fx.GraphModule:
        graphs.append(graph)
        return graph

    compiled = torch.compile(lambda q, p: rotary.rotate(q, q, p), backend=backend, fullgraph=True)
    for tokens in (3, 5, 8, 13, 21, 34, 55):
        q, p = normal(2, 2, tokens, 16, dtype=torch.float32), positions.offset(9, tokens)
        same(compiled(q, p), rotary.rotate(q, q, p))
    assert len(graphs) <= 2


@exports
def test_torch_export_contains_only_torch_operators() -> None:
    class Turned(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rotary = Rotary(8)

        def forward(self, q: Tensor, p: Tensor) -> tuple[Tensor, Tensor]:
            return self.rotary.rotate(q, q, p)

    q, p = normal(1, 2, 5, 8, dtype=torch.float32), positions.arange(5)
    program = torch.export.export(Turned(), (q, p))
    same(program.module()(q, p), Rotary(8).rotate(q, q, p))
    called = {n.target for n in program.graph.nodes if isinstance(n.target, torch._ops.OpOverload)}
    assert {target.namespace for target in called} == {"aten"}


def test_it_survives_copies_pickles_casts_and_meta() -> None:
    q, p = normal(1, 2, 5, 8, dtype=torch.float32), positions.arange(5)
    expected = Rotary(8).rotate(q, q, p)
    with torch.device("meta"):
        on_meta = Rotary(8)
    for made in (copy.deepcopy(Rotary(8)), pickle.loads(pickle.dumps(Rotary(8))), on_meta.to_empty(device="cpu")):
        same(made.to(torch.bfloat16).rotate(q, q, p), expected)


def test_the_kernel_rejects_a_negative_position() -> None:
    q = normal(1, 2, 3, 8, dtype=torch.float32)
    for p in (torch.tensor([0, 1, -4]), torch.tensor([[0, 1, -4]])):
        with pytest.raises(PositionError, match="q_positions: expected no negative position, got -4"):
            Rotary(8).rotate(q, q, p)
    with pytest.raises(PositionError, match="k_positions: expected no negative position, got -7"):
        Rotary(8).rotate(q, q, positions.arange(3), torch.tensor([-7, 0, 1]))


def test_lengths_are_rejected_where_they_are_not_used() -> None:
    q = normal(1, 2, 3, 8, dtype=torch.float32)
    with pytest.raises(EncodingError, match="Rotary: expected no lengths"):
        Rotary(8).rotate(q, q, positions.arange(3), lengths=7)


def test_the_environment_variable_disables_the_kernel() -> None:
    code = "from orderproof.encodings import kernels, Rotary; print(kernels.kernels_available(), Rotary(8)._plan)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"ORDERPROOF_KERNELS": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["False", "None"]


@pytest.fixture
def small_plan() -> kernels.RotaryPlan:
    """A plan with the function for small calls."""
    plan = Rotary(64)._plan
    if plan is None or plan.rotate_small is None:
        pytest.skip("the library was built without the header of Python")
    return plan


@DTYPES
def test_a_small_call_gives_the_same_as_the_general_kernel(dtype: torch.dtype, small_plan: kernels.RotaryPlan) -> None:
    p = torch.tensor([32768])
    q, k = normal(2, 6, 1, 64, seed=1, dtype=dtype), normal(2, 3, 1, 64, seed=2, dtype=dtype)
    small, general = kernels.rotate_small(small_plan, q, k, p, None), kernels.rotate(small_plan, q, k, p, p, None)
    assert small is not None
    assert all(torch.equal(a, b) for a, b in zip(small, general, strict=True))
    same(small, through_torch(Rotary(64), q, k, p), far=32768)


@pytest.mark.parametrize(
    ("q_shape", "k_shape", "tokens"),
    [
        ((2, 6, 1, 32), (2, 6, 1, 32), 1),
        ((2, 6, 1, 64), (2, 6, 1, 32), 1),
        ((2, 6, 1, 64), (3, 6, 1, 64), 1),
        ((2, 6, 1, 64), (2, 6, 2, 64), 1),
        ((2, 6, 1, 64), (2, 6, 1, 64), 2),
        ((6, 1, 64), (6, 1, 64), 1),
        ((2, 6, 1, 64), (6, 1, 64), 1),
        ((1, 8, 1024, 64), (1, 8, 1024, 64), 1024),  # twice as many rows of features as a small call has
        ((1, 1, 1024, 64), (1, 8, 1024, 64), 1024),
    ],
    ids=str,
)
def test_other_shapes_are_no_small_call(
    q_shape: tuple[int, ...], k_shape: tuple[int, ...], tokens: int, small_plan: kernels.RotaryPlan
) -> None:
    q, k = torch.ones(q_shape), torch.ones(k_shape)
    assert kernels.rotate_small(small_plan, q, k, torch.arange(tokens), None) is None
    assert kernels.rotate_small(small_plan, q, k, torch.arange(tokens), (q, k)) is None
    assert bool((q == 1).all() and (k == 1).all())


def test_calls_with_gradients_or_strides_are_no_small_call(small_plan: kernels.RotaryPlan) -> None:
    q, p = torch.ones(2, 6, 1, 64), torch.arange(1)
    assert kernels.rotate_small(small_plan, q, q.clone().requires_grad_(), p, None) is None
    assert kernels.rotate_small(small_plan, q, torch.ones(2, 6, 1, 128)[..., ::2], p, None) is None
    assert kernels.rotate_small(small_plan, q, q, torch.arange(1, dtype=torch.int32), None) is None
    assert kernels.rotate_small(small_plan, q, q.double(), p, None) is None
    with torch.no_grad():
        assert kernels.rotate_small(small_plan, q, q.clone().requires_grad_(), p, None) is not None


@DTYPES
def test_a_small_call_in_place_equals_one_into_new_tensors(dtype: torch.dtype) -> None:
    rotary, p = Rotary(64), torch.tensor([77])
    q, k = normal(2, 6, 1, 64, seed=1, dtype=dtype), normal(2, 3, 1, 64, seed=2, dtype=dtype)
    fresh = rotary.rotate(q, k, p)
    places = q.data_ptr(), k.data_ptr()
    assert rotary.rotate(q, k, p, out=(q, k)) == (q, k)
    assert (q.data_ptr(), k.data_ptr()) == places
    assert all(torch.equal(a, b) for a, b in zip(fresh, (q, k), strict=True))
    with pytest.raises(EncodingError, match="Rotary: out must be a pair of buffers, for q and for k, got one twice"):
        rotary.rotate(q, q, p, out=(q, q))
    with pytest.raises(EncodingError, match="Rotary: out must be a pair of buffers, for q and for k, got int"):
        rotary.rotate(q, k, p, out=1)  # type: ignore[arg-type]


def test_the_python_function_rejects_other_arguments(small_plan: kernels.RotaryPlan) -> None:
    few = small_plan.rotate_small
    assert few is not None
    with pytest.raises(TypeError, match="rotate_small: expected 7 integers and 3 shapes"):
        few(1)
    with pytest.raises(TypeError):
        few(*["1"] * 7, (1,), (1,), (1,))
    with pytest.raises(TypeError, match="rotate_small: expected a shape"):
        few(*[0] * 7, 1, 1, 1)
    with pytest.raises(TypeError):
        few(*[0] * 7, ("1",) * 4, ("1",) * 4, ("1",))


@pytest.mark.parametrize("mebibytes", [3, 4, 5, 17])
def test_huge_pages_change_no_result(mebibytes: int) -> None:
    rotary, tokens = Rotary(64), mebibytes * 4096  # of 64 numbers of 4 bytes, 256
    q, k = (normal(1, 1, tokens, 64, seed=seed, dtype=torch.float32) for seed in (1, 2))
    p, into = positions.arange(tokens), (torch.empty_like(q), torch.empty_like(k))
    found = rotary.rotate(q, k, p)
    assert all(torch.equal(a, b) for a, b in zip(found, rotary.rotate(q, k, p, out=into), strict=True))
