"""PaTH: scores with a product of Householder-like reflections, one per token between key and query.

    score[m, n] = k[n]^T H[n+1] H[n+2] ... H[m] q[m] / sqrt(width)        tokens in their order, n before m
    H[t] = 1 - beta[t] w[t] w[t]^T,    w[t] = A x[t] / |A x[t]|,    beta[t] = 2 sigmoid(c . x[t] + c0)
    A = C B,   B from the width to `rank` features, C back;   without a rank, A is one full matrix

beta = 2 reflects, beta = 1 projects, beta near 0 is the identity: the tokens between decide which part of the query
reaches the key. Positions only order the tokens, so adding a constant to all of them changes nothing: the encoding is
relative. It is defined only for keys at or before the query: causal only. w and beta are the token state, cached with
the key when decoding.
This differs from the authors' models in two ways. Their A has rank 32, unless key heads are shared: pass rank=32 (the
default is a full matrix, which has more parameters). And they convolve w over three tokens before normalising it, which
is left out here, because a token state depends on its token alone.
The product is not formed explicitly. With u[t] = beta[t] w[t] . (q[m] after the reflections behind t),

    u[t] + beta[t] sum_{s > t} (w[t] . w[s]) u[s] = beta[t] w[t] . q[m]  for t visible to m, and 0 for later ones
    score[m, n] = (k[n] . q[m] - sum_{t > n} u[t] w[t] . k[n]) / sqrt(width)

is one triangular system per row and head, solved for all queries at once.
This requires visibility without gaps: a token between key and query that is visible to some other query, but not to
this one, would act on its score. Causal order, padding, windows and packed documents leave no gaps; a mask with gaps
is rejected (on the CPU; on other devices and while tracing, values are not checked).
Source: Yang et al. 2025, "PaTH Attention", arXiv:2505.16381, sections 2 and 3; rank and beta as in the authors' code,
fla-org/flash-linear-attention, fla/layers/path_attn.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from orderproof.encodings._content_bias import ContentBias, key_order, reorder_keys
from orderproof.encodings._encoding import AttentionContent, Claims, ModelSizes
from orderproof.encodings._registry import register
from orderproof.encodings.checks import autocast_disabled, check_features, check_size, working_dtype
from orderproof.errors import EncodingError
from orderproof.positions import has_readable_values

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


@register("path")
class PaTHAttention(ContentBias):
    """Reflections by the tokens between a key and a query."""

    claims = Claims(
        site="bias",
        relative=True,
        symmetric=False,
        causal_only=True,
        content_dependent=True,
        decode_state="token_state",
    )
    heads: int
    head_width: int

    def __init__(self, width: int, heads: int, *, rank: int | None = None) -> None:
        super().__init__()
        self.width = check_size("PaTHAttention", "width", width)
        self.heads = check_size("PaTHAttention", "heads", heads)
        if width % heads:
            raise EncodingError(f"PaTHAttention: heads must divide width={width}, got {heads}")
        self.head_width = width // heads
        self.token_state_dim = self.head_width + 1
        self.rank = None if rank is None else check_size("PaTHAttention", "rank", rank)
        self.direction: nn.Linear | nn.Sequential = (
            nn.Linear(width, width, bias=False)
            if rank is None
            else nn.Sequential(nn.Linear(width, rank, bias=False), nn.Linear(rank, width, bias=False))
        )
        self.strength = nn.Linear(width, heads)

    @classmethod
    def for_model(cls, sizes: ModelSizes, **options: Any) -> Self:
        """One reflection per token and head, with a full matrix for the directions."""
        return cls(sizes.width, sizes.heads, **options)

    def reset_parameters(self) -> None:
        """Reinitialize directions and strengths."""
        for layer in self._direction_layers():
            layer.reset_parameters()
        self.strength.reset_parameters()

    def token_state(self, x: Float[Tensor, "batch token width"]) -> Float[Tensor, "batch head token state"]:
        """The direction and the strength of each token's reflection, in float32 or float64."""
        check_features("PaTHAttention", x, self.width)
        wide = working_dtype(x)
        with autocast_disabled(x):
            x = w = x.to(wide)
            for layer in self._direction_layers():
                w = functional.linear(w, layer.weight.to(wide))
            beta = functional.linear(x, self.strength.weight.to(wide), self.strength.bias.to(wide))
        w = w.view(*w.shape[:2], self.heads, self.head_width).transpose(1, 2)
        return torch.cat([functional.normalize(w, dim=-1), 2 * torch.sigmoid(beta).mT.unsqueeze(-1)], dim=-1)

    def _direction_layers(self) -> list[nn.Linear]:
        """The factors of A, in the order of their application."""
        if isinstance(self.direction, nn.Linear):
            return [self.direction]
        return [layer for layer in self.direction if isinstance(layer, nn.Linear)]

    def compute_bias(
        self,
        content: AttentionContent,
        q_positions: Int[Tensor, "*batch query"],
        k_positions: Int[Tensor, "*batch key"],
    ) -> Float[Tensor, "batch head query key"]:
        """The change of each score by the reflections."""
        del q_positions  # content.visible and the keys' positions define the order
        assert content.token_state is not None
        order = key_order(k_positions)
        # Keys and token states as columns, in token order.
        k, w = (reorder_keys(x.mT, order) for x in (content.k, content.token_state))
        w, beta = w[..., :-1, :], w[..., -1:, :]
        keys = k.shape[-1]
        visible = torch.ones(1, 1, content.q.shape[2], keys, dtype=torch.bool, device=k.device)
        if content.visible is not None:
            visible = reorder_keys(content.visible, order)
        together = _jointly_visible(visible)
        between = (beta.mT * (w.mT @ w)).masked_fill(~together, 0.0).triu(1)
        rhs = (beta * (content.q @ w)).masked_fill(~visible, 0.0).mT
        unit = torch.eye(keys, dtype=k.dtype, device=k.device)
        u = torch.linalg.solve_triangular(unit + between, rhs, upper=True, unitriangular=True)
        return reorder_keys(-content.scale * (u.mT @ (w.mT @ k).tril(-1)), order, inverse=True)

    def extra_repr(self) -> str:
        """The constructor arguments."""
        rank = "" if self.rank is None else f", rank={self.rank}"
        return f"{self.width}, {self.heads}{rank}"


def _jointly_visible(visible: Bool[Tensor, "batch head query key"]) -> Bool[Tensor, "batch head key key"]:
    """True for two keys that are both visible to some query. Keys are in token order; rejects visibility with gaps."""
    count = visible.to(torch.float32)
    together = (count.mT @ count) > 0
    if has_readable_values(visible):
        before = count.cumsum(-1) - count > 0
        after = count @ (together.triu(1).to(torch.float32)).mT > 0
        if bool((~visible & before & after).any()):
            raise EncodingError(
                "PaTHAttention: expected a mask without gaps between a query and its visible keys, got one with gaps"
            )
    return together
