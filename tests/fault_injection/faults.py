"""Faults to inject into a model: one class per kind, which replaces one layer (or the module of its positions).

Each is a fault that occurs in practice: a mask off by one, a block summary that includes the token itself, a scale over
the sequence. `inject` returns the place of the fault: a test checks that the audit names its module and line.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from orderproof.auditing.explain.source_name import source_name
from orderproof.batch_layout import padding_slots

CHUNK = 4
KINDS: dict[str, type[Fault]] = {}


class Fault(nn.Module):
    """A module that replaces another and calls it; missing attributes are those of the other."""

    law = "causal"

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("inner"), name)

    @staticmethod
    def places(model: nn.Module) -> dict[str, nn.Module]:
        """The modules that it can replace, by path: the layers."""
        lists = [(p, m) for p, m in model.named_modules() if isinstance(m, nn.ModuleList) and len(m) > 1]
        path, layers = min(lists, key=lambda found: found[0].count("."))
        return {f"{path}.{k}": layer for k, layer in enumerate(layers)}


def kind(cls: type[Fault]) -> type[Fault]:
    """Register a kind of fault under the name of its class in snake case."""
    KINDS["".join(f"_{c.lower()}" if c.isupper() else c for c in cls.__name__)[1:]] = cls
    return cls


class Mixing(Fault):
    """A layer whose output is mixed along the tokens."""

    def forward(self, *args: Any, **options: Any) -> Any:
        made = self.inner(*args, **options)
        return (self.mix(made[0]), *made[1:]) if isinstance(made, tuple) else self.mix(made)

    def mix(self, x: Tensor) -> Tensor:
        """[batch, token, width] to the same."""
        raise NotImplementedError


class Masked(Fault):
    """A layer that gets another attention mask."""

    def forward(self, *args: Any, **options: Any) -> Any:
        bound = inspect.signature(self.inner.forward).bind(*args, **options)
        given = bound.arguments.get("attention_mask", bound.arguments.get("kwargs", {}).get("attention_mask"))
        x = next(a for a in bound.arguments.values() if isinstance(a, Tensor))
        mask = self.mask(given, x)
        if given is not None and given.is_floating_point() and mask is not None and mask.dtype is torch.bool:
            mask = torch.where(mask, 0.0, torch.finfo(x.dtype).min).to(x.dtype)
        if "attention_mask" in bound.arguments or "attention_mask" in inspect.signature(self.inner.forward).parameters:
            bound.arguments["attention_mask"] = mask
        else:
            bound.arguments["kwargs"] = {**bound.arguments.get("kwargs", {}), "attention_mask": mask}
        return self.inner(*bound.args, **bound.kwargs)

    def mask(self, given: Tensor | None, x: Tensor) -> Tensor | None:
        """The mask to use instead: True at visible keys, or additive."""
        raise NotImplementedError


class Placing(Fault):
    """The module of the positions, with other ids."""

    law = "position_ids"

    @staticmethod
    def places(model: nn.Module) -> dict[str, nn.Module]:
        names = ("rotary_emb", "wpe", "position_embeddings")
        return {p: m for p, m in model.named_modules() if p.rpartition(".")[2] in names}

    def forward(self, *args: Any, **options: Any) -> Any:
        changed = [self.ids(a) if isinstance(a, Tensor) and not a.is_floating_point() else a for a in args]
        if isinstance(ids := options.get("position_ids"), Tensor):
            options = {**options, "position_ids": self.ids(ids)}
        return self.inner(*changed, **options)

    def ids(self, given: Tensor) -> Tensor:
        """The position ids to use instead."""
        raise NotImplementedError


# ---------------------------------------------------------------- masks


@kind
class MaskOffByOne(Masked):
    """Each token attends to the next."""

    def mask(self, given: Tensor | None, x: Tensor) -> Tensor:
        return torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril(1)[None, None]


@kind
class MaskDropped(Masked):
    """Every token attends to every other."""

    def mask(self, given: Tensor | None, x: Tensor) -> Tensor:
        return torch.ones(x.shape[1], x.shape[1], dtype=torch.bool)[None, None]


@kind
class MaskTooSmall(Masked):
    """Later tokens are masked by -10, which scores can exceed."""

    def mask(self, given: Tensor | None, x: Tensor) -> Tensor:
        return torch.full((x.shape[1], x.shape[1]), -10.0, dtype=x.dtype).triu(1)[None, None]


@kind
class MaskAfterSoftmax(Mixing):
    """Weights are masked after the softmax has normalised over later tokens."""

    def mix(self, x: Tensor) -> Tensor:
        weights = torch.softmax(x @ x.transpose(1, 2) / x.shape[-1], -1)
        return x + weights.tril() @ x


@kind
class SoftmaxOverQueries(Mixing):
    """The softmax runs along the wrong axis of the scores."""

    def mix(self, x: Tensor) -> Tensor:
        future = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        scores = (x @ x.transpose(1, 2) / x.shape[-1]).masked_fill(future, -1e30)
        return x + torch.softmax(scores, 1) @ x


# ---------------------------------------------------------------- blocks, chunks, scans


@kind
class BlockSummary(Mixing):
    """Each token gets the mean of its block, including later tokens."""

    def mix(self, x: Tensor) -> Tensor:
        blocks = _chunked(x)
        return x + blocks.mean(2, keepdim=True).expand_as(blocks).flatten(1, 2)[:, : x.shape[1]]


@kind
class ChunkRecurrence(Mixing):
    """The state handed from chunk to chunk already holds the chunk it is handed to."""

    def mix(self, x: Tensor) -> Tensor:
        chunks = _chunked(x)
        states = chunks.sum(2).cumsum(1) / x.shape[1]
        return x + states.unsqueeze(2).expand_as(chunks).flatten(1, 2)[:, : x.shape[1]]


@kind
class ReversedScan(Mixing):
    """A running sum that runs from the end."""

    def mix(self, x: Tensor) -> Tensor:
        return x + x.flip(1).cumsum(1).flip(1) / x.shape[1]


@kind
class TokenShift(Mixing):
    """The shift by one token goes the wrong way."""

    def mix(self, x: Tensor) -> Tensor:
        return x + F.pad(x, (0, 0, 0, 1))[:, 1:]


@kind
class WideConvolution(Mixing):
    """A depthwise convolution padded on both sides."""

    def mix(self, x: Tensor) -> Tensor:
        weight = torch.ones(x.shape[-1], 1, 3, dtype=x.dtype)
        return x + F.conv1d(x.transpose(1, 2), weight, padding=1, groups=x.shape[-1]).transpose(1, 2)


@kind
class WindowPooling(Mixing):
    """An average over a window that looks ahead."""

    def mix(self, x: Tensor) -> Tensor:
        padded = F.pad(x, (0, 0, 1, 1))
        return x + (padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:]) / 3


@kind
class CacheSlots(Mixing):
    """Tokens are written one slot too far, around the end."""

    def mix(self, x: Tensor) -> Tensor:
        slots = (torch.arange(x.shape[1]) + 1) % x.shape[1]
        return x + torch.zeros_like(x).index_copy(1, slots, x)


@kind
class SpectralMixing(Mixing):
    """A Fourier transform along the tokens."""

    def mix(self, x: Tensor) -> Tensor:
        return x + torch.fft.fft(x, dim=1).real / x.shape[1]


# ---------------------------------------------------------------- statistics of the whole sequence


@kind
class SequenceStatistics(Mixing):
    """A normalisation by moments taken over the tokens."""

    def mix(self, x: Tensor) -> Tensor:
        return (x - x.mean(1, keepdim=True)) / (x.std(1, keepdim=True) + 1e-3)


@kind
class GlobalGate(Mixing):
    """A gate made from the mean of all tokens."""

    def mix(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(x.mean(1, keepdim=True))


@kind
class QuantisationScale(Mixing):
    """A scale for fake quantisation taken over the whole tensor."""

    def mix(self, x: Tensor) -> Tensor:
        scale = x.abs().amax() / 7
        return (x / scale).round() * scale


@kind
class ExpertChoice(Mixing):
    """An expert chooses its tokens among all of them."""

    def mix(self, x: Tensor) -> Tensor:
        scores = x.mean(-1, keepdim=True)
        least = scores.topk(2, dim=1).values[:, -1:]
        return x + torch.where(scores >= least, x.tanh(), 0.0)


# ---------------------------------------------------------------- padding, packing, batches


class _Hiding(Masked):
    """Only the future is hidden, whatever the mask says; nothing at all in an encoder."""

    def mask(self, given: Tensor | None, x: Tensor) -> Tensor:
        causal = bool(getattr(self.inner, "hides_the_future", False))
        seen = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool)
        return (seen.tril() if causal else seen)[None, None]


@kind
class PaddingAttended(_Hiding):
    """The padding mask does not reach the attention."""

    law = "padding"


@kind
class PadsInTheMean(Mixing):
    """A mean over the row counts its pads."""

    law = "padding"

    def mix(self, x: Tensor) -> Tensor:
        real = ~padding_slots(x.shape[0], x.shape[1])
        return x + real.unsqueeze(-1) * x.mean(1, keepdim=True)


@kind
class DocumentsJoined(_Hiding):
    """Packed documents see each other."""

    law = "packing"


@kind
class ShiftAcrossDocuments(Mixing):
    """A shift by one token that does not stop where a document starts."""

    law = "packing"

    def mix(self, x: Tensor) -> Tensor:
        return x + F.pad(x, (0, 0, 1, 0))[:, :-1]


@kind
class BatchStatistics(Mixing):
    """A normalisation by moments taken over the batch."""

    law = "batch"

    def mix(self, x: Tensor) -> Tensor:
        return x - x.mean(0, keepdim=True) / 2


@kind
class BatchScale(Mixing):
    """Fake quantisation by one scale for the whole batch."""

    law = "batch"

    def mix(self, x: Tensor) -> Tensor:
        scale = x.abs().amax() / 7
        return (x / scale).round() * scale


# ---------------------------------------------------------------- position ids


@kind
class PositionIdsIgnored(Placing):
    """Tokens are counted as they are stored, whatever the position ids say."""

    def ids(self, given: Tensor) -> Tensor:
        return torch.arange(given.shape[-1]).expand_as(given)


@kind
class PositionsRestarted(Placing):
    """Positions start again every few tokens, whatever the position ids say."""

    def ids(self, given: Tensor) -> Tensor:
        return (torch.arange(given.shape[-1]) % CHUNK).expand_as(given)


def _chunked(x: Tensor) -> Tensor:
    """[batch, token, width] to [batch, chunk, place, width], zeros behind the last token."""
    rest = -x.shape[1] % CHUNK
    return F.pad(x, (0, 0, 0, rest)).unflatten(1, (-1, CHUNK))


# ---------------------------------------------------------------- injection


@dataclass(frozen=True)
class Site:
    """The place of a fault: the path of its module, and the lines of its code in this file."""

    path: str
    lines: range

    def is_named_by(self, module: str, source: str) -> bool:
        """Whether this is the module of the fault and a line of its code."""
        inside = module == self.path or module.startswith(f"{self.path}.")
        file, _, number = source.partition(":")
        return inside and file == source_name(__file__) and int(number) in self.lines


def inject(model: nn.Module, cls: type[Fault], place: int = -1, *, causal: bool = True) -> Site | None:
    """Inject a fault at one of its possible places; None if there is none."""
    places = cls.places(model)
    if not places:
        return None
    path = list(places)[place]
    inner = places[path]
    if causal and issubclass(cls, _Hiding):
        inner.hides_the_future = True
    parent = model.get_submodule(path.rpartition(".")[0]) if "." in path else model
    setattr(parent, path.rpartition(".")[2], cls(inner).eval())
    found: list[Callable[..., Any]] = [
        getattr(c, n) for c in cls.__mro__ for n in ("mix", "mask", "ids") if n in vars(c)
    ]
    source, start = inspect.getsourcelines(found[0])
    return Site(path, range(start, start + len(source)))
