"""Positional encodings: ways to give a model the order of its tokens."""

from orderproof.encodings._attention import Backend as Backend
from orderproof.encodings._attention import attention as attention
from orderproof.encodings._encoding import Claims as Claims
from orderproof.encodings._encoding import Content as Content
from orderproof.encodings._encoding import PositionalEncoding as PositionalEncoding
from orderproof.encodings._encoding import Sizes as Sizes
from orderproof.encodings._frequencies import Schedule as Schedule
from orderproof.encodings._frequencies import Spectrum as Spectrum
from orderproof.encodings._frequencies import geometric as geometric
from orderproof.encodings._offset import OffsetBias as OffsetBias
from orderproof.encodings._registry import get as get
from orderproof.encodings._registry import names as names
from orderproof.encodings._registry import register as register
from orderproof.encodings.alibi import ALiBi as ALiBi
from orderproof.encodings.fire import Fire as Fire
from orderproof.encodings.grid_mlp import GridMlp as GridMlp
from orderproof.encodings.grid_table import GridBias as GridBias
from orderproof.encodings.kerple import Kerple as Kerple
from orderproof.encodings.learned import Learned as Learned
from orderproof.encodings.none import NoEncoding as NoEncoding
from orderproof.encodings.rotary import Rotary as Rotary
from orderproof.encodings.sinusoidal import Sinusoidal as Sinusoidal
from orderproof.encodings.t5 import T5Bias as T5Bias
