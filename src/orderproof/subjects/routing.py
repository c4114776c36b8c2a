"""Layers that send each token to some of several parts, in a form that can be recorded.

Their modelling files collect the tokens of each expert and run it on these: how many there are depends on the tokens,
which no graph can hold. While a graph is recorded, each token is instead multiplied by the matrices of its own experts
(as transformers' `batched_mm` does where it is offered), or both parts are computed for every token and one is taken:

    y_t = sum over experts e, over the choices k of t that are e, of w[t,k] E_e(x_t)
        = sum over choices k of w[t,k] E_e(t,k)(x_t)
    f(x[m]) and g(x[~m]) put back in their places = where(m, f(x), g(x)), for f and g that act on each token alone

The same sums, in another order: equal over the reals. The model itself stays as it is, so the recorded graph is held
against the loop it stands for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

IN_WORDS = "tokens routed to parts: recorded token by token"


def _times(rows: Tensor, matrices: Tensor, parts: Tensor) -> Tensor:
    """Each row multiplied by the matrix [out, in] of its part."""
    return torch.bmm(matrices[parts], rows.unsqueeze(-1)).squeeze(-1)


def _summed(rows: Tensor, weights: Tensor) -> Tensor:
    """The weighted sum of what the choices of each token gave; weights are [token, choice]."""
    weighted = rows * weights.reshape(-1).unsqueeze(-1)
    return weighted.view(*weights.shape, -1).sum(dim=1)


def _dbrx(self: Any, hidden_states: Tensor, top_k_index: Tensor, top_k_weights: Tensor) -> Tensor:
    tokens = hidden_states.reshape(-1, self.hidden_size)
    rows, parts = tokens.repeat_interleave(top_k_index.shape[-1], dim=0), top_k_index.reshape(-1)
    gate, up, down = (
        weight.view(-1, self.ffn_hidden_size, self.hidden_size) for weight in (self.mlp.w1, self.mlp.v1, self.mlp.w2)
    )
    inner = self.mlp.activation_fn(_times(rows, gate, parts)) * _times(rows, up, parts)
    made = _summed(_times(inner, down.transpose(1, 2), parts), top_k_weights)
    out: Tensor = made.view(hidden_states.shape[0], -1, self.hidden_size)
    return out


def _longcat(self: Any, hidden_states: Tensor, top_k_index: Tensor, top_k_weights: Tensor) -> Tensor:
    rows, parts = hidden_states.repeat_interleave(top_k_index.shape[-1], dim=0), top_k_index.reshape(-1)
    if self.gate_up_proj is None:
        return _summed(rows, top_k_weights).to(hidden_states.dtype)
    real = parts.clamp(max=self.num_routed_experts - 1)
    gate, up = _times(rows, self.gate_up_proj, real).chunk(2, dim=-1)
    made = _times(self.act_fn(gate) * up, self.down_proj, real)
    made = torch.where(
        (parts >= self.num_routed_experts).unsqueeze(-1), rows, made
    )  # the rest give what they are given
    return _summed(made, top_k_weights).to(hidden_states.dtype)


def _jetmoe_choices(router: Any, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    logits = router.layer(tokens).float()
    best, parts = logits.topk(router.top_k, dim=1)
    return logits, parts, torch.softmax(best, dim=1).type_as(tokens)


def _jetmoe_layer(self: Any, layer_input: Tensor) -> Tensor:
    tokens = layer_input.reshape(-1, layer_input.shape[-1])
    _, chosen, weights = _jetmoe_choices(self.router, tokens)
    rows, parts = tokens.repeat_interleave(chosen.shape[-1], dim=0), chosen.reshape(-1)
    gate, up = _times(rows, self.input_linear.weight, parts).chunk(2, dim=-1)
    made = _times(self.activation(gate) * up, self.output_linear.weight, parts)
    out: Tensor = _summed(made, weights).view(*layer_input.shape[:-1], self.input_size) + self.bias
    return out


def _jetmoe_map(self: Any, layer_input: Tensor) -> tuple[Tensor, Tensor, Any]:
    tokens = layer_input.reshape(-1, layer_input.shape[-1])
    logits, chosen, weights = _jetmoe_choices(self.router, tokens)
    rows = tokens.repeat_interleave(self.top_k, dim=0)
    made = _times(rows, self.input_linear.weight, chosen.reshape(-1))
    return made.view(*layer_input.shape[:-1], self.top_k, -1), logits, (chosen, weights)


def _jetmoe_reduce(self: Any, layer_input: Tensor, topo_info: tuple[Tensor, Tensor]) -> Tensor:
    chosen, weights = topo_info
    rows = layer_input.reshape(-1, layer_input.shape[-1])
    made = _times(rows, self.output_linear.weight, chosen.reshape(-1))
    out: Tensor = _summed(made, weights).view(*layer_input.shape[:2], self.input_size) + self.bias
    return out


def _higgs(
    self: Any,
    hidden_states: Tensor,
    position_embeddings: Any = None,
    attention_mask: Tensor | None = None,
    audio_token_mask: Tensor | None = None,
    **options: Any,
) -> Tensor:
    sound = torch.ones_like(hidden_states[..., :1], dtype=torch.bool)
    if audio_token_mask is not None:
        sound = audio_token_mask.unsqueeze(-1)
    normed = torch.where(sound, self.audio_input_layernorm(hidden_states), self.input_layernorm(hidden_states))
    seen, _ = self.self_attn(
        hidden_states=normed, position_embeddings=position_embeddings, attention_mask=attention_mask, **options
    )
    between = hidden_states + seen
    text = self.mlp(self.post_attention_layernorm(between))
    out: Tensor = between + torch.where(sound, self.audio_mlp(self.audio_post_attention_layernorm(between)), text)
    return out


# by modelling file, class and method
_FORMS: dict[tuple[str, str, str], Callable[..., Any]] = {
    ("dbrx", "DbrxExperts", "forward"): _dbrx,
    ("longcat_flash", "LongcatFlashExperts", "forward"): _longcat,
    ("jetmoe", "JetMoeMoE", "forward"): _jetmoe_layer,
    ("jetmoe", "JetMoeMoA", "map"): _jetmoe_map,
    ("jetmoe", "JetMoeMoA", "reduce"): _jetmoe_reduce,
    ("higgs_audio_v2", "HiggsAudioV2DecoderLayer", "forward"): _higgs,
}


def _found(module: nn.Module) -> list[tuple[type, str, Callable[..., Any]]]:
    kinds = {
        (kind.__module__.removeprefix("transformers.models.").split(".")[0], kind.__name__): kind
        for kind in map(type, module.modules())
        if kind.__module__.startswith("transformers.models.")
    }
    return [
        (kinds[model, name], method, form) for (model, name, method), form in _FORMS.items() if (model, name) in kinds
    ]


def is_routed(module: nn.Module) -> bool:
    """Whether a model has parts that are recorded in another form."""
    return bool(_found(module))


@contextmanager
def token_by_token(module: nn.Module) -> Iterator[None]:
    """While recording, run the parts that tokens are routed to token by token."""
    with ExitStack() as stack:
        for kind, method, form in _found(module):
            before = getattr(kind, method)
            setattr(kind, method, form)
            stack.callback(setattr, kind, method, before)
        yield
