"""Compiled kernels: C for the CPU, loaded through ctypes, and Triton for the GPU. Both are optional."""

from orderproof.encodings.kernels._cos_sin_table import cos_sin_table as cos_sin_table
from orderproof.encodings.kernels._library import kernels_available as kernels_available
from orderproof.encodings.kernels._rotary_cpu import RotaryPlan as RotaryPlan
from orderproof.encodings.kernels._rotary_cpu import can_rotate_on_cpu as can_rotate_on_cpu
from orderproof.encodings.kernels._rotary_cpu import is_plain_eager as is_plain_eager
from orderproof.encodings.kernels._rotary_cpu import rotary_plan as rotary_plan
from orderproof.encodings.kernels._rotary_cpu import rotate as rotate
from orderproof.encodings.kernels._rotary_cpu import rotate_small as rotate_small
from orderproof.encodings.kernels._rotary_gpu import can_rotate_on_gpu as can_rotate_on_gpu
from orderproof.encodings.kernels._rotary_gpu import rotate_on_gpu as rotate_on_gpu
