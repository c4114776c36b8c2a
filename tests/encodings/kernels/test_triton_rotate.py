"""The kernel for a GPU and the path through torch are one function.

On a machine with a GPU the tests run there. Elsewhere `test_triton_interpreter.py` runs this file once more, with
Triton's interpreter in place of its compiler and tensors on the CPU in place of those on a GPU.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from orderproof import positions
from orderproof.encodings import AxialRotary, CayleyString, DinoV3Rope, MRope, Rotary, attention, kernels
from orderproof.encodings._encoding import Claims
from orderproof.encodings._frequencies import Spectrum
from orderproof.encodings._rotary_base import RotaryBase
from orderproof.encodings.schedules import DynamicNTK
from orderproof.errors import EncodingError
from tests.encodings.examples import normal

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
if not INTERPRETED and not torch.cuda.is_available():
    pytest.skip("no GPU here; test_triton_interpreter.py runs these on the CPU", allow_module_level=True)
kernel = pytest.importorskip("orderproof.encodings.kernels._rotary_triton", reason="Triton is not installed")
DEVICE = "cpu" if INTERPRETED else "cuda"
# torch 2.11 imports a part of its compiler that uses what it deprecates.
COMPILES = pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated:DeprecationWarning")
LAYOUTS = pytest.mark.parametrize("layout", ["half", "interleaved"])
DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])


class Planes(RotaryBase):
    """Two axes and attention scaling."""

    claims = Claims(site="rotate", relative=True, symmetric=False, ndim=2)

    def __init__(self, layout: str) -> None:
        spectrum = Spectrum(frequencies=(1.0, 0.3, 0.7, 0.01), attention_scaling=1.7)
        super().__init__(8, spectrum, layout=layout, pair_axes=(0, 1, 1, 0))  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Counts kernel calls; in the interpreter, CPU tensors are sent to the kernel, too."""
    seen: list[int] = []
    if not INTERPRETED:  # the first rotation on a GPU tries the kernel once
        one = torch.ones(1, 1, 1, 2, device=DEVICE)
        assert kernels.can_rotate_on_gpu(one, one)
    rotate_into = kernel.rotate_into

    def counted(out: Tensor, *arguments: Tensor, **options: bool) -> Tensor:
        seen.append(1)
        return rotate_into(out, *arguments, **options)

    monkeypatch.setattr(kernel, "rotate_into", counted)
    if INTERPRETED:
        served = (torch.float32, torch.bfloat16, torch.float16)
        monkeypatch.setattr(kernels, "rotate_small", lambda *_: None)
        monkeypatch.setattr(kernels, "can_rotate_on_cpu", lambda q, k: False)
        monkeypatch.setattr(
            kernels, "can_rotate_on_gpu", lambda q, k: kernels.is_plain_eager(q, k) and q.dtype in served
        )
    return seen


def drawn(*shape: int, seed: int = 1, dtype: torch.dtype = torch.float32) -> Tensor:
    return normal(*shape, seed=seed, dtype=dtype).to(DEVICE)


def through_torch(
    rotation: RotaryBase, q: Tensor, k: Tensor, p: Tensor, s: Tensor | None = None, lengths: Tensor | int | None = None
) -> tuple[Tensor, ...]:
    """Both sides by the path through torch, which has its own tests."""
    rows, wide = rotation._check_lengths(q, lengths), torch.promote_types(q.dtype, torch.float32)
    a = rotation.encode(q.to(wide), p, side="q", lengths=rows)
    b = rotation.encode(k.to(wide), p if s is None else s, side="k", lengths=rows)
    return rounded(a, q.dtype), rounded(b, k.dtype)


def rounded(x: Tensor, dtype: torch.dtype) -> Tensor:
    """``x`` in ``dtype``, to the nearest; the interpreter cuts float32 off to bfloat16, where a GPU rounds."""
    if INTERPRETED and dtype == torch.bfloat16:
        x = (x.detach().float().view(torch.int32) & -(1 << 16)).view(torch.float32)
    return x.to(dtype)


def same(found: tuple[Tensor, ...], expected: tuple[Tensor, ...]) -> None:
    """The same bits: no product is fused with a sum."""
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        assert torch.equal(a, b)


@LAYOUTS
@DTYPES
@pytest.mark.parametrize(("width", "rotary_width"), [(64, None), (2, None), (6, None), (20, 12), (33, 16), (96, 24)])
def test_it_gives_what_torch_gives(
    layout: str, dtype: torch.dtype, width: int, rotary_width: int | None, calls: list[int]
) -> None:
    rotary = Rotary(width, layout=layout, rotary_width=rotary_width)  # type: ignore[arg-type]
    q, k = drawn(2, 6, 37, width, seed=1, dtype=dtype), drawn(2, 3, 37, width, seed=2, dtype=dtype)
    packed = torch.cat([positions.arange(20), positions.arange(17)])
    rows = positions.offset(torch.tensor([3, 1_000_003]), 37)
    for p in (packed, positions.offset(2**21, 37), rows, rows[:1]):
        calls.clear()
        same(rotary.rotate(q, k, p.to(DEVICE)), through_torch(rotary, q, k, p.to(DEVICE)))
        assert len(calls) == 2


