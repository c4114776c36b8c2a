"""The group of processes that share the tokens of a row, as seen from one of them.

Without a process group there is one rank, and every collective is the identity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from torch import distributed


@dataclass(frozen=True, kw_only=True)
class RankGroup:
    """A process group, seen from one rank."""

    rank: int
    """The rank of this process, from 0."""
    world_size: int
    group: distributed.ProcessGroup | None = None
    """The process group; None: the default group."""

    @classmethod
    def current(cls, group: distributed.ProcessGroup | None = None) -> Self:
        """The given or default process group; this process alone if none is initialized."""
        if not (distributed.is_available() and distributed.is_initialized()):
            return cls(rank=0, world_size=1)
        return cls(rank=distributed.get_rank(group), world_size=distributed.get_world_size(group), group=group)
