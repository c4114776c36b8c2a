"""Forgetting attention (FoX): a gate of each token and head decays the weights of all earlier tokens.

    f[t] = sigmoid(w . x[t] + c)                                        the forget gate of token t, for each head
    b(m, n) = sum of ln f[t] over the tokens t after n, up to m         visible to m

A weight is multiplied by f of every token between the key and the query, including the query. With one constant f this
is ALiBi with slope -ln f. Positions only order the tokens, so adding a constant to all of them changes nothing: the
encoding is relative. "After n, up to m" is defined only for keys at or before the query: causal only. Tokens that are
not visible to m (pad tokens, other documents) do not contribute.
Sums run backwards from the query, never as a difference of two prefix sums, which would round away near keys in a long
row. ln f is the token state, cached with the key when decoding.
The paper has one gate per layer. Here all layers share an encoding; use one per layer (`layer_patterns`) if that
matters.
Source: Lin et al. 2025, "Forgetting Transformer", arXiv:2503.02130, section 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from torch import Tensor, nn
from torch.nn import functional

from orderproof.encodings._content_bias import ContentBias, suffix_sum
from orderproof.encodings._encoding import AttentionContent, Claims, ModelSizes
from orderproof.encodings._registry import register
from orderproof.encodings.checks import autocast_disabled, check_features, check_size, working_dtype

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@register("forgetting", aliases=("fox",))
class ForgetGate(ContentBias):
    """A learned gate per token and head that decays earlier tokens."""

    claims = Claims(
        site="bias",
        relative=True,
        symmetric=False,
        causal_only=True,
        content_dependent=True,
        decode_state="token_state",
    )
    heads: int
    token_state_dim = 1

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.width = check_size("ForgetGate", "width", width)
        self.heads = check_size("ForgetGate", "heads", heads)
        self.gate = nn.Linear(width, heads)
        self.reset_parameters()

    @classmethod
    def for_model(cls, sizes: ModelSizes, **options: Any) -> Self:
        """One gate per head."""
        return cls(sizes.width, sizes.heads, **options)

    def reset_parameters(self) -> None:
        """Reinitialize the gates; their biases are 0, like the authors' code: every gate starts near 1/2."""
        self.gate.reset_parameters()
        nn.init.zeros_(self.gate.bias)

    def token_state(self, x: Float[Tensor, "batch token width"]) -> Float[Tensor, "batch head token 1"]:
        """The logarithm of each token's gate, in float32 or float64."""
        check_features("ForgetGate", x, self.width)
        wide = working_dtype(x)
        with autocast_disabled(x):
            logits = functional.linear(x.to(wide), self.gate.weight.to(wide), self.gate.bias.to(wide))
        return functional.logsigmoid(logits).mT.unsqueeze(-1)

    def compute_bias(
        self,
        content: AttentionContent,
        q_positions: Int[Tensor, "*batch query"],
        k_positions: Int[Tensor, "*batch key"],
    ) -> Float[Tensor, "batch head query key"]:
        """The sum of log gates between key and query."""
        del q_positions  # content.visible and the keys' positions define the order
        assert content.token_state is not None
        log_gates = content.token_state.mT.expand(-1, -1, content.q.shape[2], -1)
        if content.visible is not None:
            log_gates = log_gates.masked_fill(~content.visible, 0.0)
        return suffix_sum(log_gates, k_positions, inclusive=False)

    def extra_repr(self) -> str:
        """The constructor arguments."""
        return f"{self.width}, {self.heads}"
