"""Tolerances of comparisons between two runs, each with the measurement behind it.

A relative difference is the largest difference divided by the largest finite value. Precision separates rounding from
dependence: a rounding difference falls by about 2**-29 from float32 to float64, a dependence does not.

Measured on the 57 audits of tools/golden.py (20 architectures and 25 small modules, random weights):

    192 proved relations    float32 up to 1.1e-6; float64 up to 2.0e-15, but 5e-8 (XLM) and 2.2e-7 (Gemma 2) in models
                            that compute a part in float32
    165 refuted relations   float64 from 7.4e-5; the float64 difference is at least 0.9998 of that in float32
"""

from __future__ import annotations

from typing import Final

FLOAT32_SUSPICION: Final = 1e-6  # a larger difference in float32 is repeated in float64
FLOAT64_DIFFERENCE: Final = 1e-6  # a larger difference in float64 is a dependence: four times the largest rounding
FLOAT32_DIFFERENCE: Final = 1e-3  # the same in float32, if float64 cannot be run: a thousand times the largest rounding
FLOAT64_TO_FLOAT32_RATIO: Final = 0.1  # a dependence keeps at least this share of its float32 difference in float64

NODE_CHECK: Final = 1e-7  # of a node in float64, relative to its tensor's largest ordinary value
NODE_CHECK_ORDINARY: Final = 1e6  # larger values are masks: they do not set the scale of their tensor

ROUNDING_RUNS: Final = 3  # runs with perturbed rounding that measure the rounding error of a run (`rounding_noise.py`)
# A dependence is at least this many times that error. Over 24 models that obey a law, in float64, float32, bfloat16,
# float16 and under autocast, with up to 512 tokens, two runs differed by at most 1.4 times it.
ROUNDING_FACTOR: Final = 20
CLEAR_DIFFERENCE: Final = (
    1e4  # times the error in one run: further runs, and the error of a second input, do not matter
)
