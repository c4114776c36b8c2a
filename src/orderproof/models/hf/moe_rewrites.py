"""Mixture-of-experts layers in a form that can be traced.

Their modelling files collect the tokens of each expert and run the expert on them. The number of these tokens depends
on the data, which a graph cannot express. During tracing, each token is instead multiplied by the matrices of its own
experts (as in transformers' `batched_mm`), or both branches are computed for every token and one is selected:

    y_t = sum over experts e, over the choices k of t that are e, of w[t,k] E_e(x_t)
        = sum over choices k of w[t,k] E_e(t,k)(x_t)
    f(x[m]) and g(x[~m]) scattered back = where(m, f(x), g(x)), for f and g that act on each token separately

These are the same sums in another order, equal over the real numbers. The model itself is not changed, so the audit
compares the traced graph with the original loop. Only models that were built for the audit, from the code of
transformers, have their layers replaced: in a model that is given, any part of a layer may have been changed. Most
layers of experts need none of this, see `recording/selected_rows.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from orderproof.models.hf.library_code import has_method_of_a_library

REWRITE_NOTE = "experts traced token by token"


def _expert_matmul(rows: Tensor, matrices: Tensor, parts: Tensor) -> Tensor:
    """Each row multiplied by the matrix [out, in] of its expert."""
    return torch.bmm(matrices[parts], rows.unsqueeze(-1)).squeeze(-1)


def _combine_experts(rows: Tensor, weights: Tensor) -> Tensor:
    """The weighted sum over the choices of each token; weights [token, choice]."""
    weighted = rows * weights.reshape(-1).unsqueeze(-1)
    return weighted.view(*weights.shape, -1).sum(dim=1)


def _dbrx_experts(self: Any, hidden_states: Tensor, top_k_index: Tensor, top_k_weights: Tensor) -> Tensor:
    tokens = hidden_states.reshape(-1, self.hidden_size)
    rows, parts = tokens.repeat_interleave(top_k_index.shape[-1], dim=0), top_k_index.reshape(-1)
    gate, up, down = (
        weight.view(-1, self.ffn_hidden_size, self.hidden_size) for weight in (self.mlp.w1, self.mlp.v1, self.mlp.w2)
    )
    inner = self.mlp.activation_fn(_expert_matmul(rows, gate, parts)) * _expert_matmul(rows, up, parts)
    combined = _combine_experts(_expert_matmul(inner, down.transpose(1, 2), parts), top_k_weights)
    out: Tensor = combined.view(hidden_states.shape[0], -1, self.hidden_size)
    return out


def _jetmoe_choices(router: Any, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    logits = router.layer(tokens).float()
    best, parts = logits.topk(router.top_k, dim=1)
    return logits, parts, torch.softmax(best, dim=1).type_as(tokens)


def _jetmoe_layer(self: Any, layer_input: Tensor) -> Tensor:
    tokens = layer_input.reshape(-1, layer_input.shape[-1])
    _, chosen, weights = _jetmoe_choices(self.router, tokens)
    rows, parts = tokens.repeat_interleave(chosen.shape[-1], dim=0), chosen.reshape(-1)
    gate, up = _expert_matmul(rows, self.input_linear.weight, parts).chunk(2, dim=-1)
    output = _expert_matmul(self.activation(gate) * up, self.output_linear.weight, parts)
    out: Tensor = _combine_experts(output, weights).view(*layer_input.shape[:-1], self.input_size) + self.bias
    return out


def _jetmoe_map(self: Any, layer_input: Tensor) -> tuple[Tensor, Tensor, Any]:
    tokens = layer_input.reshape(-1, layer_input.shape[-1])
    logits, chosen, weights = _jetmoe_choices(self.router, tokens)
    rows = tokens.repeat_interleave(self.top_k, dim=0)
    output = _expert_matmul(rows, self.input_linear.weight, chosen.reshape(-1))
    return output.view(*layer_input.shape[:-1], self.top_k, -1), logits, (chosen, weights)


def _jetmoe_reduce(self: Any, layer_input: Tensor, topo_info: tuple[Tensor, Tensor]) -> Tensor:
    chosen, weights = topo_info
    rows = layer_input.reshape(-1, layer_input.shape[-1])
    output = _expert_matmul(rows, self.output_linear.weight, chosen.reshape(-1))
    out: Tensor = _combine_experts(output, weights).view(*layer_input.shape[:2], self.input_size) + self.bias
    return out


def _higgs_decoder_layer(
    self: Any,
    hidden_states: Tensor,
    position_embeddings: Any = None,
    attention_mask: Tensor | None = None,
    audio_token_mask: Tensor | None = None,
    **options: Any,
) -> Tensor:
    is_audio = torch.ones_like(hidden_states[..., :1], dtype=torch.bool)
    if audio_token_mask is not None:
        is_audio = audio_token_mask.unsqueeze(-1)
    normed = torch.where(is_audio, self.audio_input_layernorm(hidden_states), self.input_layernorm(hidden_states))
    seen, _ = self.self_attn(
        hidden_states=normed, position_embeddings=position_embeddings, attention_mask=attention_mask, **options
    )
    between = hidden_states + seen
    text = self.mlp(self.post_attention_layernorm(between))
    out: Tensor = between + torch.where(is_audio, self.audio_mlp(self.audio_post_attention_layernorm(between)), text)
    return out


# (modelling file, class, method) -> replacement
_REWRITES: dict[tuple[str, str, str], Callable[..., Any]] = {
    ("dbrx", "DbrxExperts", "forward"): _dbrx_experts,
    ("jetmoe", "JetMoeMoE", "forward"): _jetmoe_layer,
    ("jetmoe", "JetMoeMoA", "map"): _jetmoe_map,
    ("jetmoe", "JetMoeMoA", "reduce"): _jetmoe_reduce,
    ("higgs_audio_v2", "HiggsAudioV2DecoderLayer", "forward"): _higgs_decoder_layer,
}


def _matching_rewrites(module: nn.Module) -> list[tuple[type, str, Callable[..., Any]]]:
    found: dict[tuple[str, str], list[nn.Module]] = {}
    for part in module.modules():
        kind = type(part)
        if kind.__module__.startswith("transformers.models."):
            model = kind.__module__.removeprefix("transformers.models.").split(".")[0]
            found.setdefault((model, kind.__name__), []).append(part)
    layers_of = ((found.get((model, name), []), method, form) for (model, name, method), form in _REWRITES.items())
    return [
        (type(layers[0]), method, form)
        for layers, method, form in layers_of
        if layers and all(has_method_of_a_library(x, method) and _runs_library_code(x) for x in layers)
    ]


def _runs_library_code(layer: nn.Module) -> bool:
    """True if calls of a layer and of its parts run methods of libraries only, and no hook."""
    return all(
        has_method_of_a_library(part, "forward") and not part._forward_hooks and not part._forward_pre_hooks
        for part in layer.modules()
    )


def needs_moe_rewrite(module: nn.Module) -> bool:
    """True if a model has layers that are traced in another form."""
    return bool(_matching_rewrites(module))


@contextmanager
def rewrite_moe_layers(module: nn.Module) -> Iterator[None]:
    """During tracing, replace the methods of mixture-of-experts layers."""
    with ExitStack() as stack:
        for kind, method, form in _matching_rewrites(module):
            before = getattr(kind, method)
            setattr(kind, method, form)
            stack.callback(setattr, kind, method, before)
        yield
