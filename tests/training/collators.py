"""Collators with one planted fault each, and correct ones, with samples of odd lengths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

Sample = dict[str, list[int]]
Batch = dict[str, Tensor]
Collated = tuple[Callable[[list[Sample]], Batch], Sequence[Any]]


def samples(*lengths: int) -> list[Sample]:
    """Samples of these lengths, with labels of the second half only."""
    draw = torch.Generator().manual_seed(5)
    rows = [torch.randint(1, 19, (length,), generator=draw).tolist() for length in lengths]
    return [{"input_ids": row, "labels": [-100] * (len(row) // 2) + row[len(row) // 2 :]} for row in rows]


def row(values: list[int], length: int, filler: int) -> list[int]:
    return values + [filler] * (length - len(values))


def pad(given: list[Sample], *, limit: int = 99) -> Batch:
    """Rows with pads of 0 on the right, cut to a limit."""
    length = min(limit, max(len(x["input_ids"]) for x in given))
    return {
        "input_ids": torch.tensor([row(x["input_ids"][:limit], length, 0) for x in given]),
        "labels": torch.tensor([row(x["labels"][:limit], length, -100) for x in given]),
        "attention_mask": torch.tensor([row([1] * len(x["input_ids"][:limit]), length, 0) for x in given]),
    }


def pack(given: list[Sample]) -> Batch:
    """One row of all samples, with position ids that restart."""
    tokens = [token for x in given for token in x["input_ids"]]
    labels = [label for x in given for label in [-100, *x["labels"][1:]][: len(x["labels"])]]
    positions = [place for x in given for place in range(len(x["input_ids"]))]
    return {
        "input_ids": torch.tensor([tokens]),
        "labels": torch.tensor([labels]),
        "position_ids": torch.tensor([positions]),
    }


# ---------------------------------------------------------------- correct


def good_padded() -> Collated:
    return pad, samples(5, 3, 8)


def good_cut() -> Collated:
    return lambda given: pad(given, limit=6), samples(5, 3, 9)


def good_packed() -> Collated:
    return pack, samples(5, 3, 8)


def good_lengths() -> Collated:
    def collate(given: list[Sample]) -> Batch:
        batch = pack(given)
        ends = torch.tensor([0, *(len(x["input_ids"]) for x in given)]).cumsum(0)
        return {"input_ids": batch["input_ids"], "cu_seq_lens_q": ends}

    return collate, samples(5, 3, 8)


def good_packed_before() -> Collated:
    """Samples that are packed already, and say how long their documents are."""

    def collate(given: list[Any]) -> Batch:
        tokens = torch.tensor([[token for x in given for token in x["input_ids"]]])
        lengths = [length for x in given for length in x["seq_lengths"]]
        positions = torch.tensor([[place for length in lengths for place in range(length)]])
        ends = torch.tensor([0, *lengths]).cumsum(0)
        return {"input_ids": tokens, "position_ids": positions, "cu_seq_lens_q": ends}

    first, second, third = (x["input_ids"] for x in samples(5, 3, 8))
    return collate, [
        {"input_ids": first + second, "seq_lengths": [5, 3]},
        {"input_ids": third, "seq_lengths": [8]},
    ]


def good_shifted() -> Collated:
    """Tokens without the last, labels without the first."""

    def collate(given: list[list[int]]) -> tuple[Tensor, Tensor]:
        rows = torch.tensor(given)
        return rows[:, :-1], rows[:, 1:]

    return collate, [x["input_ids"] for x in samples(7, 7)]  # type: ignore[return-value]


def good_wrapped() -> Collated:
    """All tokens in rows of 6, with the numbers of their samples."""

    def collate(given: list[Sample]) -> Batch:
        tokens = [token for x in given for token in x["input_ids"]]
        numbers = [k for k, x in enumerate(given) for _ in x["input_ids"]]
        rows = range(0, len(tokens) - len(tokens) % 6, 6)
        parts = [[values[k : k + 6] for k in rows] for values in (tokens, numbers)]
        return {"input_ids": torch.tensor(parts[0]), "document_ids": torch.tensor(parts[1])}

    return collate, samples(7, 4, 13)


# ---------------------------------------------------------------- faults


def last_token_dropped() -> Collated:
    """The batch lacks token 4 of sample 0"""

    def collate(given: list[Sample]) -> Batch:
        return pad([{name: values[:-1] for name, values in x.items()} for x in given])

    return collate, samples(5, 3, 8)


def sample_dropped() -> Collated:
    """The batch lacks tokens 0 to 7 of sample 2"""
    return lambda given: pad(given[:-1]), samples(5, 3, 8)


def reversed_tokens() -> Collated:
    """The batch lacks tokens"""

    def collate(given: list[Sample]) -> Batch:
        batch = pad(given)
        batch["input_ids"] = batch["input_ids"].flip(1)  # fault
        return {name: batch[name] for name in ("input_ids", "attention_mask")}

    return collate, samples(8, 8)


def positions_dropped() -> Collated:
    """A row has several samples, and nothing in the batch says where they begin"""

    def collate(given: list[Sample]) -> Batch:
        batch = pack(given)
        return {name: batch[name] for name in ("input_ids", "labels")}

    return collate, samples(5, 3, 8)


def positions_not_restarted() -> Collated:
    """The position id of token 0 of sample 1 is 5, expected 0"""

    def collate(given: list[Sample]) -> Batch:
        batch = pack(given)
        batch["position_ids"] = torch.arange(batch["input_ids"].shape[1])[None]  # fault
        return batch

    return collate, samples(5, 3, 8)


def mask_hides_a_token() -> Collated:
    """The attention mask hides tokens of sample"""

    def collate(given: list[Sample]) -> Batch:
        batch = pad(given)
        batch["attention_mask"] = (batch["input_ids"] > 5).long()  # fault
        return batch

    return collate, samples(15, 13, 18)


def mask_shows_pads() -> Collated:
    """Of no sample, and the mask shows it"""

    def collate(given: list[Sample]) -> Batch:
        batch = pad(given)
        batch["attention_mask"] = torch.ones_like(batch["input_ids"])  # fault
        return batch

    return collate, samples(5, 2, 8)


def prompt_labelled() -> Collated:
    """The labels of sample 0 are others in the batch"""

    def collate(given: list[Sample]) -> Batch:
        batch = pad(given)
        batch["labels"] = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)  # fault
        return batch

    return collate, samples(5, 3, 8)


def lengths_without_the_first() -> Collated:
    """cu_seq_lens_q has 5, 8, 16, which are not the ends of the samples"""

    def collate(given: list[Sample]) -> Batch:
        batch = pack(given)
        ends = torch.tensor([len(x["input_ids"]) for x in given]).cumsum(0)  # fault
        return {"input_ids": batch["input_ids"], "cu_seq_lens_q": ends}

    return collate, samples(5, 3, 8)
