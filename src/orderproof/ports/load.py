"""The reference for a subject: an architecture by name, a checkpoint folder, or a transformers model."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from orderproof.errors import CheckpointError, SubjectError, UsageError, first_line
from orderproof.library_messages import suppress_warnings
from orderproof.models import Subject, load
from orderproof.models.hf import architectures, checkpoint
from orderproof.models.hf.build_subject import use_batched_experts
from orderproof.models.hf.export_patches import transformers_library
from orderproof.models.hf.model_class import model_class, select_attention_backend
from orderproof.models.tiny import fixed_sizes
from orderproof.models.tiny.candidates import tiny_config_candidates
from orderproof.models.tiny.size_limit import limit_parameters
from orderproof.ports.encoder_reference import EncoderReference
from orderproof.ports.module_reference import module_reference
from orderproof.ports.pooling import Pooling, read_pooling
from orderproof.ports.reference import Reference
from orderproof.seeded_random import seeded_random
from orderproof.subject_spec import check_folder, check_spec

TINY_WINDOW = 6  # [tokens]
MAX_PATTERN = 8  # layers
SIZES: Mapping[str, Mapping[str, Any]] = {  # that an engine computes from others; None: as the configuration does
    "deepseek_v2": {"n_group": 1, "topk_group": 1},
    "falcon": {"ffn_hidden_size": None},
    "falcon_h1": {"num_attention_heads": 4, "num_key_value_heads": 2},
    "gpt_bigcode": {"num_key_value_heads": 1},
    "gpt_neox": {"intermediate_size": 256},
    "granitemoehybrid": {"mamba_n_heads": 4, "mamba_d_head": "auto"},
    "lfm2_moe": {"num_dense_layers": 1},
}
TINY_VALUES: Mapping[str, Any] = {  # of keys that a configuration has
    "sliding_window": TINY_WINDOW, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
SUPPORTED = "arch:NAME, a checkpoint folder or a transformers model with a language-model head"


def load_reference(
    subject: Any, *, seed: int = 0, head_width: int = 0, may_be_module: bool = False, may_be_encoder: bool = False
) -> Reference:
    """The reference of a text as on the command line, or of a model; heads of a tiny one may have this width.

    With `may_be_module`, a subject without a checkpoint is one too; with `may_be_encoder`, an encoder is compared by
    the embeddings of its tokens, whether it has a head or not.

    Raises `UsageError`, `SubjectError`.
    """
    transformers = transformers_library()
    if isinstance(subject, Reference):
        return subject
    if isinstance(subject, transformers.PreTrainedModel):
        if may_be_encoder and is_encoder(subject.config.to_dict()):
            model = copy.deepcopy(subject.base_model).float().eval()
            return EncoderReference(type(subject).__name__, model, seed=seed, summary="float32")
        if subject.get_output_embeddings() is None:
            raise UsageError(f"expected {SUPPORTED} with against; got {type(subject).__name__}, which has no head")
        model = copy.deepcopy(subject).float().eval()
        return Reference(type(subject).__name__, model, seed=seed, summary="float32")
    if may_be_module and isinstance(subject, Subject):
        return module_reference(subject, seed=seed)
    if not isinstance(subject, str):
        raise UsageError(f"expected {SUPPORTED} with against; got {type(subject).__name__}")
    form = check_spec(subject, tiny=subject.startswith("arch:"))
    if form == "architecture":
        return tiny_reference(subject, seed=seed, head_width=head_width, may_be_encoder=may_be_encoder)
    if form == "folder":
        return _checkpoint_reference(Path(subject).expanduser(), seed, may_be_encoder=may_be_encoder)
    if may_be_module and form != "hub":
        return module_reference(load(subject, seed=seed), seed=seed)
    raise UsageError(f"expected {SUPPORTED} with against; got {subject!r}")


def tiny_reference(
    spec: str, *, seed: int = 0, values: Mapping[str, Any] | None = None, head_width: int = 0,
    may_be_encoder: bool = False,
) -> Reference:  # fmt: skip
    """A tiny random language model of an architecture, or encoder; its window is `TINY_WINDOW`, if it can have one.

    ``values`` are configuration values that replace those of the spec; ``head_width`` is the width of the heads, if an
    engine takes no smaller one. Raises `UsageError`, `SubjectError`.
    """
    name, overrides = architectures.parse_spec(spec)
    with suppress_warnings():
        default = architectures.default_config(name)
        architectures.check_config_keys(name, default, overrides)
        encoder = may_be_encoder and is_encoder(default.to_dict())
        chosen = model_class(default) if encoder else _language_model_class(default, spec)
        known = default.to_dict()
        wanted = {key: value for key, value in TINY_VALUES.items() if key in known} | dict(SIZES.get(name, {}))
        wanted |= fixed_sizes.widths_of_heads(default, head_width) if head_width else {}
        wanted |= overrides | dict(values or {})
        wanted = {**architectures.expand_attention_types(default, wanted), **wanted}
        failure: Exception | None = None
        for candidate in _candidates(default, wanted):
            try:
                config = architectures.config_with_values(default, candidate, spec)
                model = _build(chosen, config, seed)
                _check_call(model, spec, "last_hidden_state" if encoder else "logits")
            except Exception as error:  # noqa: BLE001 - third-party code: anything may come, another size may do
                failure = failure or error
                continue
            summary = f"float32, tiny random weights (seed {seed})"
            if encoder:
                return EncoderReference(spec, model, seed=seed, summary=summary, pooling=Pooling())
            return Reference(spec, model, seed=seed, summary=summary)
    assert failure is not None
    what = "encoder" if encoder else "language model"
    raise SubjectError(f"{spec}: no tiny {what} can be built and called: {first_line(failure)}") from failure


def _candidates(config: Any, wanted: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The candidates with a whole pattern of layer types, if there is one, and then those without it."""
    if pattern := _whole_pattern(config):
        yield from tiny_config_candidates(config, {**pattern, **wanted})
    yield from tiny_config_candidates(config, wanted)


