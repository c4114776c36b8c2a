"""One model trained on rows that are spread over ranks.

    part      of each row, this rank's tokens with their targets and their positions in the row
    scores    the model's, for these tokens, which attend to those of all ranks
    loss      sum over ranks of the losses of their tokens / sum over ranks of how many are scored
    gather    each rank has the gradient of its share of the loss: they are added up

Every rank is given the same batch and has the same weights, so with one rank all of this is the plain step, bit for
bit: the part is the row, whatever its length, the model is called with it alone, and the sums have one term. Where
weights themselves are too many for one rank, FSDP2 (`fully_shard`) keeps a part of each on every rank, brings them
together layer by layer, and adds up their gradients itself; those of the encoding, which are few and have shapes of
their own (a single number, in `fire`), stay whole on all. The length of such a gradient, for clipping, is that of all
its parts together and of what is whole, once.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Literal, get_args

import torch
from torch import Tensor, distributed, nn
from torch.nn import functional

from orderproof.blocks import Transformer
from orderproof.blocks.spread import Gather, Ranks, Split, Ulysses, own_places
from orderproof.blocks.spread.summing import sum_gradients, summed
from orderproof.errors import UsageError
from orderproof.lab.question import UNSCORED

if TYPE_CHECKING:
    from jaxtyping import Float, Int

Way = Literal["gather", "ulysses"]


class Spreading:
    """How rows are spread over ranks, for a loop that trains."""

    def __init__(
        self, *, way: Way = "gather", split: Split = "zig-zag", fsdp: bool = False, ranks: Ranks | None = None
    ) -> None:
        if way not in get_args(Way):
            raise UsageError(f"way: expected 'gather' or 'ulysses', got {way!r}")
        self.ranks = Ranks.here() if ranks is None else ranks
        self.attention = (Gather if way == "gather" else Ulysses)(self.ranks)
        self.split: Split = split
        self.fsdp = fsdp

    def prepare(self, model: Transformer) -> None:
        """Give all ranks the weights of the first; with FSDP2, a part of each to every rank."""
        if self.ranks.count > 1:
            for held in (*model.parameters(), *model.buffers()):
                distributed.broadcast(held.detach(), group=self.ranks.group, group_src=0)
        if self.fsdp:
            _shard(model, self.ranks)

    def part(
        self, tokens: Int[Tensor, "row token"], targets: Int[Tensor, "row token"]
    ) -> tuple[Int[Tensor, "row own_token"], Int[Tensor, "row own_token"], Int[Tensor, " own_token"]]:
        """What this rank has of each row: some tokens, their targets, and their positions in the row."""
        split = "contiguous" if self.ranks.count == 1 else self.split  # one rank has an odd row too
        own = own_places(tokens.shape[1], self.ranks, split=split, device=tokens.device)
        return tokens[:, own], targets[:, own], own

    def reduce(self, loss_sum: Float[Tensor, ""], count: Int[Tensor, ""]) -> Float[Tensor, ""]:
        """The mean over the scored tokens of all ranks; working backward from it gives this rank's share."""
        return summed(loss_sum, self.ranks) / summed(count, self.ranks).clamp(min=1)

    def loss(
        self, model: Transformer, tokens: Int[Tensor, "row token"], targets: Int[Tensor, "row token"]
    ) -> Float[Tensor, ""]:
        """The mean cross-entropy [nats] over the scored tokens of the whole batch, alike on all ranks."""
        own, wanted, positions = self.part(tokens, targets)
        with warnings.catch_warnings():  # FSDP2 warns of changing the scores in place, which nobody does
            warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view", category=UserWarning)
            alone = self.ranks.count == 1
            scores = model(own) if alone else model(own, positions, spread=self.attention)
        lost = functional.cross_entropy(scores.flatten(0, 1), wanted.flatten(), ignore_index=UNSCORED, reduction="sum")
        return self.reduce(lost, (wanted != UNSCORED).sum())

    def gather(self, model: Transformer) -> None:
        """Add up the gradients over ranks; those of weights that FSDP2 keeps have been already."""
        sum_gradients((model.encoding if self.fsdp else model).parameters(), self.ranks)

    def clip(self, model: Transformer, largest: float) -> None:
        """Make the whole gradient no longer than this, once it is gathered: one length, over all weights and ranks."""
        trained = [p for p in model.parameters() if p.grad is not None]
        if not self.fsdp:
            nn.utils.clip_grad_norm_(trained, largest, foreach=True)
            return
        parts, whole = divided(trained)
        kinds = [some for some in (parts, whole) if some]
        lengths = [entire(nn.utils.get_total_norm([p.grad for p in some if p.grad is not None])) for some in kinds]
        for some in kinds:
            nn.utils.clip_grads_with_norm_(some, largest, torch.linalg.vector_norm(torch.stack(lengths)))

    def prepare_optimiser(self, optimiser: torch.optim.Optimizer) -> None:
        """With FSDP2, a group of their own for the weights that are kept whole: one call of torch's takes one kind."""
        for group in list(optimiser.param_groups) if self.fsdp else []:
            group["params"], whole = divided(group["params"])
            if whole:
                optimiser.add_param_group({**group, "params": whole})


def divided(parameters: list[nn.Parameter]) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """Those that FSDP2 keeps a part of on each rank, and those that are whole."""
    from torch.distributed.tensor import DTensor

    parts: list[nn.Parameter] = [p for p in parameters if isinstance(p, DTensor)]
    return parts, [p for p in parameters if not isinstance(p, DTensor)]


def entire(x: Tensor) -> Tensor:
    """A tensor brought together from all ranks, where each has a part of it; all of them must ask."""
    from torch.distributed.tensor import DTensor

    return x.full_tensor() if isinstance(x, DTensor) else x


def _shard(model: Transformer, ranks: Ranks) -> None:
    """FSDP2, with gradients that are sums over ranks: the loss is a mean over all their tokens already."""
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.fsdp import FSDPModule, fully_shard

    if not distributed.is_initialized():
        raise UsageError("fsdp: expected ranks started by torchrun, got one process without a process group")
    group = distributed.group.WORLD if ranks.group is None else ranks.group
    assert group is not None
    mesh = DeviceMesh.from_group(group, next(model.parameters()).device.type)
    whole = set(model.encoding.parameters())
    for layer in (*model.stack.layers, model):
        fully_shard(layer, mesh=mesh, ignored_params=whole)
    for module in model.modules():
        if isinstance(module, FSDPModule):
            module.set_gradient_divide_factor(1.0)
            module.set_force_sum_reduction_for_comms(True)  # gloo has no sum that multiplies first
