"""The processes a sequence is spread over: how many they are, and which of them this is.

Without a process group there is one rank, and all that ranks do with each other is the identity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from torch import distributed


@dataclass(frozen=True, kw_only=True)
class Ranks:
    """Some ranks, as one of them sees them."""

    number: int
    """Which of them this process is, from 0."""
    count: int
    group: distributed.ProcessGroup | None = None
    """None: all ranks there are."""

    @classmethod
    def here(cls, group: distributed.ProcessGroup | None = None) -> Self:
        """The ranks of a group, or all there are; this process alone where none has been started."""
        if not (distributed.is_available() and distributed.is_initialized()):
            return cls(number=0, count=1)
        return cls(number=distributed.get_rank(group), count=distributed.get_world_size(group), group=group)
