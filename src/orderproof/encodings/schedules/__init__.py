"""Frequency schedules: the rotation frequencies, and how they are scaled for longer sequences.

A schedule is a callable value: given a width and a base, it returns a `Spectrum`. `DynamicNTK` and `LongRope` depend on
the context length of a row: called, they return the spectrum at their declared length; `spectrum_at` takes lengths.
"""

from orderproof.encodings.schedules.drop_slow import DropLowFrequencies as DropLowFrequencies
from orderproof.encodings.schedules.dynamic_ntk import DynamicNTK as DynamicNTK
from orderproof.encodings.schedules.geometric import geometric_frequencies as geometric_frequencies
from orderproof.encodings.schedules.linear import LinearScaling as LinearScaling
from orderproof.encodings.schedules.llama3 import Llama3 as Llama3
from orderproof.encodings.schedules.long_rope import LongRope as LongRope
from orderproof.encodings.schedules.ntk_aware import NTKAware as NTKAware
from orderproof.encodings.schedules.proportional import Proportional as Proportional
from orderproof.encodings.schedules.yarn import Yarn as Yarn
