"""The inputs of attention that pass unchanged through a stack of layers, as one object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from orderproof.blocks.kv_cache import KeyValueCache
from orderproof.blocks.sequence_parallel import SequenceParallel
from orderproof.encodings import PositionalEncoding
from orderproof.errors import UsageError

if TYPE_CHECKING:
    from jaxtyping import Bool, Int
    from torch import Tensor


@dataclass(frozen=True, kw_only=True, slots=True)
class AttentionInputs:
    """Positions, masks and state for one attention layer. Raises `UsageError` for options that exclude each other.

    Features are not part of it: they stay a positional argument, where FSDP finds the tensors that need gradients.
    """

    encoding: PositionalEncoding
    positions: Int[Tensor, "*axes_and_batch token"]
    document_ids: Int[Tensor, "*batch token"] | None = None
    """The document of each token of packed rows; a token attends only within its own document."""
    padding_mask: Bool[Tensor, "batch token"] | None = None
    """True at real tokens."""
    mask: Bool[Tensor, "*batch_and_head token key"] | None = None
    """True where a query may attend to a key; it narrows the other masks."""
    cache: KeyValueCache | None = None
    sequence_parallel: SequenceParallel | None = None
    """Set if the tokens are this rank's part of rows that are split over ranks."""
    lengths: Int[Tensor, " batch"] | int | None = None
    """The context length of each row [tokens], for encodings whose `Claims.decode_state` is "length"."""

    def __post_init__(self) -> None:
        if self.sequence_parallel is not None and (self.cache is not None or self.mask is not None):
            raise UsageError("sequence_parallel: expected neither cache nor mask; use document_ids and padding_mask")
