"""Positional encodings: ways to give a model the order of its tokens."""

from orderproof.encodings import layout as layout
from orderproof.encodings import schedules as schedules
from orderproof.encodings._attention import Backend as Backend
from orderproof.encodings._attention import attention as attention
from orderproof.encodings._encoding import Claims as Claims
from orderproof.encodings._encoding import Content as Content
from orderproof.encodings._encoding import PositionalEncoding as PositionalEncoding
from orderproof.encodings._encoding import Sizes as Sizes
from orderproof.encodings._frequencies import LengthSchedule as LengthSchedule
from orderproof.encodings._frequencies import RowSpectra as RowSpectra
from orderproof.encodings._frequencies import Schedule as Schedule
from orderproof.encodings._frequencies import Spectrum as Spectrum
from orderproof.encodings._offset import OffsetBias as OffsetBias
from orderproof.encodings._registry import get as get
from orderproof.encodings._registry import names as names
from orderproof.encodings._registry import register as register
from orderproof.encodings._table import table as table
from orderproof.encodings.alibi import ALiBi as ALiBi
from orderproof.encodings.configs import from_hf_config as from_hf_config
from orderproof.encodings.learned import Learned as Learned
from orderproof.encodings.none import NoEncoding as NoEncoding
from orderproof.encodings.rotary import Rotary as Rotary
from orderproof.encodings.sinusoidal import Sinusoidal as Sinusoidal
from orderproof.encodings.sinusoidal_grid import SinusoidalGrid as SinusoidalGrid
from orderproof.encodings.t5 import T5Bias as T5Bias
