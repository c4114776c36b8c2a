"""Recurrent layers: LSTM, GRU and RNN.

Lemma. The output of a layer for token t is a function of its state after token t - 1 and of its input at t.
  1. The output at t agrees in both runs where the initial states do, and the inputs of the tokens up to t; of all
     tokens, if the layer also runs backwards. So do the last states where all tokens agree. A layer above reads the
     outputs of the layer below up to t. Of a single layer that also runs backwards, the first half of the features is
     that of the forward direction.
  2. No rule says more of tokens that move: they are read one after the other.

Machine-checked (proofs/rules/scan_lemma.v): scan_dependence.
Not machine-checked: that torch's layers compute such a function.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch.fx import Node

from orderproof.logic.terms import FALSE, TRUE, Formula, conjunction, disjunction, less
from orderproof.theorems.facts.frame import frame
from orderproof.theorems.facts.open_fact import NotCovered, OpenFact, dims_of, size_of
from orderproof.theorems.facts.reindexing import with_single_axis
from orderproof.theorems.walks.open_operation import OpenOperation
from orderproof.theorems.walks.operation import tensors
from orderproof.theorems.walks.operator_rules import operators

RECURRENT = operators("lstm", "gru", "rnn_tanh", "rnn_relu")


@RECURRENT.open
def recurrent(call: OpenOperation) -> tuple[OpenFact, ...]:
    """The outputs of all tokens, and the last states."""
    if len(call.node.args) != 9 or not str(call.node.target).endswith(".input"):
        raise NotCovered("a recurrent layer of packed sequences")
    _, first, weights, _, layers, _, _, backwards, rows_first = call.node.args
    token = 1 if rows_first else 0
    x = with_single_axis(call.operand, token)
    states = [call.fact(one) for one in ([first] if isinstance(first, Node) else tensors(first))]
    if any(call.fact(one) != OpenFact(call.fact(one).dims, call.dtype) for one in tensors(weights)):
        raise NotCovered("the weights of a recurrent layer are computed from inputs")
    loose = disjunction(*(part for f in (x, *states) for part in (f.ranges().hidden, f.ranges().unbounded)))
    unbounded = FALSE if loose is FALSE and call.name != "rnn_relu" else TRUE  # which may grow with each token

    def result(number: int, labels: Sequence[str]) -> OpenFact:
        whole = OpenFact(dims_of(call.shapes[number]), call.dtype)
        read = ["row", "read", "in"] if rows_first else ["read", "row", "in"]
        of_states = [(f, [f"layer {k}", "row", f"width {k}"]) for k, f in enumerate(states)]
        common = frame([(whole, labels), (x, read), *of_states], labels)
        placed = common.place(x, read)
        initial = [common.place(f, own).same for f, own in of_states]
        bound = sum(len(common.axes[label]) for label in labels)

        def of_tokens(later: Formula) -> Formula:
            return call.context.for_all(conjunction(placed.same | later, *initial), placed.sizes, bound)

        same = of_tokens(FALSE)
        if number == 0 and x.dims[token] and (layers == 1 or not backwards):
            ((own,), (other,)) = common.indices("token"), common.indices("read")
            forwards: Formula = TRUE
            if backwards:
                (feature,) = common.indices("out")
                forwards = less(feature, size_of(states[0].dims[2]))
            same = same | (of_tokens(less(own, other)) & forwards)
        return OpenFact(tuple(common.axes[label] for label in labels), call.dtype, same, unbounded=unbounded)

    outputs = result(0, ["row", "token", "out"] if rows_first else ["token", "row", "out"])
    last = [result(k, ["layer", "row", "width"]) for k in range(1, len(call.shapes))]
    return outputs, *last
