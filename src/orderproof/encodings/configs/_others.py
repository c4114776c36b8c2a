"""Encodings that are not rope parameters: tables, waves, biases, and the older rotary models.

Only what a configuration plainly says. (BLOOM's bias is a slope times the key's place, which differs from ALiBi by a
number for each query: softmax does not see it. T5's and MPT's own scales of the scores are theirs to apply.)
"""

from __future__ import annotations

from collections.abc import Callable

from orderproof.encodings._encoding import PositionalEncoding
from orderproof.encodings.alibi import ALiBi
from orderproof.encodings.configs._models import MODELS
from orderproof.encodings.configs._read import attribute, head_width, refusal
from orderproof.encodings.configs._rotary import rotary_of
from orderproof.encodings.learned import Learned
from orderproof.encodings.rotary import Rotary
from orderproof.encodings.sinusoidal import Sinusoidal
from orderproof.encodings.t5 import T5Bias


def _learned(config: object, layer: int) -> PositionalEncoding:
    del layer
    kind = getattr(config, "position_embedding_type", None)
    if kind not in (None, "absolute"):
        raise refusal(config, f"expected position_embedding_type 'absolute', got {kind!r}")
    return Learned(int(attribute(config, "max_position_embeddings")), int(attribute(config, "hidden_size")))


def _distilbert(config: object, layer: int) -> PositionalEncoding:
    if attribute(config, "sinusoidal_pos_embds"):
        return Sinusoidal(int(attribute(config, "dim")))
    return _learned(config, layer)


def _marian(config: object, layer: int) -> PositionalEncoding:
    del layer
    return Sinusoidal(int(attribute(config, "d_model")), layout="concatenated")


def _gptj(config: object, layer: int) -> PositionalEncoding:
    del layer
    turned = getattr(config, "rotary_dim", None)
    width = head_width(config)
    if turned is None:
        raise refusal(config, "rotary_dim is none: its angles are then those of the whole model, not of a head")
    return Rotary(width, layout="interleaved", rotary_width=int(turned) if turned != width else None)


def _roformer(config: object, layer: int) -> PositionalEncoding:
    del layer
    if attribute(config, "rotary_value"):
        raise refusal(config, "rotary_value turns the values too, which no encoding here does")
    return Rotary(head_width(config), layout="interleaved")


def _esm(config: object, layer: int) -> PositionalEncoding:
    del layer
    kind = attribute(config, "position_embedding_type")
    if kind != "rotary":
        raise refusal(config, f"expected position_embedding_type 'rotary', got {kind!r}")
    return Rotary(head_width(config), base=float(attribute(config, "rope_theta")))


def _falcon(config: object, layer: int) -> PositionalEncoding:
    if attribute(config, "alibi"):
        raise refusal(config, "alibi is divided by sqrt(head_dim) together with the scores, which ALiBi is not")
    return rotary_of(config, layer, MODELS["llama"])


def _bloom(config: object, layer: int) -> PositionalEncoding:
    del layer
    return ALiBi(int(attribute(config, "n_head")))


def _mpt(config: object, layer: int) -> PositionalEncoding:
    del layer
    attention = attribute(config, "attn_config")
    if not attention.alibi:
        return Learned(int(attribute(config, "max_seq_len")), int(attribute(config, "d_model")))
    if attention.alibi_bias_max != 8:
        raise refusal(config, f"alibi_bias_max is {attention.alibi_bias_max}; the slopes of ALiBi end at 2 ** -8")
    return ALiBi(int(attribute(config, "n_heads")))


def _t5(config: object, layer: int) -> PositionalEncoding:
    del layer
    if attribute(config, "is_encoder_decoder"):
        raise refusal(config, "it holds an encoder and a decoder; give the config of one, as model.encoder.config is")
    return T5Bias(
        int(attribute(config, "num_heads")),
        bidirectional=not attribute(config, "is_decoder"),
        buckets=int(attribute(config, "relative_attention_num_buckets")),
        max_distance=int(attribute(config, "relative_attention_max_distance")),
    )


OTHERS: dict[str, Callable[[object, int], PositionalEncoding]] = {
    "bert": _learned,
    "bloom": _bloom,
    "codegen": _gptj,
    "distilbert": _distilbert,
    "electra": _learned,
    "esm": _esm,
    "falcon": _falcon,
    "gpt2": _learned,
    "gpt_bigcode": _learned,
    "gpt_neo": _learned,
    "gptj": _gptj,
    "marian": _marian,
    "mpt": _mpt,
    "mt5": _t5,
    "pegasus": _marian,
    "roformer": _roformer,
    "t5": _t5,
    "umt5": _t5,
}
