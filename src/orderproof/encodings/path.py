"""PaTH: between a key and a query stands a product of reflections, one made by each token on the way.

    score[m, n] = k[n]^T H[n+1] H[n+2] ... H[m] q[m] / sqrt(width)        tokens in their order, n before m
    H[t] = 1 - beta[t] w[t] w[t]^T,    w[t] = A x[t] / |A x[t]|,    beta[t] = 2 sigmoid(c . x[t] + c0)

beta = 2 mirrors, beta = 1 projects, beta near 0 leaves alone: the tokens between decide what of the query still meets
the key. Positions say which tokens lie between and nothing else, so adding a constant to all changes nothing:
relative; defined for keys that do not come after the query: causal only. w and beta are the token's note, kept beside
its key when decoding. (The authors also pass w through a convolution over three tokens; it is left out here, because
a note is made from its token alone.)
The product is not formed. With u[t] = beta[t] w[t] . (what is left of q[m] before H[t]),

    u[t] + beta[t] sum_{s > t} (w[t] . w[s]) u[s] = beta[t] w[t] . q[m]  for t that m sees, and 0 for later ones
    score[m, n] = (k[n] . q[m] - sum_{t > n} u[t] w[t] . k[n]) / sqrt(width)

is one triangular system for each row and head, solved for all queries at once.
That needs what a query sees to have no gaps: a token that some other query sees, between a key and a query that sees
the key but not it, would act on a score it must not touch. Causal order, padding, windows and packed documents leave
no gaps; a mask that does is refused (on the CPU; elsewhere, and while tracing, values are not looked at).
Source: Yang et al. 2025, "PaTH Attention", arXiv:2505.16381, sections 2 and 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from orderproof import positions as place
from orderproof.encodings._content import ContentBias, arranged, order_of
from orderproof.encodings._encoding import Claims, Content, Sizes
from orderproof.encodings._operands import check_features, check_size, exactly, working_dtype
from orderproof.encodings._registry import register
from orderproof.errors import EncodingError

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


@register("path")
class Path(ContentBias):
    """Reflections made by the tokens between a key and a query."""

    claims = Claims(site="bias", relative=True, symmetric=False, causal_only=True, content=True, state="notes")
    heads: int
    head_width: int

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.width = check_size("Path", "width", width)
        self.heads = check_size("Path", "heads", heads)
        if width % heads:
            raise EncodingError(f"Path: heads must divide width={width}, got {heads}")
        self.head_width = width // heads
        self.note_width = self.head_width + 1
        self.direction = nn.Linear(width, width, bias=False)
        self.strength = nn.Linear(width, heads)

    @classmethod
    def for_model(cls, sizes: Sizes) -> Self:
        """One reflection a token and head."""
        return cls(sizes.width, sizes.heads)

    def reset_parameters(self) -> None:
        """Draw directions and strengths anew."""
        self.direction.reset_parameters()
        self.strength.reset_parameters()

    def notes(self, x: Float[Tensor, "batch token width"]) -> Float[Tensor, "batch head token note"]:
        """The direction and the strength of each token's reflection, in float32 or float64."""
        check_features("Path", x, self.width)
        wide = working_dtype(x)
        with exactly(x):
            given = x.to(wide)
            w = functional.linear(given, self.direction.weight.to(wide))
            beta = functional.linear(given, self.strength.weight.to(wide), self.strength.bias.to(wide))
        w = w.view(*w.shape[:2], self.heads, self.head_width).transpose(1, 2)
        return torch.cat([functional.normalize(w, dim=-1), 2 * torch.sigmoid(beta).mT.unsqueeze(-1)], dim=-1)

    def worked_out(
        self,
        content: Content,
        q_positions: Int[Tensor, "*batch query"],
        k_positions: Int[Tensor, "*batch key"],
    ) -> Float[Tensor, "batch head query key"]:
        """How much the reflections change each score."""
        del q_positions  # who comes before whom stands in content.visible and in the keys' positions
        assert content.notes is not None
        order = order_of(k_positions)
        # Keys and notes as columns, from the first token to the last.
        k, w = (arranged(x.mT, order) for x in (content.k, content.notes))
        w, beta = w[..., :-1, :], w[..., -1:, :]
        keys = k.shape[-1]
        seen = torch.ones(1, 1, content.q.shape[2], keys, dtype=torch.bool, device=k.device)
        if content.visible is not None:
            seen = arranged(content.visible, order)
        together = _seen_together(seen)
        between = (beta.mT * (w.mT @ w)).masked_fill(~together, 0.0).triu(1)
        wanted = (beta * (content.q @ w)).masked_fill(~seen, 0.0).mT
        unit = torch.eye(keys, dtype=k.dtype, device=k.device)
        u = torch.linalg.solve_triangular(unit + between, wanted, upper=True, unitriangular=True)
        return arranged(-content.scale * (u.mT @ (w.mT @ k).tril(-1)), order, back=True)

    def extra_repr(self) -> str:
        """The arguments it was made with."""
        return f"{self.width}, {self.heads}"


def _seen_together(seen: Bool[Tensor, "batch head query key"]) -> Bool[Tensor, "batch head key key"]:
    """Which two keys some query sees both of; refuses sight with gaps. Keys stand in their order."""
    count = seen.to(torch.float32)
    together = (count.mT @ count) > 0
    if place.readable(seen):
        before = count.cumsum(-1) - count > 0
        after = count @ (together.triu(1).to(torch.float32)).mT > 0
        if bool((~seen & before & after).any()):
            raise EncodingError("Path: mask must leave no gap between a query and a key it sees, got one that does")
    return together
