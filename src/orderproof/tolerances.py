"""The numbers that separate rounding from a difference when outputs of a model are compared.

One name per meaning, with the measurement behind it. A difference is relative: the largest absolute difference of two
outputs over the largest absolute value. Numbers that belong to one law are in the file of that law; those of the search
for a counterexample are in `orderproof.diagnosis`.
"""

from __future__ import annotations

SAME_GRAPH = 1e-4  # float32: recorded graph and module; 212 architectures agreed to 5e-7
SAME_WEIGHTS = 1e-6  # float64: checksums of the weights before and after a law
TOKEN_MIXING = 1e-7  # float32: a larger change at the other tokens shows that tokens mix: the proof is not vacuous

FLOAT32_TOLERANCE = 1e-4  # two ways to compute one output; the noise of 143 architectures was at most 8.8e-6
NOISE_FACTOR = 20  # the tolerance is at least this many times the difference of two equal calls
MAX_NOISE = 1e-5  # a larger difference of two equal calls is not attributed to rounding
FLOAT32_ONLY_DIFFERENCE = 1e-2  # the least difference that refutes a law if the model does not run in float64
ZERO_TOLERANCE = 1e-6  # float32: an input that must not matter was changed

FLOAT64_ROUNDING = 1e-5  # float64: rounding that is left in models that compute angles in float32
FLOAT64_DIFFERENCE = 1e-4  # float64: a larger difference is not rounding
FLOAT64_EQUAL = 1e-9  # float64: outputs that must differ are equal up to this

CONTROL_FACTOR = 100  # a positive control must move the output by this many tolerances

PORT_FACTOR = 16  # a port differs if it exceeds this many times the distance of the reference from float32 to float64
PORT_LEAST_ROUNDING = 2.0**-23  # relative: a distance below the spacing of float32 is luck
