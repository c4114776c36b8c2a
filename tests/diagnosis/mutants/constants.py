"""Mutants of what the prover knows about constants."""

from __future__ import annotations

from tests.diagnosis.mutants.engine import M, mutants_of

MUTANTS = mutants_of(
    "constants",
    M(
        "parameter_read",
        "$name in self.$parameters and (not self.$trust) or $value is None or $value.is_meta",
        "$value is None or $value.is_meta",
        "add.Tensor",
        "linear",
        "index_select",
        quick=True,
    ),
    M(
        "large_constant_is_ordinary",
        "$array is not None and bool((~(np.abs($array) < $FLOAT16_LARGE)).any())",
        "False",
        "sum",
        "layer_norm",
        "linear",
        "mul.Tensor",
    ),
    M(
        "nan_is_ordinary",
        "~(np.abs($array) < $FLOAT16_LARGE)",
        "np.abs($array) >= $FLOAT16_LARGE",
        "linear",
        "batch_norm",
        "matmul",
        "layer_norm",
    ),
)
