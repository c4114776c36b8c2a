"""The attention weights of every head of the bundled model for two sentences, with its positions and with equal ones.

A weight is stored as one byte. What the order of the tokens changes is computed in float64, before that.
"""

from __future__ import annotations

import base64
import copy
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

    from orderproof.models import Subject

LEVELS = 255  # of a stored weight
MOST_TOKENS = 12  # of a sentence: the page draws 72 pictures of tokens x tokens cells


def all_heads(subject: Subject, sentences: tuple[str, str]) -> dict[str, Any] | None:
    """Weights of all heads and the differences by order, as the page reads them.

    ``maps`` has four texts: with positions for both sentences, then with equal positions. ``gaps`` has the largest
    difference of a weight for each condition, layer and head. None for sentences of other tokens or of too many.
    """
    assert subject.encode_sentence is not None
    tokens = [subject.encode_sentence(sentence).labels for sentence in sentences]
    if Counter(tokens[0]) != Counter(tokens[1]) or len(tokens[0]) > MOST_TOKENS:
        return None
    weights, order = attention_weights(subject, sentences), token_order(*tokens)
    return {
        "maps": [stored_weights(each) for each in weights],
        "gaps": [changed_by_order(weights[k], weights[k + 1], order) for k in (0, 2)],
    }


def attention_weights(subject: Subject, sentences: tuple[str, str]) -> list[Tensor]:
    """Weights [layer, head, query, key] in float64: both sentences with positions, then both with equal positions."""
    import torch

    assert subject.encode_sentence is not None
    samples = [subject.encode_sentence(sentence) for sentence in sentences]
    model = copy.deepcopy(subject.module.get_submodule("model")).double().eval()
    model.set_attn_implementation("eager")  # type: ignore[operator]  # of transformers
    table = model.get_parameter("embeddings.position_embeddings.weight")
    found: list[Tensor] = []
    with torch.no_grad():
        for equal in (False, True):
            if equal:
                table.copy_(table[len(samples[0].labels) // 2].clone())  # the place that the distances of a pair use
            runs = [model(input_ids=sample.inputs[0], output_attentions=True) for sample in samples]
            found += [torch.cat(run.attentions) for run in runs]
    return found


def token_order(first: Sequence[str], second: Sequence[str]) -> list[int]:
    """For each token of the second sentence its place in the first; equal tokens keep their order."""
    left = list(enumerate(first))
    order = []
    for token in second:
        place = next(pair for pair in left if pair[1] == token)
        left.remove(place)
        order.append(place[0])
    return order


def stored_weights(weights: Tensor) -> str:
    """One byte for each weight, in base64."""
    return base64.b64encode(bytes((weights * LEVELS).round().int().flatten().tolist())).decode()


def changed_by_order(first: Tensor, second: Tensor, order: list[int]) -> list[list[float]]:
    """The largest difference of weights [layer][head] once the first sentence is in the order of the second."""
    gaps = (first[:, :, order][:, :, :, order] - second).abs().amax((-2, -1))
    # Two digits are shown.
    return [[float(f"{gap:.2g}") for gap in layer] for layer in gaps.tolist()]
