"""Forgetting attention (FoX): each token says, head by head, how much of what came before it is kept.

    f[t] = sigmoid(w . x[t] + c)                                        the forget gate of token t, for each head
    b(m, n) = sum of ln f[t] over the tokens t after n, up to m         that m may see

so a weight is multiplied by f for every token between the key and the query, the query's own included. With one f for
all tokens this is ALiBi with slope -ln f. Positions say which tokens lie between and nothing else, so adding a
constant to all changes nothing: relative. "After n, up to m" has a meaning for keys that do not come after the query:
causal only. Tokens that m may not see (pad tokens, other documents) forget nothing for it.
The sums are made from the query backwards, never as a difference of two sums from the start of the row, which would
lose the near keys to rounding in a long one. ln f of each token is its note, kept beside its key when decoding: a
gate worked out from the newest token alone forgets nothing.
The paper has one gate a layer. Here an encoding is shared by all layers; give each layer its own where that matters.
Source: Lin et al. 2025, "Forgetting Transformer", arXiv:2503.02130, section 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from torch import Tensor, nn
from torch.nn import functional

from orderproof.encodings._content import ContentBias, sum_after
from orderproof.encodings._encoding import Claims, Content, Sizes
from orderproof.encodings._operands import check_features, check_size, exactly, working_dtype
from orderproof.encodings._registry import register

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@register("forgetting", called=("fox",))
class Forgetting(ContentBias):
    """A gate of each token that fades what came before it."""

    claims = Claims(site="bias", relative=True, symmetric=False, causal_only=True, content=True, state="notes")
    heads: int
    note_width = 1

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.width = check_size("Forgetting", "width", width)
        self.heads = check_size("Forgetting", "heads", heads)
        self.gate = nn.Linear(width, heads)

    @classmethod
    def for_model(cls, sizes: Sizes) -> Self:
        """One gate a head."""
        return cls(sizes.width, sizes.heads)

    def reset_parameters(self) -> None:
        """Draw the gates anew."""
        self.gate.reset_parameters()

    def notes(self, x: Float[Tensor, "batch token width"]) -> Float[Tensor, "batch head token 1"]:
        """The logarithm of each token's gate, in float32 or float64."""
        check_features("Forgetting", x, self.width)
        wide = working_dtype(x)
        with exactly(x):
            given = functional.linear(x.to(wide), self.gate.weight.to(wide), self.gate.bias.to(wide))
        return functional.logsigmoid(given).mT.unsqueeze(-1)

    def worked_out(
        self,
        content: Content,
        q_positions: Int[Tensor, "*batch query"],
        k_positions: Int[Tensor, "*batch key"],
    ) -> Float[Tensor, "batch head query key"]:
        """The logarithms of the gates between key and query, summed."""
        del q_positions  # who comes before whom stands in content.visible and in the keys' positions
        assert content.notes is not None
        faded = content.notes.mT.expand(-1, -1, content.q.shape[2], -1)
        if content.visible is not None:
            faded = faded.masked_fill(~content.visible, 0.0)
        return sum_after(faded, k_positions, own=False)

    def extra_repr(self) -> str:
        """The arguments it was made with."""
        return f"{self.width}, {self.heads}"
