"""Samples of matrix products, attention, softmax and normalisation."""

from __future__ import annotations

import torch

from tests.diagnosis.sampling.operands import S, X

CONTRACTION = [
    S("linear", (X(3, 2), X(4, 2))),
    S("linear", (X(2, 3, 3), X(3, 3), X(3))),
    S("linear", (X(3, 2), X(2, 2), X(2)), known=False),
    S("linear", (X(3, 2), X(2))),
    S("linear", (X(3), X(2, 3), X(2))),
    S("matmul", (X(3, 3), X(3, 3))),
    S("matmul", (X(2, 3, 3), X(3, 2))),
    S("matmul", (X(2, 1, 3, 3), X(2, 3, 2))),
    S("matmul", (X(3), X(3, 2))),
    S("matmul", (X(2, 3), X(3))),
    S("matmul", (X(3), X(3))),
    S("matmul", (X(3, 1), X(1, 3))),
    S("mm", (X(3, 3), X(3, 2))),
    S("bmm", (X(2, 3, 3), X(2, 3, 3))),
    S("bmm", (X(3, 2, 2), X(3, 2, 2))),
    S("mv", (X(3, 3), X(3))),
    S("dot", (X(3), X(3))),
    S("addmm", (X(3, 3), X(3, 3), X(3, 3))),
    S("addmm", (X(2), X(3, 3), X(3, 2))),
    S("addmm", (X(3), X(3, 2), X(2, 3)), {"alpha": 2, "beta": 3}),
    S("baddbmm", (X(2, 3, 3), X(2, 3, 2), X(2, 2, 3))),
    S("einsum", ("bij,bjk->bik", [X(2, 3, 3), X(2, 3, 3)])),
    S("einsum", ("ij,ij->i", [X(3, 3), X(3, 3)])),
    S("einsum", ("ij,jk->ki", [X(3, 3), X(3, 3)])),
    S("einsum", ("ij,k->ijk", [X(2, 3), X(3)])),
    S("einsum", ("ij->", [X(3, 3)])),
    S("einsum", ("i,ij,j->", [X(3), X(3, 3), X(3)])),
    S("einsum", ("...i,ij->...j", [X(2, 3), X(3, 2)])),
    S("einsum", ("ii->i", [X(3, 3)])),
]

FIBRE = [
    *(S("softmax.int", (X(*shape), d)) for shape, d in (((3, 3), -1), ((3, 3), 0), ((2, 3, 4), 1), ((4,), 0))),
    S("_softmax", (X(3, 4), -1, False)),
    S("softmax.int", (X(3, 3, dtype=torch.float32), -1)),
    S("softmax.int", (X(3, 3, dtype=torch.float32), -1, torch.float64)),
    S("_safe_softmax", (X(3, 3), -1)),
    S("log_softmax.int", (X(3, 3), -1)),
    S("_log_softmax", (X(3, 4), 0, False)),
    S("layer_norm", (X(2, 3), [3])),
    S("layer_norm", (X(2, 3, 3), [3], X(3), X(3))),
    S("layer_norm", (X(2, 3, 4), [3, 4], X(3, 4))),
    S("native_layer_norm", (X(3, 3), [3], X(3), X(3), 1e-5), reads=(0, 1, 2)),
    S("rms_norm", (X(3, 3), [3], X(3))),
    S("rms_norm", (X(3, 2), [2])),
    S("_fused_rms_norm", (X(3, 3), [3], X(3), 1e-5), reads=(0, 1)),
    S("group_norm", (X(2, 4, 3), 2, X(4), X(4))),
    S("group_norm", (X(2, 3, 3), 1, X(3), X(3))),
    S("group_norm", (X(3, 3, 2), 3)),
    S("native_group_norm", (X(2, 4, 3), X(4), X(4), 2, 4, 3, 2, 1e-5)),
    S("batch_norm", (X(3, 3), X(3), X(3), X(3), X(3, kind="positive"), False, 0.1, 1e-5, False)),
    S("batch_norm", (X(3, 2), None, None, X(2), X(2, kind="positive"), False, 0.1, 1e-5, False)),
    S("batch_norm", (X(2, 2, 3), None, None, None, None, True, 0.1, 1e-5, False)),
    S(
        "_native_batch_norm_legit_no_training",
        (X(3, 3), X(3), X(3), X(3), X(3, kind="positive"), 0.1, 1e-5),
        reads=(0,),
    ),
]

ATTENTION = [
    S("scaled_dot_product_attention", (X(2, 3, 2), X(2, 3, 2), X(2, 3, 2))),
    S("scaled_dot_product_attention", (X(3, 2), X(4, 2), X(4, 3))),
    S("scaled_dot_product_attention", (X(2, 3, 2), X(2, 3, 2), X(2, 3, 2), None, 0.0, True)),
    S("scaled_dot_product_attention", (X(3, 2), X(3, 2), X(3, 2), X(3, 3, kind="bool"))),
    S("scaled_dot_product_attention", (X(1, 3, 2), X(1, 3, 2), X(1, 3, 2), X(1, 3, 3, kind="bool"))),
    S("scaled_dot_product_attention", (X(3, 2), X(3, 2), X(3, 2), X(3, 3))),
    S("scaled_dot_product_attention", (X(2, 3, 2), X(2, 3, 2), X(2, 3, 2), X(1, 3))),
    S("scaled_dot_product_attention", (X(2, 3, 2), X(2, 3, 2), X(2, 3, 2)), {"attn_mask": X(2, 1, 3, kind="bool")}),
    S("scaled_dot_product_attention", (X(1, 4, 3, 2), X(1, 2, 3, 2), X(1, 2, 3, 2)), {"enable_gqa": True}),
    S(
        "scaled_dot_product_attention",
        (X(1, 2, 3, 2), X(1, 1, 3, 2), X(1, 1, 3, 2), X(3, 3, kind="bool")),
        {"enable_gqa": True},
    ),
]
