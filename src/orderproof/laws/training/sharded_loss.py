"""OP708 sharded_loss: ranks that share a batch have its gradients together.

    sum over ranks of  d loss_rank / d w   =   c * d loss / d w      with c = 1, or the number of ranks

for every parameter w: gradients of ranks are summed, or averaged by what reduces them. Each rank calls the loss with
the whole batch, alone and in a group of two, and the loss takes the shard of its rank. At the logits, each token of the
batch must have the values that it has in the whole batch, and its label one weight. Some labels are left out, so that
ranks have different numbers of them.
Source: Liu et al. 2023, "Ring Attention with Blockwise Transformers", arXiv:2310.01889; broken by a shift of the labels
after the batch is cut, by position ids that restart in each shard, by a mean over the labels of a rank, and by
collectives without a gradient.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, distributed

from orderproof.laws.mixing_kinds import ATTENTION, POSITIONS
from orderproof.laws.training.ranks import alone, on_ranks
from orderproof.laws.training.shards import ModelCall, Shard, model_call, own_shard
from orderproof.laws.training.training_batch import IGNORED, TrainingBatch
from orderproof.laws.training.training_law import Blame, TermComparison, TokenOfBatch, TrainingLaw
from orderproof.laws.training.training_step import TrainingStep

RANKS = 2
EQUAL = 1e-3  # relative: weights that differ by less are equal
COUNTED = 1e-6  # of the largest gradient: an output with a smaller one scores no label
LEAST = 1e-3  # of the largest gradient: the scale of a parameter whose own gradients are smaller
BORDER = (
    "Shift the labels before the batch is cut into shards: the last output of a shard scores the first of the next."
)
COUNTS = "Divide the sum of the terms of each rank by the number of labels of all ranks."
COLLECTIVE = (
    "Gather keys and values by a function with a gradient, as those of torch.distributed.nn.functional: "
    "torch.distributed.all_gather has none."
)


class ShardedLoss(TrainingLaw):
    """The law of this module."""

    def inapplicable_reason(self, step: TrainingStep) -> str | None:
        if step.is_of_run:
            return "a run is not audited on other ranks"
        if not step.asks_for_group:
            return "the loss asks for no process group of torch.distributed"
        shared, *_ = on_ranks(RANKS, lambda: _is_shared(step))
        return None if shared else "the loss gives the whole batch to each rank"

    def comparisons(self, step: TrainingStep) -> Iterator[TermComparison]:
        batch = uneven(step.batch)
        seen, *_ = on_ranks(RANKS, lambda: _seen_by_rank(step, batch))
        if seen["place"] is not None:
            row, token = seen["place"]
            yield TermComparison(
                f"the logits of {RANKS} shards", seen["logits"], seen["control"],
                found=f"the logits of token {token} in row {row} are others in a shard", blame=Blame.SHARD,
                calls=(TokenOfBatch(batch, row, token),) * 2,
            )  # fmt: skip
            yield _of_terms(batch, seen)
            if seen["logits"] > EQUAL or seen["lost"] or seen["spread"] > EQUAL:
                return  # what else differs follows from it
        yield _of_gradients(batch, seen)


def uneven(batch: TrainingBatch) -> TrainingBatch:
    """The batch without most labels of its first tokens and of half of its first row."""
    labels, (rows, tokens) = batch.labels.clone(), batch.labels.shape
    labels[:, : tokens // 4] = IGNORED
    if rows > 1:
        labels[0, : tokens // 2] = IGNORED
    return batch.replaced("labels", labels)


def _of_terms(batch: TrainingBatch, seen: dict[str, Any]) -> TermComparison:
    if seen["lost"]:
        (row, token), text = seen["lost"][0], f"{len(seen['lost'])} labels are lost on all ranks"
        index = min(token + 1, batch.tokens.shape[1] - 1)
        other = batch.with_other_label(row, index - batch.shift)
        return TermComparison(
            f"the terms of {RANKS} shards", 1.0, seen["least"], remedy=BORDER, blame=Blame.TERMS,
            found=f"{text}, as that of token {index} of row {row}",
            calls=(TokenOfBatch(batch, row, index), TokenOfBatch(other, row, index)),
        )  # fmt: skip
    apart = seen["spread"]
    return TermComparison(
        f"the terms of {RANKS} shards", apart if apart > EQUAL else 0.0, seen["least"],
        found="a label counts the more, the fewer its rank has", remedy=COUNTS, blame=Blame.REDUCTION,
    )  # fmt: skip


def _of_gradients(batch: TrainingBatch, seen: dict[str, Any]) -> TermComparison:
    factor, is_known = seen["factor"], min(abs(seen["factor"] - c) for c in (1, RANKS)) <= EQUAL * RANKS
    found, difference, remedy = f"the gradient of {seen['worst']} differs", seen["rest"], COLLECTIVE
    if difference <= EQUAL and not is_known:
        found, remedy = f"the gradients of all ranks together are {factor:.3g} times those of one process", COUNTS
        difference = abs(factor - 1)
    row, token = int(batch.real.any(1).nonzero()[0]), batch.tokens.shape[1] - 1
    return TermComparison(
        f"the gradients of {RANKS} ranks", difference, seen["control"], found=found, remedy=remedy,
        blame=Blame.COLLECTIVE if remedy == COLLECTIVE else Blame.REDUCTION,
        calls=(TokenOfBatch(batch, row, token),) * 2,
    )  # fmt: skip


def _is_shared(step: TrainingStep) -> bool:
    """In a rank: True if it has not the whole batch."""
    with alone():
        whole = model_call(step, step.batch).tokens
    part = model_call(step, step.batch).tokens
    return whole.shape != part.shape or not torch.equal(whole, part)


def _seen_by_rank(step: TrainingStep, batch: TrainingBatch) -> dict[str, Any]:
    """In a rank: the differences of all ranks together from the whole batch."""
    where = torch.zeros_like(batch.real)
    where[:, 0] = batch.real[:, 0]
    with alone():
        whole, other = model_call(step, batch), model_call(step, batch.with_other_tokens(where))
    part = model_call(step, batch)
    control = max(_differences(whole.parameters, other.parameters).values())
    result: dict[str, Any] = {"place": None, "control": control, **_gradient_differences(whole, part)}
    shard = own_shard(whole.tokens, part.tokens)
    if shard is not None:
        result |= _differences_at_logits(whole, part, shard)
    return result


def _differences_at_logits(whole: ModelCall, part: ModelCall, shard: Shard) -> dict[str, Any]:
    expected = shard.of(whole.logits)
    apart = torch.zeros(whole.logits.shape[:2], dtype=torch.float64)
    weights = torch.zeros_like(apart)
    rows, columns = torch.meshgrid(shard.rows, shard.columns, indexing="ij")
    apart[rows, columns] = (expected - part.logits).abs().amax(-1).double() / float(whole.logits.abs().max())
    weights[rows, columns] = part.gradient.norm(dim=-1).double()
    distributed.all_reduce(apart)
    distributed.all_reduce(weights)
    sizes = whole.gradient.norm(dim=-1).double()
    counted, largest = sizes > COUNTED * sizes.max(), float(weights.max())
    lost = counted & (weights <= COUNTED * largest)
    ratios = weights[counted & ~lost] / sizes[counted & ~lost]
    spread = float((ratios.max() - ratios.min()) / ratios.max()) if len(ratios) else 0.0
    return {
        "logits": float(apart.max()), "place": list(divmod(int(apart.argmax()), apart.shape[1])),
        "lost": lost.nonzero().tolist(), "spread": spread,
        "least": float(sizes[counted].min() / sizes.max()) if bool(counted.any()) else 0.0,
    }  # fmt: skip


def _gradient_differences(whole: ModelCall, part: ModelCall) -> dict[str, Any]:
    together = {name: gradient.clone() for name, gradient in part.parameters.items()}
    for gradient in together.values():
        distributed.all_reduce(gradient)
    product = sum(float((together[name] * x).double().sum()) for name, x in whole.parameters.items())
    factor = product / sum(float((x * x).double().sum()) for x in whole.parameters.values())
    scaled = {name: x / factor for name, x in together.items()} if factor else together
    differences = _differences(whole.parameters, scaled)
    worst = max(differences, key=lambda name: differences[name])
    return {"factor": factor, "rest": differences[worst], "worst": worst}


def _differences(expected: dict[str, Tensor], actual: dict[str, Tensor]) -> dict[str, float]:
    floor = LEAST * max(float(x.abs().max()) for x in expected.values())
    return {
        name: float((x - actual[name]).abs().max()) / max(float(x.abs().max()), floor, 1e-30)
        for name, x in expected.items()
    }


LAW = ShardedLoss(
    code="OP708",
    name="sharded_loss",
    statement="Ranks that share a batch have its gradients together.",
    trait="has the gradients of a batch from its shards",
    expectation={"training step": "holds"},
    may_lack=True,
    assumption=f"measured on {RANKS} processes with gloo, in evaluation mode, without dropout and autocast",
    remedies={
        ATTENTION: "Let each query of a shard see the keys of all ranks up to its own place in the row.",
        POSITIONS: "Give each token of a shard the position that it has in the row.",
    },
    remedy="Let tokens of a shard have the logits that they have in the whole batch: their positions, the keys before.",
)
