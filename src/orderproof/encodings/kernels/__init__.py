"""Compiled kernels: plain C for the CPU, loaded through ctypes, and Triton for a GPU; everything works without them."""

from orderproof.encodings.kernels._library import available as available
from orderproof.encodings.kernels._on_gpu import serves_on_gpu as serves_on_gpu
from orderproof.encodings.kernels._on_gpu import turn_on_gpu as turn_on_gpu
from orderproof.encodings.kernels._table import table as table
from orderproof.encodings.kernels._turn import Plan as Plan
from orderproof.encodings.kernels._turn import plan_of as plan_of
from orderproof.encodings.kernels._turn import serves as serves
from orderproof.encodings.kernels._turn import turn as turn
from orderproof.encodings.kernels._turn import turn_few as turn_few
from orderproof.encodings.kernels._turn import unseen as unseen
