"""Batch normalization scales and shifts each channel by stored statistics, or by those of the batch.

Lemma (channelwise_equivariant). Let C[b, c, e] = (A[b, c, e] - mean[c]) / deviation[c] w[c] + bias[c], with stored mean
and deviation.
  1. A moved along b or e gives C moved in the same way.
  2. A moved along c gives C moved along c, if the statistics and weights move in the same way or are uniform.
  3. C[b, c, e] depends on what A[b, c, e] and the statistics and weights of channel c depend on.
Without stored statistics (`track_running_stats=False`, instance norm) mean and deviation are those of A[:, c, :]:
  4. A moved along b or e gives C moved in the same way, and 2 holds of c.
  5. C[b, c, e] depends on everything that any element of A[:, c, :] depends on.
Proof. pointwise_equivariant: the statistics and weights broadcast along b and e. 4 and 5: the moments of a channel do
not depend on the order of its elements (normalisation_equivariant). A call that writes into stored statistics has no
lemma.
Arithmetic: exact in floating point too; 4 over the reals.
Machine-checked (proofs/rules/batch_norm_lemma.v): channelwise_equivariant.
Machine-checked (proofs/rules/normalization_lemma.v): mean_symmetric, square_symmetric.
"""

from __future__ import annotations

from torch.fx import Node

from orderproof.diagnosis.domain.fact import constant_fact
from orderproof.diagnosis.rule import Facts, OperatorCall, RuleNotApplicable, rule
from orderproof.diagnosis.rules.normalization import AffineWeight, normalization_fact, with_affine_weights


@rule("channelwise_equivariant", "batch_norm", "_native_batch_norm_legit_no_training", "cudnn_batch_norm")
def batch_norm(call: OperatorCall) -> Facts:
    """A scale and a shift for each channel, from running statistics or from those of the batch."""
    if ".batch_norm." in call.target and call.args[5]:
        if call.args[3] is not None or call.args[4] is not None:
            raise RuleNotApplicable("batch norm in training mode changes its stored statistics")
        fact = call.fact(call.args[0])
        dims = tuple(d for d in range(len(fact.shape)) if d != 1)
        return normalization_fact(call, dims, [(call.args[1], 1, (1,)), (call.args[2], 2, (1,))])
    if "cudnn" in call.target:
        raise RuleNotApplicable("cudnn_batch_norm has no lemma")
    statistics: list[AffineWeight] = [(call.args[k], k, (1,)) for k in range(1, 5) if isinstance(call.args[k], Node)]
    result = with_affine_weights(call, call.fact(call.args[0]), statistics)
    values = call.node.meta["val"]
    if not isinstance(values, list | tuple):
        return result
    # In eval mode the functional form also returns two empty tensors.
    return (result, *(constant_fact(tuple(int(s) for s in v.shape)) for v in values[1:]))
