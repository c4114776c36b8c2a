"""Train one model on several ranks, each of which holds a part of the tokens of every row.

    shard_batch        this rank's tokens of each row, with their targets and their positions in the row
    scores             of these tokens, whose queries attend to the keys of all ranks
    loss               sum over ranks of the losses of their tokens / sum over ranks of the scored tokens
    reduce_gradients   each rank has the gradient of its share of the loss; the shares are summed

Every rank receives the same batch and has the same weights. With one rank each operation is that of a single process,
bit for bit: the shard is the whole row, the model is called with it alone, and the sums have one term.

With FSDP2 (`fully_shard`) each rank stores a shard of every weight, gathers the weights layer by layer, and FSDP2 sums
their gradients. The weights of the encoding are few and some are scalars, so they are replicated. The norm for clipping
is that of the whole gradient: the shards of all ranks, and the replicated weights once.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Literal, get_args

import torch
from torch import Tensor, distributed, nn
from torch.nn import functional

from orderproof.blocks import Transformer
from orderproof.blocks.sequence_parallel import AllGatherKV, RankGroup, TokenSplit, Ulysses, local_token_indices
from orderproof.blocks.sequence_parallel.all_reduce import all_reduce_gradients, all_reduce_sum
from orderproof.errors import UsageError
from orderproof.lab.question import UNSCORED

if TYPE_CHECKING:
    from jaxtyping import Float, Int

SequenceParallelMethod = Literal["gather", "ulysses"]


class DistributedStrategy:
    """A `TrainingStrategy` over ranks: sequence parallelism, and optionally FSDP2.

    ``method`` is how queries meet the keys of other ranks, ``split`` which tokens a rank holds, and ``fsdp`` whether
    the weights are sharded too. ``ranks`` defaults to those of the current process group.
    """

    def __init__(
        self,
        *,
        method: SequenceParallelMethod = "gather",
        split: TokenSplit = "zig-zag",
        fsdp: bool = False,
        ranks: RankGroup | None = None,
    ) -> None:
        if method not in get_args(SequenceParallelMethod):
            raise UsageError(f"method: expected 'gather' or 'ulysses', got {method!r}")
        self.method = method
        self.ranks = RankGroup.current() if ranks is None else ranks
        self.attention = (AllGatherKV if method == "gather" else Ulysses)(self.ranks)
        self.split: TokenSplit = split
        self.fsdp = fsdp

    def prepare_model(self, model: Transformer) -> None:
        """Broadcast the weights of the first rank; with FSDP2, shard them. Raises `UsageError` without ranks."""
        if self.ranks.world_size > 1:
            for weight in (*model.parameters(), *model.buffers()):
                distributed.broadcast(weight.detach(), group=self.ranks.group, group_src=0)
        if self.fsdp:
            _fully_shard(model, self.ranks)

    def prepare_optimiser(self, optimiser: torch.optim.Optimizer) -> None:
        """With FSDP2, move the replicated weights to a group: torch's fused optimisers take one kind per call."""
        for group in list(optimiser.param_groups) if self.fsdp else []:
            group["params"], replicated = partition_sharded(group["params"])
            if replicated:
                optimiser.add_param_group({**group, "params": replicated})

    def shard_batch(
        self, tokens: Int[Tensor, "row token"], targets: Int[Tensor, "row token"]
    ) -> tuple[Int[Tensor, "row own_token"], Int[Tensor, "row own_token"], Int[Tensor, " own_token"]]:
        """Return the tokens of this rank in each row, their targets, and their positions in the row."""
        split = "contiguous" if self.ranks.world_size == 1 else self.split  # one rank can hold an odd number of tokens
        own = local_token_indices(tokens.shape[1], self.ranks, split=split, device=tokens.device)
        return tokens[:, own], targets[:, own], own

    def mean_over_ranks(self, loss_sum: Float[Tensor, ""], count: Int[Tensor, ""]) -> Float[Tensor, ""]:
        """The mean over the scored tokens of all ranks; its backward pass gives the gradient of this rank's share."""
        return all_reduce_sum(loss_sum, self.ranks) / all_reduce_sum(count, self.ranks).clamp(min=1)

    def loss(
        self,
        model: Transformer,
        tokens: Int[Tensor, "row token"],
        targets: Int[Tensor, "row token"],
        positions: Int[Tensor, "row token"] | None = None,
    ) -> Float[Tensor, ""]:
        """The mean cross-entropy [nats] over the scored tokens of the whole batch, the same on all ranks."""
        if positions is not None:
            raise UsageError("random_positions: expected none in training over several ranks; leave it out")
        own_tokens, own_targets, own_positions = self.shard_batch(tokens, targets)
        with warnings.catch_warnings():  # FSDP2 warns about in-place changes of the output; there are none here
            warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view", category=UserWarning)
            alone = self.ranks.world_size == 1
            scores = model(own_tokens) if alone else model(own_tokens, own_positions, sequence_parallel=self.attention)
        loss_sum = functional.cross_entropy(
            scores.flatten(0, 1), own_targets.flatten(), ignore_index=UNSCORED, reduction="sum"
        )
        return self.mean_over_ranks(loss_sum, (own_targets != UNSCORED).sum())

    def reduce_gradients(self, model: Transformer) -> None:
        """Sum the gradients over ranks, except those that FSDP2 has summed already."""
        all_reduce_gradients((model.encoding if self.fsdp else model).parameters(), self.ranks)

    def clip_gradients(self, model: Transformer, max_norm: float) -> None:
        """Scale the reduced gradient so that its norm over all weights and ranks is at most ``max_norm``."""
        trained = [p for p in model.parameters() if p.grad is not None]
        if not self.fsdp:
            nn.utils.clip_grad_norm_(trained, max_norm, foreach=True)
            return
        groups = [group for group in partition_sharded(trained) if group]
        norms = [
            full_tensor(nn.utils.get_total_norm([p.grad for p in group if p.grad is not None])) for group in groups
        ]
        for group in groups:
            nn.utils.clip_grads_with_norm_(group, max_norm, torch.linalg.vector_norm(torch.stack(norms)))


def partition_sharded(parameters: list[nn.Parameter]) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """The parameters that FSDP2 shards over the ranks, and those that are replicated."""
    from torch.distributed.tensor import DTensor

    sharded: list[nn.Parameter] = [p for p in parameters if isinstance(p, DTensor)]
    return sharded, [p for p in parameters if not isinstance(p, DTensor)]


def full_tensor(x: Tensor) -> Tensor:
    """The whole of a sharded tensor; every rank must call it. Other tensors are returned unchanged."""
    from torch.distributed.tensor import DTensor

    return x.full_tensor() if isinstance(x, DTensor) else x


def _fully_shard(model: Transformer, ranks: RankGroup) -> None:
    """Apply FSDP2 with gradients summed over ranks, because the loss is a mean over the tokens of all ranks."""
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.fsdp import FSDPModule, fully_shard

    if not distributed.is_initialized():
        raise UsageError("fsdp: expected ranks started by torchrun, got one process without a process group")
    group = distributed.group.WORLD if ranks.group is None else ranks.group
    assert group is not None
    mesh = DeviceMesh.from_group(group, next(model.parameters()).device.type)
    replicated = set(model.encoding.parameters())
    for layer in (*model.stack.layers, model):
        fully_shard(layer, mesh=mesh, ignored_params=replicated)
    for module in model.modules():
        if isinstance(module, FSDPModule):
            module.set_gradient_divide_factor(1.0)
            module.set_force_sum_reduction_for_comms(True)  # gloo has no reduction with a factor