@LAYOUTS
def test_keys_may_have_other_positions_and_another_length(layout: str) -> None:
    rotary = Rotary(16, layout=layout)  # type: ignore[arg-type]
    q, k = drawn(2, 5, 1, 16, seed=1), drawn(2, 2, 300, 16, seed=2)
    p, s = positions.offset(torch.tensor([4, 9]), 1).to(DEVICE), positions.arange(300).to(DEVICE)
    same(rotary.rotate(q, k, p, s), through_torch(rotary, q, k, p, s))


ROTATIONS: dict[str, tuple[Callable[[str], RotaryBase], Tensor, Tensor | int | None]] = {
    "two axes": (Planes, positions.grid(3, 4), None),
    "two axes, rows": (Planes, torch.stack([positions.grid(3, 4), positions.grid(3, 4) + 2**20], dim=1), None),
    "axial": (lambda layout: AxialRotary(8, layout=layout), positions.grid(3, 4), None),  # type: ignore[arg-type]
    "mrope": (lambda layout: MRope(8, layout=layout), torch.arange(36).view(3, 12), None),  # type: ignore[arg-type]
    "dino": (lambda layout: DinoV3Rope(8, grid=(3, 4), layout=layout), positions.grid(3, 4), None),  # type: ignore[arg-type]
    "one length": (lambda layout: Rotary(8, layout=layout, schedule=DynamicNTK(4.0, 16)), positions.arange(12), 40),  # type: ignore[arg-type]
    "a length a row": (
        lambda layout: Rotary(8, layout=layout, schedule=DynamicNTK(4.0, 16)),  # type: ignore[arg-type]
        positions.arange(12),
        torch.tensor([17, 60]),
    ),
}


@LAYOUTS
@pytest.mark.parametrize("name", ROTATIONS)
def test_every_kind_of_rotation_gives_what_torch_gives(name: str, layout: str, calls: list[int]) -> None:
    made, p, lengths = ROTATIONS[name]
    rotation, p = made(layout), p.to(DEVICE)
    lengths = lengths.to(DEVICE) if isinstance(lengths, Tensor) else lengths
    q, k = drawn(2, 4, 12, 8, seed=1), drawn(2, 2, 12, 8, seed=2)
    same(rotation.rotate(q, k, p, lengths=lengths), through_torch(rotation, q, k, p, lengths=lengths))
    assert len(calls) == 2


def test_a_rotation_in_another_basis_takes_the_path_through_torch(calls: list[int]) -> None:
    string, q, p = CayleyString(8, 2).to(DEVICE), drawn(2, 2, 12, 8), positions.grid(3, 4).to(DEVICE)
    same(string.rotate(q, q, p), through_torch(string, q, q, p))
    assert not calls


@LAYOUTS
@DTYPES
def test_strides_do_not_matter(dtype: torch.dtype, layout: str) -> None:
    rotary, p = Rotary(16, layout=layout), positions.arange(30).to(DEVICE)  # type: ignore[arg-type]
    whole = drawn(2, 30, 3, 48, dtype=dtype).transpose(1, 2)
    q, k = whole[..., 16:32], whole[..., ::3]
    same(rotary.rotate(q, k, p), through_torch(rotary, q, k, p))
    into = (torch.zeros_like(whole)[..., 8:24], torch.zeros_like(whole)[..., ::3])
    assert rotary.rotate(q, k, p, out=into)[0] is into[0]
    same(into, through_torch(rotary, q, k, p))
    one = drawn(1, 1, 1, 16, dtype=dtype).expand(2, 3, 30, 16)
    same(rotary.rotate(one, one, p), through_torch(rotary, one, one, p))


@LAYOUTS
def test_it_may_write_over_its_input_and_next_to_it(layout: str) -> None:
    rotary, p = Rotary(8, layout=layout, rotary_width=4), positions.arange(9).to(DEVICE)  # type: ignore[arg-type]
    q, k = drawn(1, 2, 9, 8, seed=1), drawn(1, 2, 9, 8, seed=2)
    expected = through_torch(rotary, q, k, p)
    place = (q.clone(), k.clone())
    rotary.rotate(*place, p, out=place)
    same(place, expected)
    room = torch.cat([q, q[:, :, :1]], dim=2)
    rotary.rotate(room[:, :, :9], k, p, out=(room[:, :, 1:], torch.empty_like(k)))
    same((room[:, :, 1:],), expected[:1])
    crossed = (q.clone(), k.clone())
    rotary.rotate(*crossed, p, out=(crossed[1], crossed[0]))
    same((crossed[1], crossed[0]), expected)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_tensors_of_more_than_2_to_the_31_elements_work(axis: int) -> None:
    # Each step fits in 32 bits, two of them do not; memory is claimed and hardly touched.
    shape, steps = [1, 1, 1, 8], [8, 8, 8, 1]
    shape[axis], steps[axis] = 3, 2**30 + 64
    q = torch.empty(2**31 + 256, dtype=torch.bfloat16, device=DEVICE).as_strided(shape, steps)
    q.copy_(drawn(*shape, dtype=torch.bfloat16))
    rotary, k = Rotary(8), q.clone(memory_format=torch.contiguous_format)
    p = positions.arange(shape[2]).to(DEVICE)
    expected = through_torch(rotary, k, k, p)
    same(rotary.rotate(q, k, p, out=(q, k)), expected)


