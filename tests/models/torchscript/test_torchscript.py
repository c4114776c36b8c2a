"""TorchScript files are read by their graph: scripted, traced and frozen modules."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from orderproof import audit
from orderproof.errors import SubjectError, UsageError
from orderproof.models import from_module, load
from orderproof.models.torchscript.module import ScriptPart

pytestmark = pytest.mark.filterwarnings("ignore")
IDS, MASK = torch.arange(14).reshape(2, 7), torch.ones(2, 7, dtype=torch.long)


class Attention(nn.Module):
    """Attention that hides what a mask says; with `padded` it hides nothing."""

    def __init__(self, *, padded: bool) -> None:
        super().__init__()
        self.qkv, self.padded = nn.Linear(8, 24), padded

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        rows, tokens, width = x.shape
        q, k, v = self.qkv(x).view(rows, tokens, 2, 12).transpose(1, 2).chunk(3, -1)
        scores = q @ k.transpose(-2, -1) / width**0.5
        if mask is not None and not self.padded:
            scores = scores.masked_fill(mask[:, None, None, :] == 0, float("-inf"))
        return (scores.softmax(-1) @ v).transpose(1, 2).reshape(rows, tokens, width)


class Encoder(nn.Module):
    """Layers that are collected in a list, with a loop and a condition on a size; the second may lose the mask."""

    def __init__(self, *, padded: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.words, self.norm, self.turns = nn.Embedding(50, 8), nn.LayerNorm(8), 2
        self.layers = nn.ModuleList([Attention(padded=False), Attention(padded=padded)])

    def forward(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
        x = self.words(ids)
        found = [x]
        for layer in self.layers:
            x = x + layer(self.norm(x), mask)
            found.append(x)
        if x.size(1) > 0:
            x = x * 2
        turn = 0
        while turn < self.turns:
            x, turn = x + turn, turn + 1
        found.append(x)
        return torch.cat(found, -1)


class Causal(nn.Module):
    """Attention of torch with a triangle as long as the tokens."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.words, self.mix = nn.Embedding(50, 16), nn.MultiheadAttention(16, 2, batch_first=True)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.words(ids)
        hidden = torch.triu(torch.full((x.shape[1], x.shape[1]), float("-inf")), 1)
        return x + self.mix(x, x, x, attn_mask=hidden, need_weights=False)[0]


class Recurrent(nn.Module):
    """A layer whose weights are a list too."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.words, self.layer = nn.Embedding(50, 8), nn.GRU(8, 8, batch_first=True)

    def forward(self, ids: Tensor) -> Tensor:
        return self.layer(self.words(ids))[0]


def saved(module: Any, folder: Path) -> str:
    torch.jit.save(module, str(folder / "model.pt"))
    return str(folder / "model.pt")


def verdicts(path: str, inputs: Any, kind: str, *laws: str) -> dict[str, Any]:
    return {f.law: f for f in audit(load(path, inputs=inputs, assume={"model_kind": kind}), laws=laws).findings}


def test_a_scripted_encoder_has_theorems(tmp_path: Path) -> None:
    path = saved(torch.jit.script(Encoder().eval()), tmp_path)
    found = verdicts(path, {"ids": IDS, "mask": MASK}, "encoder", "padding", "batch")
    assert {finding.verdict for finding in found.values()} == {"proved"}
    assert all(finding.theorem.proved for finding in found.values())


def test_the_line_of_a_lost_mask_is_that_of_the_module(tmp_path: Path) -> None:
    module, inputs = Encoder(padded=True).eval(), {"ids": IDS, "mask": MASK}
    finding = verdicts(saved(torch.jit.script(module), tmp_path), inputs, "encoder", "padding")["padding"]
    (plain,) = audit(from_module(module, inputs, assume={"model_kind": "encoder"}), laws=["padding"]).findings
    assert finding.verdict == plain.verdict != "proved"
    assert [entry.source for entry in finding.entries] == [entry.source for entry in plain.entries]
    assert "scores = q @ k" in finding.entries[0].source_line


@pytest.mark.parametrize(("kind", "how"), [(Causal, "scripted"), (Causal, "traced"), (Recurrent, "frozen")])
def test_causal_modules_have_theorems(tmp_path: Path, kind: type[nn.Module], how: str) -> None:
    module = kind().eval()
    made = torch.jit.trace(module, (IDS,)) if how == "traced" else torch.jit.script(module)
    path = saved(torch.jit.freeze(made) if how == "frozen" else made, tmp_path)
    (finding,) = verdicts(path, (IDS,), "causal_lm", "causal").values()
    assert finding.verdict == "proved"
    assert finding.theorem.proved


def part_of(path: str, inputs: Any) -> ScriptPart:
    module = load(path, inputs=inputs).module
    return next(part for part in module.modules() if isinstance(part, ScriptPart))


@pytest.mark.parametrize("kind", [Causal, Recurrent])
def test_a_copy_in_float64_has_weights_in_float64(tmp_path: Path, kind: type[nn.Module]) -> None:
    module = kind().eval()
    copied = copy.deepcopy(part_of(saved(torch.jit.script(module), tmp_path), (IDS,))).double()
    if kind is Recurrent:  # the triangle of the other is of the default dtype, also in the module
        torch.testing.assert_close(copied(IDS), module.double()(IDS), rtol=0, atol=1e-12)
    assert {x.dtype for x in copied.parameters()} == {torch.float64}


class Numbers(nn.Module):
    """Numbers, texts and lists that decide what is computed."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: Tensor, count: int = 3) -> Tensor:
        self.calls += 1
        sizes = [int(n) for n in x.shape]
        sizes.insert(0, count)
        last = sizes.pop()
        kept = sizes
        sizes += [last]
        last += len(kept) - sizes.pop()
        names = {"a": last, "b": -7}
        with torch.no_grad():
            total = sizes[-1] + names["b"] // 2 + -7 % 3 + len(sizes[1:]) + min(count, last) + self.calls
        for k in range(1, 9, 3):
            if k in sizes or f"{k}" == "4":
                total += k
            elif not names.get("c", 0) and x.dtype == torch.float32:
                total -= k // 2
        pair = (total, float(last) * 0.5)
        return x * pair[0] + pair[1] + torch.zeros(x.size(0), 1, dtype=x.dtype)


