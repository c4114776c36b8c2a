"""Compiled kernels: plain C, loaded through ctypes; everything works without them."""

from orderproof.encodings.kernels._library import available as available
from orderproof.encodings.kernels._table import table as table
from orderproof.encodings.kernels._turn import Plan as Plan
from orderproof.encodings.kernels._turn import plan_of as plan_of
from orderproof.encodings.kernels._turn import serves as serves
from orderproof.encodings.kernels._turn import turn as turn
from orderproof.encodings.kernels._turn import turn_few as turn_few