def _whole_pattern(config: Any) -> dict[str, Any]:
    """As many layers as the pattern of their types has: engines index the caches by the pattern."""
    types = list(getattr(config, "layer_types", None) or ())
    if len(set(types)) < 2 or not hasattr(config, "num_hidden_layers"):
        return {}
    period = next((n for n in range(2, MAX_PATTERN + 1) if types == (types[:n] * len(types))[: len(types)]), 0)
    return {"num_hidden_layers": period, "layer_types": types[:period]} if period else {}


def _language_model_class(config: Any, spec: str) -> Any:
    mapping = transformers_library().AutoModelForCausalLM._model_mapping
    chosen = mapping.get(type(config), None)
    if isinstance(chosen, (tuple, list)):
        chosen = chosen[0]
    if chosen is None or config.is_encoder_decoder:
        raise SubjectError(
            f"{spec}: transformers has no causal language model for it; a port is compared by its logits"
        )
    return chosen


def _build(chosen: Any, config: Any, seed: int) -> Any:
    with seeded_random(seed), limit_parameters():
        backend = select_attention_backend(chosen, None)
        model = chosen._from_config(config, attn_implementation=backend, dtype=torch.float32)
    fixed_sizes.add_weight_noise(model, seed)
    use_batched_experts(model)
    return model.eval()


def _check_call(model: Any, spec: str, output: str) -> None:
    if "input_ids" not in inspect.signature(model.forward).parameters:
        raise SubjectError(f"{spec}: its forward takes no input_ids")
    with torch.no_grad():
        found = getattr(model(torch.tensor([[3, 4, 5]])), output)
    if found.shape[:2] != (1, 3) or not found.isfinite().all():
        raise SubjectError(f"{spec}: expected finite {output} [row, token, number]; got shape {list(found.shape)}")


def _checkpoint_reference(folder: Path, seed: int, *, may_be_encoder: bool) -> Reference:
    label = folder.resolve().name
    check_folder(folder, label)
    values = checkpoint.read_config(folder, label)
    checkpoint.check_weight_files(folder, label)
    encoder, library = may_be_encoder and is_encoder(values), transformers_library()
    with suppress_warnings():
        try:
            model, report = (library.AutoModel if encoder else library.AutoModelForCausalLM).from_pretrained(
                folder, dtype=torch.float32, local_files_only=True, use_safetensors=True, trust_remote_code=False,
                output_loading_info=True,
            )  # fmt: skip
        except Exception as error:
            with_head = "" if encoder else " with its head"
            raise CheckpointError(f"{label}: it cannot be loaded{with_head}: {first_line(error)}") from error
    if missing := [key for key in report["missing_keys"] if not (encoder and key.startswith("pooler."))]:
        raise CheckpointError(
            f"{label}: its checkpoint lacks {min(missing)}{'' if encoder else '; a port needs the head'}"
        )
    summary = f"float32, from {label}"
    if not encoder:
        return Reference(label, model.eval(), folder=folder, seed=seed, summary=summary)
    has_head = values.get("architectures") != [type(model).__name__]
    pooling = read_pooling(folder)
    return EncoderReference(
        label, model.eval(), folder=folder, seed=seed, summary=summary, pooling=pooling, has_head=has_head
    )


def is_encoder(values: Mapping[str, Any]) -> bool:
    """True of the configuration of an encoder: tokens see both sides, and a head, if there is one, fills in masks."""
    transformers_library()
    from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES

    masked = values.get("model_type") in MODEL_FOR_MASKED_LM_MAPPING_NAMES
    return masked and not values.get("is_encoder_decoder") and not values.get("is_decoder")