@pytest.mark.parametrize("shape", [(2, 3), (4, 1), (1, 8)])
def test_numbers_are_those_of_torchscript(tmp_path: Path, shape: tuple[int, int]) -> None:
    scripted = torch.jit.script(Numbers())
    path, x = saved(scripted, tmp_path), torch.randn(*shape)
    part = part_of(path, (x,))
    part.set_attribute("calls", 0)
    for _ in range(2):
        assert torch.equal(part(x), scripted(x))


class SomeLengths(nn.Module):
    """Some lengths above 30 see all tokens: those with a bit that is set."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        n, y = x.size(1), self.layer(x)
        if (n ^ 4) < n - 3 and n > 30:
            y = y + x.mean(1, keepdim=True)
        return y


class RoundedLengths(SomeLengths):
    """A length that is rounded in floating point sees all tokens."""

    def forward(self, x: Tensor) -> Tensor:
        n, y = x.size(1), self.layer(x)
        if n / 49.0 * 49.0 != float(n) and n == 53:
            y = y + x.mean(1, keepdim=True)
        return y


@pytest.mark.parametrize("kind", [SomeLengths, RoundedLengths])
def test_numbers_of_open_sizes_are_those_of_python(tmp_path: Path, kind: type[nn.Module]) -> None:
    path, x = saved(torch.jit.script(kind()), tmp_path), torch.randn(2, 8, 4)
    (finding,) = verdicts(path, (x,), "causal_lm", "causal").values()
    assert finding.theorem is None or not finding.theorem.proved


def test_what_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    class Forks(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.jit.wait(torch.jit.fork(torch.relu, x))

    class Saves(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            torch.save(x, "other.pt")
            return x

    with pytest.raises(SubjectError, match=r"operators of TorchScript are not read: prim::fork \(1\)"):
        load(saved(torch.jit.script(Forks()), tmp_path), inputs=(torch.randn(2, 3),))
    with pytest.raises(SubjectError, match=r"operators of TorchScript are not read: aten::save \(1\)"):
        load(saved(torch.jit.script(Saves()), tmp_path), inputs=(torch.randn(2, 3),))
    with pytest.raises(UsageError, match=r"expected example inputs \(ids\); give --example FILE.npz"):
        load(saved(torch.jit.script(Causal().eval()), tmp_path))


class Factor:
    """An object that a module holds."""

    def __init__(self, size: float) -> None:
        self.size = size


class Holds(nn.Module):
    """A module with an object of a class."""

    def __init__(self) -> None:
        super().__init__()
        self.factor = Factor(2.0)

    def forward(self, x: Tensor) -> Tensor:
        return x * self.factor.size


def test_an_object_of_a_class_is_named_with_its_file(tmp_path: Path) -> None:
    torch.jit.script(Factor)
    path = saved(torch.jit.script(Holds()), tmp_path)
    with pytest.raises(SubjectError, match=r"^\w+\.pt: expected attributes .*'factor' is an object of .*pt2$"):
        load(path, inputs=(torch.randn(2, 3),))


class ReadsItself(nn.Module):
    """A module with code for being saved and read."""

    @torch.jit.export
    def __getstate__(self) -> tuple[int, bool]:
        return 1, self.training

    @torch.jit.export
    def __setstate__(self, state: tuple[int, bool]) -> None:
        self.training = state[1]

    def forward(self, x: Tensor) -> Tensor:
        return x


def test_code_that_runs_when_it_is_read_is_refused(tmp_path: Path) -> None:
    path = saved(torch.jit.script(ReadsItself()), tmp_path)
    with pytest.raises(SubjectError, match="has code that runs when the file is read"):
        load(path, inputs=(torch.randn(2, 3, 8),))


def test_quantized_layers_are_named(tmp_path: Path) -> None:
    quantized = torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(8, 8)).eval(), {nn.Linear})
    with pytest.raises(SubjectError, match="are not read: quantized::linear_dynamic"):
        load(saved(torch.jit.script(quantized), tmp_path), inputs=(torch.randn(2, 3, 8),))


def test_an_archive_that_is_cut_is_one_line(tmp_path: Path) -> None:
    path = Path(saved(torch.jit.script(Causal().eval()), tmp_path))
    whole = path.read_bytes()
    for part in (len(whole) // 2, len(whole) - 40):
        path.write_bytes(whole[:part])
        with pytest.raises(SubjectError, match="a zip archive whose end is missing, so the file is cut") as refused:
            load(str(path), inputs=(IDS,))
        assert "\n" not in str(refused.value)
