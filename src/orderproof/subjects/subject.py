"""What is audited: a module, how to draw inputs for it, and where its tokens lie.

A `Subject` is all the prover and the laws need to know of a model; how it was named (a folder, an
architecture, a Python object) is forgotten here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from orderproof.errors import UsageError

if TYPE_CHECKING:
    from torch import Tensor, nn

    from orderproof.driver import Driver
    from orderproof.subjects.words import Words

Axis = int | tuple[int, ...] | None  # the axis of an input that runs over tokens; both axes of a mask
SHORTEST = 7  # the least default length: room for a transposition, a cycle and a cut that differ from each other


Quiet = Callable[[], AbstractContextManager[object]]


@dataclass(frozen=True)
class Sample:
    """Inputs for one call, and a name for each token."""

    inputs: tuple[Tensor, ...]  # positional arguments of Subject.module
    tokens: tuple[str, ...]  # one label a token of row 0: its text where it has one, else x0, x1, ...


@dataclass
class Subject:
    """A model ready to be captured, in eval mode."""

    name: str
    kind: str  # "encoder" | "causal_lm" | "vision" | "module" | "encoding"
    module: nn.Module = field(repr=False)  # forward(*inputs) gives dict[str, Tensor]; a plain module what it gives
    token_axes: tuple[Axis, ...]  # for each input the axis that runs over tokens
    parameters: int
    layers: int | None
    length: int  # default length of proofs: a prime that is no other size of the model
    max_length: int | None  # the most tokens its position table or its example inputs allow, where known
    device: str  # "cpu" or "meta"
    draw: Callable[[int, int], Sample] = field(repr=False)  # (length, seed) -> inputs
    values: Mapping[str, Tensor] = field(default_factory=dict, repr=False)  # meta: real values of the buffers
    cut: str | None = None  # vision: the submodule whose output is the [batch, token, width] input
    detail: str = ""
    twin: Callable[[], Subject] | None = field(default=None, repr=False)  # meta: the same, tiny, random, on the CPU
    quiet: Quiet = field(default=nullcontext, repr=False)  # around capture
    takes: Callable[[tuple[str, ...], str], tuple[nn.Module, Quiet] | None] | None = field(default=None, repr=False)
    # the module that takes these beside its inputs (attention_mask, position_ids, block_mask), and what to put around
    # its capture; None where it cannot. The second argument is the setting.
    rows_only: str = ""  # why only laws of whole rows are asked about, where its input has no tokens
    inside: str = ""  # the path, within wrappers of ours, of the module meant
    first_position: int = 0  # the position id of the first token
    padding: int | None = None  # the number that stands for a pad, where tokens are numbers
    text: Callable[[str], Sample] | None = field(default=None, repr=False)  # a sentence -> inputs, batch of 1
    words: Words | None = field(default=None, repr=False)  # its tokenizer, where its folder has one
    driver: Callable[[], Driver] | None = field(default=None, repr=False)  # how measured laws call it
    decoder: Callable[[], Driver] | None = field(default=None, repr=False)  # of an encoder-decoder: how its decoder is

    def sample(self, length: int, seed: int = 0) -> Sample:
        """Draw inputs with this many tokens; the same seed draws the same."""
        if length < 1:
            raise UsageError(f"{self.name}: length must be at least 1; got {length}")
        if self.max_length is not None and length > self.max_length:
            raise UsageError(
                f"{self.name}: length must be at most {self.max_length}, "
                f"as its position table or its example inputs allow no more; got {length}"
            )
        return self.draw(length, seed)


def labels(count: int) -> tuple[str, ...]:
    """Names for tokens that have no text: x0, x1, ..."""
    return tuple(f"x{index}" for index in range(count))


def seeded(seed: int) -> torch.Generator:
    """A generator of its own, so that drawing neither reads nor moves the global one."""
    return torch.Generator().manual_seed(seed)


def prime_length(minimum: int, avoid: Iterable[int]) -> int:
    """The first prime from ``minimum`` on that is none of ``avoid``: no other axis can pass for the token axis."""
    avoided = set(avoid)
    candidate = max(minimum, 2)
    while candidate in avoided or any(candidate % factor == 0 for factor in range(2, int(candidate**0.5) + 1)):
        candidate += 1
    return candidate


def sizes_of(module: nn.Module) -> set[int]:
    """Every size of every parameter and buffer."""
    tensors = [*module.parameters(), *module.buffers()]
    return {size for tensor in tensors for size in tensor.shape}


def parameters_of(module: nn.Module) -> int:
    """How many numbers are learnt, shared ones counted once."""
    return sum(parameter.numel() for parameter in module.parameters())
