"""Frequency schedules: how fast each pair turns, and how that is stretched for longer sequences.

A schedule is a value: called with a width and a base it gives a `Spectrum`. Two of them, `DynamicNTK` and `LongRope`,
depend on the length at which a row is read: called, they answer for the length they declare; `at` answers for others.
"""

from orderproof.encodings.schedules.drop_slow import DropSlow as DropSlow
from orderproof.encodings.schedules.dynamic_ntk import DynamicNTK as DynamicNTK
from orderproof.encodings.schedules.geometric import geometric as geometric
from orderproof.encodings.schedules.linear import Linear as Linear
from orderproof.encodings.schedules.llama3 import Llama3 as Llama3
from orderproof.encodings.schedules.long_rope import LongRope as LongRope
from orderproof.encodings.schedules.ntk_aware import NTKAware as NTKAware
from orderproof.encodings.schedules.proportional import Proportional as Proportional
from orderproof.encodings.schedules.yarn import Yarn as Yarn
