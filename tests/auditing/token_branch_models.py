"""Models whose calls depend on which token ids occur, by what is true of them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

IDS = 30


class Words(nn.Module):
    """An embedding and a cumulative sum: causal and independent of other rows."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.words = nn.Embedding(IDS, 16)
        self.out = nn.Linear(16, 16)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.out(self.words(ids)).cumsum(1)
        return self.changed(ids, x)

    def changed(self, ids: Tensor, x: Tensor) -> Tensor:
        raise NotImplementedError


class MaskOnlyIfPadded(Words):
    """As ESM-2 does: a mask that hides nothing is dropped, which changes no output."""

    def changed(self, ids: Tensor, x: Tensor) -> Tensor:
        pad: Tensor | None = ids.eq(1)
        if not pad.any():  # type: ignore[union-attr]
            pad = None
        return x if pad is None else x * ~pad.unsqueeze(-1)


class RaisesForAnId(Words):
    """A call that it does not accept raises an error."""

    def changed(self, ids: Tensor, x: Tensor) -> Tensor:
        if (ids == 2).any():
            raise ValueError("token 2 is reserved")
        return x


class SameInBothBranches(Words):
    """Two nested branches, of which no output depends."""

    def changed(self, ids: Tensor, x: Tensor) -> Tensor:
        if (ids == 3).any():
            if (ids < 2).any():
                return x + 0
            return x * 1
        return x


class RemembersAnId(Words):
    """Only later calls depend on it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(16))

    def changed(self, ids: Tensor, x: Tensor) -> Tensor:
        x = x + self.seen
        if (ids == 5).any():
            self.seen = self.seen + 1
        return x


class LeaksByOneId(Words):
    """A token anywhere changes every output."""

    def changed(self, ids: Tensor, x: Tensor) -> Tensor:
        return x + 1 if (ids == 5).any() else x


class LeaksByTwoIds(Words):
    """The second condition is read only if the first one is true."""

    def changed(self, ids: Tensor, x: Tensor) -> Tensor:
        return x + 1 if (ids == 5).any() and (ids == 3).any() else x


class LeaksByOneWithoutAnother(Words):
    """One id occurs and the other one does not."""

    def changed(self, ids: Tensor, x: Tensor) -> Tensor:
        return x + 1 if ((ids == 5).any() & ~(ids == 3).any()) else x


class LeaksByAllOfOneId(Words):
    """Every token is the same one."""

    def changed(self, ids: Tensor, x: Tensor) -> Tensor:
        return x + 1 if (ids == 4).all() else x


class LeaksBySmallIds(Words):
    """An id below a number occurs."""

    def changed(self, ids: Tensor, x: Tensor) -> Tensor:
        return x + 1 if (ids < 3).any() else x


class LeaksByTheZero(Words):
    """Ids as booleans: zero is one of them, without a comparison."""

    def changed(self, ids: Tensor, x: Tensor) -> Tensor:
        return x if ids.bool().all() else x + 1


class LeaksByTheZeroOfAll(Words):
    """The same by `all` of integers."""

    def changed(self, ids: Tensor, x: Tensor) -> Tensor:
        return x if ids.all() else x + 1


class LeaksByNot(Words):
    """The same by `logical_not` of integers."""

    def changed(self, ids: Tensor, x: Tensor) -> Tensor:
        return x + 1 if ids.logical_not().any() else x


class AsksWhere(Words):
    """Where an id occurs decides."""

    def changed(self, ids: Tensor, x: Tensor) -> Tensor:
        return x + 1 if (ids[:, -1] == 5).any() else x


class AsksHowMany(Words):
    """How often an id occurs decides."""

    def changed(self, ids: Tensor, x: Tensor) -> Tensor:
        return x + 1 if (ids == 5).sum() > 3 else x


class AsksForNarrowIds(Words):
    """Ids that overflow become others."""

    def changed(self, ids: Tensor, x: Tensor) -> Tensor:
        return x + 1 if ((ids * 64).to(torch.int8) == 64).any() else x


class AsksForBits(Words):
    """A bit of an id decides."""

    def changed(self, ids: Tensor, x: Tensor) -> Tensor:
        return x + 1 if (ids & 16).bool().any() else x


class AsksForEqualTokens(Words):
    """Two equal neighbours decide."""

    def changed(self, ids: Tensor, x: Tensor) -> Tensor:
        return x + 1 if (ids[:, 1:] == ids[:, :-1]).any() else x


class AsksForActivations(Words):
    """The activations decide."""

    def changed(self, ids: Tensor, x: Tensor) -> Tensor:
        return x + 1 if x.sum() > 0 else x


class AsksForActivationsBehindAnId(Words):
    """The activations decide, but only where an id occurs."""

    def changed(self, ids: Tensor, x: Tensor) -> Tensor:
        if (ids == 5).any():
            return x + 1 if x.sum() > 0 else x
        return x


class ComparesWithABuffer(Words):
    """The id is a buffer, whose value another checkpoint may change."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("special", torch.tensor(5))

    def changed(self, ids: Tensor, x: Tensor) -> Tensor:
        special: Any = self.special
        return x + 1 if (ids == special).any() else x


class AsksForNineIds(Words):
    """More branches than are followed."""

    def changed(self, ids: Tensor, x: Tensor) -> Tensor:
        for token in range(9):
            if (ids == token).any():
                x = x * 1
        return x


class AsksForFourIds(Words):
    """More values than every choice of them can be tried."""

    def changed(self, ids: Tensor, x: Tensor) -> Tensor:
        first, second = (ids == 3).any() & (ids == 4).any(), (ids == 5).any() & ~(ids == 6).any()
        return x + 1 if first & second else x


class ReadsANumberOnTheOtherPath(Words):
    """A path that is not taken cannot be recorded."""

    def changed(self, ids: Tensor, x: Tensor) -> Tensor:
        if (ids == 5).any():
            return x + x[0, 0, 0].item()
        return x


class FailsInAnOperatorOnTheOtherPath(Words):
    """An operator fails there in a recording, which hides what comes after it; the sizes fit at no length."""

    def changed(self, ids: Tensor, x: Tensor) -> Tensor:
        if (ids == 5).any():
            try:
                return x @ x
            except RuntimeError:
                return x + 1 if (ids == 3).any() else x
        return x


LAWFUL = (MaskOnlyIfPadded, RaisesForAnId, SameInBothBranches, RemembersAnId)
LEAKING = (
    LeaksByOneId, LeaksByTwoIds, LeaksByOneWithoutAnother, LeaksByAllOfOneId, LeaksBySmallIds, LeaksByTheZero,
    LeaksByTheZeroOfAll, LeaksByNot,
)  # fmt: skip
NOT_FOLLOWED = (
    AsksWhere, AsksHowMany, AsksForNarrowIds, AsksForBits, AsksForEqualTokens, AsksForActivations,
    AsksForActivationsBehindAnId, ComparesWithABuffer, AsksForNineIds,
    AsksForFourIds, ReadsANumberOnTheOtherPath, FailsInAnOperatorOnTheOtherPath,
)  # fmt: skip