@pytest.mark.parametrize("shape", [(0, 2, 3, 8), (1, 0, 3, 8), (1, 2, 0, 8)])
def test_empty_tensors_are_accepted(shape: tuple[int, ...]) -> None:
    q, p = drawn(*shape), positions.arange(shape[2]).to(DEVICE)
    assert Rotary(8).rotate(q, q, p)[0].shape == shape


@LAYOUTS
def test_gradients_are_those_of_the_path_through_torch(layout: str, calls: list[int]) -> None:
    for rotation, places in (
        (Rotary(12, layout=layout, rotary_width=8), positions.arange(5)),  # type: ignore[arg-type]
        (Planes(layout), positions.grid(1, 5)),
    ):
        p, width = places.to(DEVICE), rotation.head_width
        q, k = (drawn(1, 2, 5, width, seed=seed).requires_grad_() for seed in (1, 2))
        above = drawn(1, 2, 5, width, seed=3)

        def slopes(rotated: tuple[Tensor, ...], q: Tensor = q, k: Tensor = k, above: Tensor = above) -> list[Tensor]:
            """First derivatives, and second derivatives of a nonlinear function."""
            (first,) = torch.autograd.grad((rotated[0] ** 3 * above).sum() + rotated[1].sum(), q, create_graph=True)
            return [first, *torch.autograd.grad((first * above).sum() + rotated[1].square().sum(), (q, k))]

        expected = slopes(through_torch(rotation, q, k, p))
        calls.clear()
        found = slopes(rotation.rotate(q, k, p))
        assert len(calls) > 2
        for a, b in zip(found, expected, strict=True):
            assert torch.allclose(a, b, rtol=1e-5, atol=1e-5)


def test_an_operand_without_gradient_is_not_rotated_back(calls: list[int]) -> None:
    q, k, p = drawn(1, 2, 5, 8).requires_grad_(), drawn(1, 2, 5, 8, seed=2), positions.arange(5).to(DEVICE)
    a, b = Rotary(8).rotate(q, k, p)
    assert not b.requires_grad
    calls.clear()
    (a * b).sum().backward()
    assert len(calls) == 1


@COMPILES
def test_tracing_and_transforms_take_the_path_through_torch(calls: list[int]) -> None:
    torch.compiler.reset()
    rotary, p, q = Rotary(8), positions.arange(5).to(DEVICE), drawn(3, 1, 2, 5, 8)
    each = torch.func.vmap(lambda x: rotary.rotate(x, x, p)[0])(q)
    compiled = torch.compile(lambda x: rotary.rotate(x, x, p)[0], backend="eager", fullgraph=True)(q[1])
    exact = rotary.rotate(q[1].double(), q[1].double(), p)[0]
    assert not calls
    found = rotary.rotate(q[1], q[1], p)[0]
    assert len(calls) == 2
    for other in (each[1], compiled, exact.float()):
        assert torch.allclose(found, other, atol=1e-6)


def test_bfloat16_is_the_rounded_result_of_float64() -> None:
    rotary, p = Rotary(64), positions.offset(100_001, 64).to(DEVICE)
    q, k = (drawn(1, 4, 64, 64, seed=seed, dtype=torch.bfloat16) for seed in (1, 2))
    found, exact = rotary.rotate(q, k, p), through_torch(rotary, q.double(), k.double(), p)
    equal = torch.stack([(a == rounded(b, a.dtype)).double().mean() for a, b in zip(found, exact, strict=True)])
    assert equal.min() > 0.999


def test_in_attention_it_gives_what_float64_gives(calls: list[int]) -> None:
    q, k, v = drawn(2, 4, 9, 8, seed=1), drawn(2, 2, 9, 8, seed=2), drawn(2, 2, 9, 8, seed=3)
    p = positions.arange(9).to(DEVICE)
    found = attention(q, k, v, encoding=Rotary(8), q_positions=p, causal=True)
    assert len(calls) == 2
    exact = attention(q.double(), k.double(), v.double(), encoding=Rotary(8), q_positions=p, causal=True)
    assert torch.allclose(found.double(), exact, atol=1e-5)


def test_rows_that_do_not_fit_are_rejected() -> None:
    x, rows = drawn(2, 1, 4, 8), drawn(3, 4, 4)
    with pytest.raises(EncodingError, match=r"cos and sin: expected \[4, pair\] or \[2, 4, pair\], got \[3, 4, 4\]"):
        kernel.rotate_into(x, x, rows, rows, interleaved=False)
