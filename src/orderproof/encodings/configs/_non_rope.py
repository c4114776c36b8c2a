"""Encodings without rope parameters: tables, sinusoids, biases, and older rotary models.

BLOOM's bias is a slope times the key's position, which differs from ALiBi by a constant per query that softmax ignores.
The score scales of T5 and MPT are not part of the encoding.
"""

from __future__ import annotations

from collections.abc import Callable

from orderproof.encodings._encoding import PositionalEncoding
from orderproof.encodings.alibi import ALiBi
from orderproof.encodings.configs._config_values import config_error, head_width, required_attribute
from orderproof.encodings.configs._model_types import ROPE_MODEL_TYPES
from orderproof.encodings.configs._rotary import rotary_of
from orderproof.encodings.learned_absolute import LearnedAbsolute
from orderproof.encodings.rotary import Rotary
from orderproof.encodings.sinusoidal import Sinusoidal
from orderproof.encodings.t5 import T5Bias


def _learned(config: object, layer: int) -> PositionalEncoding:
    del layer
    kind = getattr(config, "position_embedding_type", None)
    if kind not in (None, "absolute"):
        raise config_error(config, f"expected position_embedding_type 'absolute', got {kind!r}")
    return LearnedAbsolute(
        int(required_attribute(config, "max_position_embeddings")), int(required_attribute(config, "hidden_size"))
    )


def _distilbert(config: object, layer: int) -> PositionalEncoding:
    if required_attribute(config, "sinusoidal_pos_embds"):
        return Sinusoidal(int(required_attribute(config, "dim")))
    return _learned(config, layer)


def _marian(config: object, layer: int) -> PositionalEncoding:
    del layer
    return Sinusoidal(int(required_attribute(config, "d_model")), layout="concatenated")


def _gptj(config: object, layer: int) -> PositionalEncoding:
    del layer
    rotated = getattr(config, "rotary_dim", None)
    width = head_width(config)
    if rotated is None:
        raise config_error(config, "expected rotary_dim, got none; its angles then depend on the model width")
    return Rotary(width, layout="interleaved", rotary_width=int(rotated) if rotated != width else None)


def _roformer(config: object, layer: int) -> PositionalEncoding:
    del layer
    if required_attribute(config, "rotary_value"):
        raise config_error(config, "rotary_value also rotates values, which no encoding here supports")
    return Rotary(head_width(config), layout="interleaved")


def _esm(config: object, layer: int) -> PositionalEncoding:
    del layer
    kind = required_attribute(config, "position_embedding_type")
    if kind != "rotary":
        raise config_error(config, f"expected position_embedding_type 'rotary', got {kind!r}")
    return Rotary(head_width(config), base=float(required_attribute(config, "rope_theta")))


def _falcon(config: object, layer: int) -> PositionalEncoding:
    if required_attribute(config, "alibi"):
        raise config_error(config, "alibi is divided by sqrt(head_dim) with the scores, unlike ALiBi here")
    return rotary_of(config, layer, ROPE_MODEL_TYPES["llama"])


def _bloom(config: object, layer: int) -> PositionalEncoding:
    del layer
    return ALiBi(int(required_attribute(config, "n_head")))


def _mpt(config: object, layer: int) -> PositionalEncoding:
    del layer
    attention = required_attribute(config, "attn_config")
    if not attention.alibi:
        return LearnedAbsolute(
            int(required_attribute(config, "max_seq_len")), int(required_attribute(config, "d_model"))
        )
    if attention.alibi_bias_max != 8:
        raise config_error(config, f"alibi_bias_max is {attention.alibi_bias_max}; the slopes of ALiBi end at 2 ** -8")
    return ALiBi(int(required_attribute(config, "n_heads")))


def _t5(config: object, layer: int) -> PositionalEncoding:
    del layer
    if required_attribute(config, "is_encoder_decoder"):
        raise config_error(
            config, "expected the config of an encoder or a decoder, such as model.encoder.config, got one of both"
        )
    return T5Bias(
        int(required_attribute(config, "num_heads")),
        bidirectional=not required_attribute(config, "is_decoder"),
        buckets=int(required_attribute(config, "relative_attention_num_buckets")),
        max_distance=int(required_attribute(config, "relative_attention_max_distance")),
    )


NON_ROPE_BUILDERS: dict[str, Callable[[object, int], PositionalEncoding]] = {
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
