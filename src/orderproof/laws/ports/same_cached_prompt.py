"""OP611 same_cached_prompt: the log-probabilities of a prompt that the engine keeps are those of the reference.

    E(x; cache of (p, y))_t = f(x)_t   for every t of a prompt x that begins with p

The scores of a prompt are asked for, as a trainer does for its rollouts, while the engine keeps the cache of an earlier
prompt with the same beginning. Its scores were not computed then, and no token may lack them or have those of another.
Source: elementary; broken by scores that are returned for the tokens after the kept ones only, or shifted by them.
"""

from __future__ import annotations

from orderproof.laws.ports.port_law import PortCall, PortLaw, PortModel
from orderproof.laws.ports.same_shared_prefix import SameSharedPrefix


class SameCachedPrompt(SameSharedPrefix):
    """The law of this module: the prompts of the law of a shared beginning, of which every token is scored."""

    def call(self, model: PortModel) -> PortCall:
        return PortCall("cached_prompt", super().call(model).rows)

    def first_compared(self, model: PortModel, call: PortCall) -> int:
        return PortLaw.first_compared(self, model, call)


LAW = SameCachedPrompt(
    code="OP611",
    name="same_cached_prompt",
    statement="The log-probabilities of a prompt that an engine keeps are those of the reference.",
    trait="has the same log-probabilities for a prompt that is cached",
    expectation={"causal_lm": "holds"},
    ability="cached_prompt",
    remedy="Compute a prompt again whose log-probabilities are asked for, or keep them with its cache.",
)
