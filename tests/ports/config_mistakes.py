"""Mistakes that a reader of `config.json` may make: one key has another value when the engine reads it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

LINEAR = 'rope_parameters={"rope_type":"linear","factor":4.0,"rope_theta":10000.0}'
LLAMA3 = (
    'rope_parameters={"rope_type":"llama3","factor":4.0,"rope_theta":10000.0,"low_freq_factor":1.0,'
    '"high_freq_factor":4.0,"original_max_position_embeddings":16}'
)

Edit = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Fork:
    """One mistake of a reader."""

    subject: str
    edit: Edit  # changes the content of config.json
    law: str
    setting: str  # that the audit is to name
    assumed: str  # with this value
    instead: Mapping[str, Edit] = field(default_factory=dict)  # by engine, where the edit means something else to it


def key(**values: Any) -> Edit:
    """The keys have these values, under each name that a version of transformers gives them."""

    def edit(config: dict[str, Any]) -> None:
        config.update({name: value for name, value in values.items() if name in config})

    return edit


def rope(**values: Any) -> Edit:
    """The rotary parameters have these values, and so have the keys that older versions wrote."""

    def edit(config: dict[str, Any]) -> None:
        config["rope_parameters"] = {**config["rope_parameters"], **values}
        config.update(values)

    return edit


def no_scaling(config: dict[str, Any]) -> None:
    config["rope_parameters"] = {"rope_type": "default", "rope_theta": config["rope_parameters"]["rope_theta"]}
    config.update({name: None for name in ("rope_scaling",) if name in config})


def scale_of_head(config: dict[str, Any]) -> None:
    config["query_pre_attn_scalar"] = config["head_dim"]


FORKS: Mapping[str, Fork] = {
    "another base": Fork("arch:llama", rope(rope_theta=1e6), "same_prefill", "rope_parameters.rope_theta", "1e+06"),
    "no linear scaling": Fork(
        f"arch:llama?{LINEAR}", no_scaling, "same_prefill", "rope_parameters.rope_type", "no scaling"
    ),
    "no llama3 scaling": Fork(
        f"arch:llama?{LLAMA3}", no_scaling, "same_prefill", "rope_parameters.rope_type", "no scaling"
    ),
    "another epsilon": Fork("arch:llama", key(rms_norm_eps=1e-3), "same_prefill", "rms_norm_eps", "0.001"),
    "another activation": Fork("arch:llama", key(hidden_act="gelu"), "same_prefill", "hidden_act", "gelu"),
    "another epsilon of GPT-2": Fork(
        "arch:gpt2", key(layer_norm_epsilon=1e-3), "same_prefill", "layer_norm_epsilon", "0.001"
    ),
    "another activation of GPT-2": Fork(
        "arch:gpt2", key(activation_function="relu"), "same_prefill", "activation_function", "relu"
    ),
    "window plus one": Fork("arch:mistral", key(sliding_window=7), "same_past_window", "sliding_window", "7"),
    "no window": Fork("arch:mistral", key(sliding_window=None), "same_past_window", "sliding_window", "no window"),
    "no softcap of logits": Fork(
        "arch:gemma2", key(final_logit_softcapping=1e6), "same_prefill", "final_logit_softcapping", "no softcap"
    ),
    "no softcap of scores": Fork(
        "arch:gemma2?attn_logit_softcapping=2.0", key(attn_logit_softcapping=1e6), "same_prefill",
        "attn_logit_softcapping", "no softcap",
        {"vllm": key(attn_logit_softcapping=None)},  # a cap of a million is not the same as none in its kernel
    ),
    "scale of the head": Fork(
        "arch:gemma2?query_pre_attn_scalar=64", scale_of_head, "same_prefill", "scale of scores",
        "from the width of a head",
    ),
    "all features rotated": Fork(
        "arch:phi", rope(partial_rotary_factor=1.0), "same_prefill", "rope_parameters.partial_rotary_factor", "1"
    ),
    "weights of experts divided": Fork(
        "arch:qwen3_moe", key(norm_topk_prob=True), "same_prefill", "norm_topk_prob", "True"
    ),
    "attention and MLP in turn": Fork(
        "arch:gpt_neox", key(use_parallel_residual=False), "same_prefill", "use_parallel_residual", "False"
    ),
    "no multiplier of embeddings": Fork(
        "arch:granite?embedding_multiplier=3.0", key(embedding_multiplier=1.0), "same_prefill", "embedding_multiplier",
        "1.0",
    ),
    "no multiplier of residuals": Fork(
        "arch:granite?residual_multiplier=0.5", key(residual_multiplier=1.0), "same_prefill", "residual_multiplier",
        "1.0",
    ),
    "no scale of logits": Fork("arch:cohere", key(logit_scale=1.0), "same_prefill", "logit_scale", "1.0"),
    "no clipping": Fork("arch:olmo?clip_qkv=0.5", key(clip_qkv=None), "same_prefill", "clip_qkv", "absent"),
}  # fmt: skip
